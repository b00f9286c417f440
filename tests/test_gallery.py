"""The examples of the gallery have a claim and a place. The build of the site runs them and checks the claims."""

from __future__ import annotations

import ast

from fakes.paths import ROOT

EXAMPLES = ROOT / "docs" / "examples"


def test_every_example_has_a_claim_and_a_place() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    page, site = (ROOT / "docs" / "gallery.md").read_text(), (ROOT / "mkdocs.yml").read_text()
    assert names == claims().keys()
    assert [
        name for name in sorted(names) if f"examples/{name}.md" not in page or f"examples/{name}.md" not in site
    ] == []


def claims() -> dict[str, str]:
    """Return the claims of the hook, which imports packages that only the site needs."""
    hook = ast.parse((ROOT / "docs" / "gallery_pages.py").read_text())
    (value,) = [node.value for node in hook.body if isinstance(node, ast.Assign) and node.targets[0].id == "CLAIMS"]  # type: ignore[attr-defined]
    claims: dict[str, str] = ast.literal_eval(value)
    return claims
