"""The security page, held against the code."""

from __future__ import annotations

import re

from fakes.paths import ROOT


def test_nothing_is_unpickled_anywhere() -> None:
    """Except what a run hands to its own loader processes."""
    found = []
    for file in sorted((ROOT / "ldl").rglob("*.py")):
        text = file.read_text()
        loads = re.findall(r"np\.load\(.*\)|torch\.load\(.*\)|pickle\.loads?\(.*\)", text)
        found += [
            f"{file.name}: {call}" for call in loads if not re.search("allow_pickle=False|weights_only=True", call)
        ]
    assert found == ["loader.py: pickle.loads(instances))"]


def test_the_security_page_names_tests_that_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "security.md").read_text()))
    tests = "".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    assert len(named) > 20
    assert {name for name in named if f"def {name}(" not in tests} == set()
