"""Text in charts: names are shown as they are written, powers stay powers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.odd_names import ODD_NAMES
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from ldl import charts
from ldl.charts.drawing import new_figure, new_sheet, save, share_scale
from ldl.labels import LabelSpace

RNG = np.random.default_rng(0)


def test_charts_show_names_as_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels, rows = LabelSpace.nominal(ODD_NAMES), RNG.dirichlet(np.ones(len(ODD_NAMES)), 2)
    drawn: list[Figure] = []
    write = FigureCanvasAgg.print_png

    def keep(canvas: FigureCanvasAgg, *args: Any, **options: Any) -> None:
        drawn.append(canvas.figure)
        write(canvas, *args, **options)

    monkeypatch.setattr(FigureCanvasAgg, "print_png", keep)
    with rc_context({"text.usetex": True, "axes.formatter.use_mathtext": True}):
        charts.distributions(tmp_path / "d.png", rows, rows, labels, ODD_NAMES[:2])
        charts.leaves(tmp_path / "l.png", rows, labels, np.ones(2))
        charts.photograph(
            tmp_path / "p.png", np.zeros((9, 9, 3), np.uint8), np.ones((2, 4)), rows, ODD_NAMES[:2], labels
        )
        charts.maps(tmp_path / "m.png", [(ODD_NAMES[1], [None, np.zeros((2, 2))])], ODD_NAMES[:2], labels)
        charts.answer(tmp_path / "a.png", rows[0], labels)
    assert len(drawn) == 5
    shown = [
        text
        for figure in drawn
        for text in figure.findobj(Text)
        if "$" in text.get_text() and "mathdefault" not in text.get_text()
    ]
    assert len(shown) >= 12 and {text.get_text() for text in shown} >= set(ODD_NAMES[:2])
    assert not any(text.get_parse_math() or text.get_usetex() for text in shown)


def test_powers_of_ten_stay_powers(tmp_path: Path) -> None:
    figure, axis = new_figure(2, 2)
    axis.plot([1, 2], [1, 1e6])
    axis.set_yscale("log")
    axis.set_xticks([1, 2], ["$1$", "b"])
    save(figure, tmp_path / "a.png")
    powers, names = axis.get_yticklabels(), axis.get_xticklabels()
    assert powers and all(text.get_parse_math() for text in powers)
    assert names and not any(text.get_parse_math() for text in names)


def test_panels_share_one_scale_with_its_numbers_at_the_outer_panels(tmp_path: Path) -> None:
    figure, panels = new_sheet(5, 3, 2, 2)
    for number, panel in enumerate(panels):
        panel.plot([0, 1 + number], [0, 10 - number])
        panel.set(xlabel="years", ylabel="share")
    share_scale(panels, 3)
    save(figure, tmp_path / "p.png")
    assert len({(*panel.get_xlim(), *panel.get_ylim()) for panel in panels}) == 1
    assert panels[0].get_xlim()[1] > 5 and panels[0].get_ylim()[1] > 10
    named = [(panel.get_xlabel() != "", panel.get_ylabel() != "") for panel in panels]
    # The third panel has none below it.
    assert named == [(False, True), (False, False), (True, False), (True, True), (True, False)]
    for panel, (below, beside) in zip(panels, named):
        for axis, wanted in ((panel.xaxis, below), (panel.yaxis, beside)):
            assert any(label.get_visible() for label in axis.get_ticklabels()) == wanted
