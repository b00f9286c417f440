"""Files of text are UTF-8, whatever the locale of the machine is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fakes.paths import ROOT


def _without_encoding(tree: ast.AST) -> Iterator[int]:
    """Lines of calls that read or write text as the locale has it."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        plain = isinstance(call.func, ast.Name)
        modes = call.args[1:2] if plain else call.args
        opens = name == "open" and all(isinstance(mode, ast.Constant) and "b" not in str(mode.value) for mode in modes)
        named = {keyword.arg for keyword in call.keywords}
        reads = name in ("read_text", "write_text") and not plain
        if (reads or opens) and "encoding" not in named:
            yield call.lineno


def test_text_is_utf8() -> None:
    files = sorted(file for place in ("ldl", "benchmarks", "plugins", "docs") for file in (ROOT / place).rglob("*.py"))
    found = [f"{file}:{line}" for file in files for line in _without_encoding(ast.parse(file.read_bytes()))]
    assert found == [] and len(files) > 100
