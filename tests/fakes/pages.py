"""Anchors of Markdown pages, as MkDocs makes them."""

from __future__ import annotations

import re

FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors_of(text: str) -> list[str]:
    """Return the anchors of the headings and of the elements with an ``id``, such as collapsed items."""
    text = FENCE.sub("", text)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = [re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip()) for title in titles]
    return [*slugs, *re.findall(r'<\w+ id="([^"]+)"', text)]
