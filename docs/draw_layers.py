"""Draw ``pictures/layers.svg``, the layers that ``tests/test_layers.py`` checks: ``python docs/draw_layers.py``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

PICTURE = Path(__file__).parent / "pictures" / "layers.svg"
WIDTH, HEIGHT, GAP, MARGIN = 720, 30, 8, 10


def draw(layers: Sequence[Sequence[str]]) -> str:
    """Return the layers, from the bottom up, as SVG; packages of a layer stand side by side."""
    tall = MARGIN + len(layers) * (HEIGHT + GAP) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 840 {tall}" font-family="sans-serif" font-size="14">',
        '<defs><marker id="a" markerWidth="8" markerHeight="8" refX="4" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
    ]
    for level, packages in enumerate(reversed(layers)):
        top, width = MARGIN + level * (HEIGHT + GAP), (WIDTH + GAP) / len(packages) - GAP
        for place, package in enumerate(packages):
            left, name = MARGIN + place * (width + GAP), package.removeprefix("ldl.")
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
    from test_layers import LAYERS

    PICTURE.write_text(draw(LAYERS), encoding="utf-8")
