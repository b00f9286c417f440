"""Usual names of columns: one list of them, in any spelling, for all readers."""

from __future__ import annotations

import ast

import pytest
from fakes.paths import ROOT

from ldl.tables.roles import SPLIT_SETS, USUAL, plain_name, usual_columns

SYNONYMS = SPLIT_SETS.keys() - {"train", "val", "test"}
ROLES = {role: set(USUAL[role]) for role in ("image", "item", "rater", "vote", "group", "split", "bag")}


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Patient ID", "patient_id"),
        ("patientId", "patient_id"),
        (" PATIENT-ID ", "patient_id"),
        ("#subject", "subject"),
        ("imagePath", "image_path"),
        (3, "3"),
    ],
)
def test_plain_names(name: object, plain: str) -> None:
    assert plain_name(name) == plain


def test_the_most_usual_column_comes_first() -> None:
    assert usual_columns(["uuid", "Item", "task"], "item") == ["Item", "task", "uuid"]
    assert usual_columns(["x", "y1"], "group") == []


def test_no_other_module_lists_usual_names() -> None:
    """A literal with two names of one role, or two synonyms of a set of a split, is a second list.

    Roles are not, and neither are the keys in files of annotation tools.
    """
    found = []
    for path in sorted((ROOT / "ldl").rglob("*.py")):
        if path in (ROOT / "ldl/tables/roles.py", ROOT / "ldl/validation/option.py"):  # roles of columns, of options
            continue
        if path.parent == ROOT / "ldl/annotations/exports":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
                entries = [key for key in node.keys if key] if isinstance(node, ast.Dict) else node.elts
                names = {str(entry.value) for entry in entries if isinstance(entry, ast.Constant)}
                if names <= ROLES.keys():
                    continue
                same = [names & usual for usual in (*ROLES.values(), SYNONYMS) if len(names & usual) > 1]
                found += [(f"{path.relative_to(ROOT)}:{node.lineno}", sorted(hit)) for hit in same]
    assert found == []
