"""Charts left out of a run or saved as a single pixel: they take most of a small run, and have tests of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from ldl import charts


def leave_out_charts(patch: pytest.MonkeyPatch) -> None:
    """Draw nothing in a run: charts of all rows and of training are left out, every other chart is a single pixel."""
    for name in charts.__all__:
        patch.setattr(charts, name, save_pixel)
    patch.setattr(charts, "overview", lambda *_, **__: {})
    patch.setattr(charts, "learning_curves", lambda *_, **__: None)
    patch.setattr(FigureCanvasAgg, "print_png", save_blank)


def save_blank(canvas: FigureCanvasAgg, path: str | Path, **options: Any) -> None:
    """In the place of ``FigureCanvasAgg.print_png``."""
    save_pixel(path)


def save_pixel(path: str | Path, *_: Any, **__: Any) -> Path:
    """In the place of a chart of ``ldl.charts``."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (1, 1)).save(path, "PNG")
    return Path(path)
