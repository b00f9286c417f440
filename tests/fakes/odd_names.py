"""Names that mathtext, the markup of rich, Markdown, HTML, CSV or an old terminal would read as their own language."""

from __future__ import annotations

ODD_NAMES = [
    "a$b$c_1",
    "x_{^$\\frac$",
    "[bold]rot[/] :x:",
    '=1+1, "two" %s {0}',
    "gr\u00fcn \u0416",
    "<b>|x|</b>\n# h",
]
