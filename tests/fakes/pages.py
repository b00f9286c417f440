"""Parts of Markdown pages: fences, blocks that scripts write, and anchors as MkDocs makes them."""

from __future__ import annotations

import re

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""A fence: its language and its text."""
BLOCK = re.compile(r"^<!-- begin (\w+) -->\n(.*?)^<!-- end \1 -->", re.MULTILINE | re.DOTALL)
"""A block that a script writes: its name and its text."""


def fences_of(text: str, *languages: str) -> list[str]:
    """Return the texts of the fences in some languages."""
    return [fence for language, fence in FENCE.findall(text) if language in languages]


def anchors_of(text: str) -> list[str]:
    """Return the anchors of the headings and of the elements with an ``id``, such as collapsed items."""
    text = FENCE.sub("", text)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = [re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip()) for title in titles]
    return [*slugs, *re.findall(r'<\w+ id="([^"]+)"', text)]
