"""Configuration files, looked at before the parser sees them: it names no file, and follows aliases without end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ldl.data.files import read_text
from ldl.errors import LDLError

MOST = 100_000
"""Values of a file, counted as often as aliases repeat them."""

LONGEST = 1_000_000
"""Letters of a file."""

MERGE = "tag:yaml.org,2002:merge"


class _Plain(yaml.SafeLoader):
    """Reads dates as the texts that they are, like the parser of options."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_config(path: Path) -> dict[str, Any]:
    """The content of a configuration that :func:`check_config` has passed."""
    return yaml.load(path.read_text(encoding="utf-8"), _Plain)


def read_value(name: str, text: str) -> Any:
    """The value that a command line gives an option. Raises LDLError where it is no YAML."""
    try:
        return yaml.load(text, _Plain)
    except yaml.YAMLError as error:
        raise LDLError(f"{name} {text!r} is no YAML: {_reason(error)}; put a text in quotes") from None


def check_config(path: Path) -> None:
    """Refuse a file that is no configuration.

    Raises:
        LDLError: no UTF-8, no YAML, no mapping, a key that is no text or is there twice, or values that are nested
            without end, or that aliases multiply to more than ``MOST``.
    """
    text = read_text(path, "configuration", "correct -c")
    if len(text) > LONGEST:
        raise LDLError(f"{path} has {len(text):,} letters, more than {LONGEST:,}; a configuration is a few lines long")
    try:
        # Not the loader in C, which deep nesting kills with the process.
        root = yaml.compose(text, yaml.SafeLoader)
        if root is None:
            raise LDLError(f"{path} is empty; a configuration is a mapping, such as trainer: {{max_epochs: 3}}")
        if not isinstance(root, yaml.MappingNode):
            raise LDLError(f"{_at(path, root)} is no mapping of options, such as trainer: {{max_epochs: 3}}")
        _check(path, root, {}, ())
    except yaml.YAMLError as error:
        raise LDLError(f"{path} is no YAML: {_reason(error)}") from None
    except RecursionError:
        raise LDLError(f"{path} is nested too deep; a configuration has a few levels") from None


def _check(path: Path, node: yaml.Node, known: dict[int, int], above: tuple[int, ...]) -> int:
    """The number of values of a node, with those that aliases repeat; each node is counted once."""
    if node.tag not in yaml.SafeLoader.yaml_constructors and node.tag != MERGE:
        raise LDLError(f"{_at(path, node)} has the tag {node.tag!r}; options are plain values, remove it")
    if id(node) in above:
        raise LDLError(f"{_at(path, node)} contains itself; write the values out instead of the alias")
    if id(node) not in known:
        size = 1
        for part in _parts(path, node):
            size += _check(path, part, known, (*above, id(node)))
            if size > MOST:
                raise LDLError(f"{_at(path, node)} has aliases that make more than {MOST:,} values of it; write fewer")
        known[id(node)] = size
    return known[id(node)]


def _parts(path: Path, node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag not in ("tag:yaml.org,2002:str", MERGE):
            raise LDLError(f"{_at(path, key)} has a key that is no text; options have names")
        line = key.start_mark.line + 1
        if key.value in lines and key.tag.endswith("str"):
            raise LDLError(f"{path}: line {line} gives {key.value!r} again, after line {lines[key.value]}; remove one")
        lines[key.value] = line
        yield value


def _at(path: Path, node: yaml.Node) -> str:
    return f"{path}: line {node.start_mark.line + 1}"


def _reason(error: yaml.YAMLError) -> str:
    """What is wrong, with the line; PyYAML's own text goes over several and names a file of its own."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split())[:200]
    words = " ".join(filter(None, (error.context, error.problem)))
    return f"line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}: {words}"
