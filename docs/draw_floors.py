"""Draws pictures/floors.svg, the floors that tests/test_layers.py holds: ``python docs/draw_floors.py``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

PICTURE = Path(__file__).parent / "pictures" / "floors.svg"
WIDTH, HEIGHT, GAP, MARGIN = 720, 30, 8, 10


def draw(floors: Sequence[Sequence[str]]) -> str:
    """The floors, from the bottom up, each with its rooms side by side, as SVG."""
    tall = MARGIN + len(floors) * (HEIGHT + GAP) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 840 {tall}" font-family="sans-serif" font-size="14">',
        '<defs><marker id="a" markerWidth="8" markerHeight="8" refX="4" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
    ]
    for level, rooms in enumerate(reversed(floors)):
        top, width = MARGIN + level * (HEIGHT + GAP), (WIDTH + GAP) / len(rooms) - GAP
        for place, room in enumerate(rooms):
            left, name = MARGIN + place * (width + GAP), room.removeprefix("ldl.")
            parts += [
                f'<rect x="{left:.0f}" y="{top}" width="{width:.0f}" height="{HEIGHT}" rx="4" fill="#e8eaf6" '
                'stroke="#3f51b5"/>',
                f'<text x="{left + width / 2:.0f}" y="{top + 20}" text-anchor="middle" fill="#1a237e">{name}</text>',
            ]
    parts += [
        f'<line x1="760" y1="14" x2="760" y2="{tall - 20}" stroke="#555" stroke-width="2" marker-end="url(#a)"/>',
        f'<text x="774" y="{tall // 2}" fill="#555">uses</text></svg>',
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from test_layers import FLOORS

    PICTURE.write_text(draw(FLOORS), encoding="utf-8")
