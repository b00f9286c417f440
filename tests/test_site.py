"""The site stays small enough to find a page in two clicks, and old addresses lead to the present pages."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml
from fakes.pages import anchors_of
from fakes.paths import ROOT

DOCS = ROOT / "docs"
MOST_PAGES, MOST_ENTRIES = 70, 45
BEFORE = "20e2b6e9"
"""The last commit with a page for each topic: its addresses were published."""
LINK = re.compile(r"\]\(([^)#\s]+\.md)")


class Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose tags name Python objects."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)
SITE = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)
REDIRECTS: dict[str, str] = next(
    plugin["redirects"]["redirect_maps"] for plugin in SITE["plugins"] if "redirects" in plugin
)


def entries(nav: Any) -> Iterator[str]:
    """Yield the pages of the navigation."""
    if isinstance(nav, str):
        yield nav
        return
    for child in nav.values() if isinstance(nav, dict) else nav:
        yield from entries(child)


NAVIGATION = list(entries(SITE["nav"]))
OUTSIDE = [line.strip().removeprefix("/") for line in SITE["not_in_nav"].splitlines() if not line.startswith("#")]
EXAMPLES = {f"examples/{path.stem}.md" for path in (DOCS / "examples").glob("*.py")}
PAGES = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} | EXAMPLES
"""The pages of the site; the examples become pages when the site is built."""


def test_the_site_is_small() -> None:
    assert len(PAGES) <= MOST_PAGES
    assert len(NAVIGATION) <= MOST_ENTRIES


def test_every_page_has_one_place() -> None:
    places = [*NAVIGATION, *OUTSIDE]
    assert sorted(places) == sorted(PAGES)


@pytest.mark.parametrize("page", OUTSIDE)
def test_a_page_outside_the_navigation_is_two_clicks_away(page: str) -> None:
    """A page of the navigation links to it."""
    links = {_resolve(entry, target) for entry in NAVIGATION for target in LINK.findall((DOCS / entry).read_text())}
    assert page in links


def _resolve(page: str, target: str) -> str:
    return os.path.normpath(PurePosixPath(page).parent / target)


@pytest.mark.parametrize("old", REDIRECTS)
def test_an_old_address_leads_to_a_place(old: str) -> None:
    page, _, anchor = REDIRECTS[old].partition("#")
    assert old not in PAGES
    assert page in PAGES
    assert not anchor or anchor in anchors_of((DOCS / page).read_text())


def test_no_address_is_lost() -> None:
    """Needs the history of git, which a release or a shallow clone does not have."""
    shown = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", BEFORE, "docs"], cwd=ROOT, capture_output=True, text=True
    )
    if shown.returncode:
        pytest.skip(f"no commit {BEFORE}")
    before = {path.removeprefix("docs/") for path in shown.stdout.split() if path.endswith(".md")}
    assert len(before) > 80
    assert before - PAGES == REDIRECTS.keys()
