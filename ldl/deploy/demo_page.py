"""A local page, in gradio, that shows the predictions of a trained model for a row, a table or an image."""

from __future__ import annotations

import html
import tempfile
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ldl import charts
from ldl.data.images.locators import Detector, shows_objects
from ldl.data.pictures import read_picture
from ldl.data.tables.columns import ColumnEncoding, Encoding
from ldl.errors import LDLError
from ldl.inference import Predictions, Predictor
from ldl.labels import LabelSpace
from ldl.methods.evidence import Evidence
from ldl.reports.files import as_text
from ldl.reports.rows import in_words
from ldl.tables.csv_table import read_csv
from ldl.tables.entries import read_number

FIELDS_PER_LINE = 4
MAX_FIELDS = 30
"""Largest number of features with a field each; more features come as text or a file."""
MAX_ROWS = 1000
"""Largest number of rows of a table that are shown."""
LEVEL = 0.9
"""Level of the intervals on the page."""
MAX_PARTS, MAX_LIKELIEST = 8, 5
"""Largest number of listed parts of a prediction, and of likeliest labels if labels have no values."""
CALIBRATED = "Intervals are calibrated: they hold the true value of 90% of all rows that are like the validation rows."
UNCALIBRATED = "Intervals are not calibrated: they hold 90% of the predicted mass."

Table = dict[str, list[Any]]
"""Headers and data, in the form of gradio's tables."""
Field = tuple[str, float | str, Sequence[str] | None]
"""Name of a column, its initial value, and its categories: an empty list for a date, None for a number."""


def make_page(predictor: Predictor, title: str, folder: Path, detector: Detector | None = None) -> Any:
    """Return a ``gradio.Blocks``, not launched, with the endpoints ``predict`` and ``predict_table``.

    Args:
        predictor: Predictor of a model of rows, or of image crops.
        title: Title of the page.
        folder: Folder for charts.
        detector: Face detector for images.

    Raises:
        LDLError: The model has other inputs, or gradio is not installed.
    """
    gr = import_gradio()
    known, shape = predictor.task.preprocessing or {}, predictor.task.input_shape or ()
    if detector is not None and "crop_size" not in known:
        raise LDLError("the model was not trained on crops of images; leave --detector out")
    if "crop_size" not in known and len(shape) != 1:
        kind = "maps of images" if predictor.task.gives_maps else "bags" if "scaling" in known else f"arrays {shape}"
        raise LDLError(f"ldl demo shows models of rows and of crops of images; this is a model of {kind}")
    with gr.Blocks(title=title, analytics_enabled=False, fill_width=True, delete_cache=(600, 3600)) as page:
        note = CALIBRATED if predictor.task.calibration else UNCALIBRATED
        gr.Markdown(f"## {as_text(title)}" + (f"\n{note}" if predictor.labels.has_values else ""))
        if "crop_size" in known:
            _show_images(gr, PicturePage(predictor, folder, detector))
        else:
            _show_rows(gr, page, RowPage(predictor, folder))
    return page


def import_gradio() -> Any:
    """Return the module gradio. Raises LDLError, with the command that installs it."""
    try:
        import gradio
    except ImportError as error:
        raise LDLError(f"ldl demo needs gradio ({error}): pip install 'ldl[demo]'") from None
    return gradio


def _show_rows(gr: Any, page: Any, of: RowPage) -> None:
    with gr.Row():
        with gr.Column(scale=2), gr.Tabs():
            if of.has_fields:
                with gr.Tab("One row"):
                    fields = _fields(gr, of)
                    one = gr.Button("Predict", variant="primary")
            with gr.Tab("A table"):
                hint = f"{', '.join(of.names[:3])}{', ...' if of.count > 3 else ''}, then one row per line"
                text = gr.Textbox(label=f"{of.count} features per row, or a CSV", lines=6, placeholder=hint)
                file = gr.File(label="or a .csv, .parquet, .npz or .mat", type="filepath", height=120)
                row = _as_sent(gr.Number(0, label="row in the chart", precision=0, minimum=0))
                many = gr.Button("Predict", variant="primary")
        with gr.Column(scale=3):
            shown = _outputs(gr)
    if of.has_fields:
        predict = _bind(gr, one, of.of_fields, fields, shown, "predict")
        page.load(predict, fields, shown, api_visibility="private", concurrency_limit=1, concurrency_id="model")
    _bind(gr, many, of.of_table, [text, file, row], shown, "predict_table")


def _fields(gr: Any, of: RowPage) -> list[Any]:
    fields = []
    for start in range(0, of.count, FIELDS_PER_LINE):
        with gr.Row():
            for name, usual, choices in of.fields[start : start + FIELDS_PER_LINE]:
                if choices is None:
                    fields.append(_as_sent(gr.Number(usual, label=name, min_width=80)))
                elif choices:
                    fields.append(gr.Dropdown(choices, value=usual, label=name, allow_custom_value=True, min_width=80))
                else:
                    fields.append(gr.Textbox(usual, label=name, placeholder="2024-05-31", min_width=80))
    return fields


def _show_images(gr: Any, of: PicturePage) -> None:
    with gr.Row():
        with gr.Column(scale=2):
            sources = ["upload", "webcam", "clipboard"]
            given = _as_uploaded(gr.Image(label="image", type="filepath", sources=sources, height=320))
            shows_face = of.detector is not None
            face = _as_sent(gr.Number(1, label="face in the chart", precision=0, minimum=1, visible=shows_face))
            go = gr.Button("Predict", variant="primary")
            found = f"Faces are found by {of.detector.name}." if of.detector else ""
            gr.Markdown(found or f"The whole image is used{' as one face' if of.of_faces else ''}.")
        with gr.Column(scale=3):
            drawn = _image(gr, "faces" if of.of_faces else "image with its prediction")
            shown = _outputs(gr)
    _bind(gr, go, of.of_picture, [given, face], [drawn, *shown], "predict")


def _as_uploaded(image: Any) -> Any:
    """Let an image component hand on the uploaded file, which gradio would decode and convert to RGB first."""
    image.preprocess = lambda payload: payload and payload.path
    return image


def _as_sent(number: Any) -> Any:
    """Let a number component hand on what was sent: gradio raises errors of its own for text."""
    number.preprocess = lambda payload: payload
    return number


def _outputs(gr: Any) -> list[Any]:
    table = gr.Dataframe(label="prediction", interactive=False, wrap=True)
    parts = gr.Dataframe(label="evidence", interactive=False)
    return [table, _image(gr, "distribution"), parts]


def _image(gr: Any, label: str) -> Any:
    return gr.Image(label=label, show_label=False, type="filepath", interactive=False, buttons=["fullscreen"])


def _bind(gr: Any, button: Any, do: Callable[..., Any], given: list[Any], shown: list[Any], name: str) -> Any:
    def call(*values: Any) -> Any:
        try:
            return do(*values)
        except LDLError as error:
            raise gr.Error(html.escape(" ".join(str(error).split()), quote=False), print_exception=False) from None

    # One call at a time: a model is not safe for concurrent calls.
    button.click(call, given, shown, api_name=name, concurrency_limit=1, concurrency_id="model")
    return call


class RowPage:
    """Functions of the page of a model of rows: one field per feature or encoded column, or a table.

    Args:
        predictor: Predictor of a model of rows.
        folder: Folder for charts.
    """

    def __init__(self, predictor: Predictor, folder: Path) -> None:
        self.predictor, self.folder = predictor, folder
        known = predictor.task.preprocessing or {}
        width = (predictor.task.input_shape or (0,))[-1]
        names = [str(name) for name in known.get("features") or [f"feature {k}" for k in range(width)]]
        usual = _usual(known.get("scaling") or {}, width)
        self.encoding = Encoding.from_state(known["encoding"]) if "encoding" in known else None
        self.fields: list[Field]
        if self.encoding is None:
            self.fields = [(name, number, None) for name, number in zip(names, usual)]
        else:
            places = self.encoding.places
            self.fields = [_field(column, usual[places[column.name] :]) for column in self.encoding.columns]
        self.names, self.count = [name for name, *_ in self.fields], len(self.fields)

    @property
    def has_fields(self) -> bool:
        """Whether every feature gets a field."""
        return self.count <= MAX_FIELDS

    def of_fields(self, *values: Any) -> tuple[Table, str, Table]:
        """Return table, chart and evidence of the row in the fields; an empty field is a missing feature."""
        of_numbers = [choices is None for _, _, choices in self.fields]
        row = [_number(*pair) if plain else pair[0] for *pair, plain in zip(values, self.names, of_numbers)]
        return self._show(np.array([row], dtype=float if self.encoding is None else object), 0)

    def of_table(self, text: str | None, file: str | None, row: float | None) -> tuple[Table, str, Table]:
        """Return the table of all rows of a file, or of pasted text, and chart and evidence of one ``row``."""
        chosen = _whole_number(row, "row in the chart")
        if file:
            return self._show(file, chosen)
        if not (text or "").strip():
            raise LDLError(f"paste a row of {self.count} features, or several, or choose a file")
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            path = Path(place) / "pasted.csv"
            path.write_text(str(text).strip() + "\n", encoding="utf-8")
            return self._show(read_pasted(path) if self.encoding is None else path, chosen)

    def _show(self, given: Any, row: int) -> tuple[Table, str, Table]:
        found = self.predictor.predict(given)
        evidence = self.predictor.evidence(given, row)
        table = _prediction_table(found)
        if len(found) > MAX_ROWS:
            first, *others = table["headers"]
            table = {"headers": [f"{first} ({MAX_ROWS} of {len(found)})", *others], "data": table["data"][:MAX_ROWS]}
        return table, _chart(self.folder, found, row, evidence), _evidence_table(evidence, found.labels)


class PicturePage:
    """Functions of the page of a model of images: whole images, or images with the faces that a detector finds.

    Args:
        predictor: Predictor of a model of image crops.
        folder: Folder for charts.
        detector: Face detector; None uses whole images.
    """

    def __init__(self, predictor: Predictor, folder: Path, detector: Detector | None = None) -> None:
        self.predictor, self.folder, self.detector = predictor, folder, detector
        self.of_faces = detector is not None or shows_objects(predictor.task.preprocessing or {})

    def of_picture(self, picture: str | None, face: float | None) -> tuple[str, Table, str, Table]:
        """Return the image with its faces, a table with a row per face, and chart and evidence of one ``face``."""
        if not picture:
            raise LDLError("choose an image first")
        path, row = Path(picture), _whole_number(face, "face in the chart") - 1
        found = self.predictor.predict(path, detector=self.detector)
        if not 0 <= row < len(found):
            raise LDLError(f"face {row + 1} must be in 1..{len(found)}, the faces of this image")
        evidence = self.predictor.evidence(path, row, detector=self.detector)
        pixels = read_picture(path)
        height, width = pixels.shape[:2]
        boxes = np.array([[0, 0, width - 1, height - 1]])
        if self.detector is not None:
            boxes = np.stack([found.facts[side] for side in ("x0", "y0", "x1", "y1")], axis=1)
        texts = [f"{number}: {text}" for number, text in enumerate(in_words(found), start=1)]
        drawn = charts.photograph(_new_png(self.folder), pixels, boxes, None, texts, found.labels)
        chart = _chart(self.folder, found, row, evidence)
        return str(drawn), _prediction_table(found), chart, _evidence_table(evidence, found.labels)


def read_pasted(path: Path) -> Path | np.ndarray:
    """Return the path of a CSV file with column names, or the rows (N, F) of one without, NaN if missing.

    Raises LDLError for a field that is no number in rows without names.
    """
    table = read_csv(path, has_header=lambda first: any(np.isinf(list(map(read_number, first)))))
    headed = table.header != [str(number + 1) for number in range(len(table.header))]
    return path if headed else table.numbers(table.header, missing=True)


def _field(column: ColumnEncoding, usual: list[float]) -> Field:
    """Return the field of a column, which begins with its median, or the most frequent category if that is known.

    Args:
        column: The column.
        usual: Usual values of the features, from the first feature of this column on.
    """
    fill = column.fill or ()
    if column.kind == "number":
        return column.name, float(f"{fill[0]:.4g}") if fill else usual[0], None
    if column.kind == "category":
        ranked = sorted(zip(usual, column.categories), key=lambda pair: -pair[0])
        return column.name, ranked[0][1] if ranked else "", column.categories
    return column.name, "-".join(f"{round(part):02}" for part in fill[:3]), []


def _usual(scaling: dict[str, Any], count: int) -> list[float]:
    """Return initial values of the fields: means or medians of the training set, or zeros if these are unknown."""
    if "quantiles" in scaling:
        quantiles = np.asarray(scaling["quantiles"])
        row = quantiles[len(quantiles) // 2]
    elif "mean" in scaling:
        mean = np.asarray(scaling["mean"])
        row = mean**2 if scaling["kind"] == "hellinger" else mean
    else:
        row = np.zeros(count)
    return [float(f"{number:.4g}") for number in row]


def _number(sent: Any, what: str) -> float:
    """Return the number of a field, NaN if it is empty. Raises LDLError."""
    number = np.nan if sent is None else read_number(str(sent))
    if np.isinf(number):
        raise LDLError(f"the field {what!r} is {str(sent)[:80]!r}; give a number, or leave it empty")
    return number


def _whole_number(sent: Any, what: str) -> int:
    number = _number(sent, what)
    if np.isnan(number):
        raise LDLError(f"the field {what!r} is empty; give a whole number")
    if number != round(number):
        raise LDLError(f"the field {what!r} is {number:g}; give a whole number")
    return int(number)


def _prediction_table(found: Predictions) -> Table:
    first = {"face": found.facts["face"].tolist()} if "face" in found.facts else {"row": list(range(len(found)))}
    columns: dict[str, Any] = first | (_likeliest(found) if found.value is None else _values(found))
    return {"headers": list(columns), "data": [list(row) for row in zip(*columns.values())]}


def _values(found: Predictions) -> dict[str, list[float]]:
    assert found.value is not None and found.std is not None
    columns: dict[str, np.ndarray] = {}
    for axis, name in enumerate(found.labels.axis_names or [""] * found.labels.ndim):
        of = f" {name}" if name else ""
        value, std = (part.reshape(len(found), -1)[:, axis] for part in (found.value, found.std))
        low, high = found.interval(LEVEL).reshape(len(found), -1, 2)[:, axis].T
        columns |= {f"{_value_header(found.labels)}{of}": value, f"standard deviation{of}": std}
        columns |= {f"lower {LEVEL:.0%}{of}": low, f"upper {LEVEL:.0%}{of}": high}
    return {name: [float(f"{number:.4g}") for number in column] for name, column in columns.items()}


def _value_header(labels: LabelSpace) -> str:
    return f"value ({labels.unit})" if labels.unit else "value"


def _likeliest(found: Predictions) -> dict[str, list[str]]:
    order = np.argsort(-found.distribution, axis=1, kind="stable")[:, :MAX_LIKELIEST]
    shares = np.take_along_axis(found.distribution, order, 1)
    texts = [
        [f"{found.labels.names[label]} ({share:.1%})" for label, share in zip(*pair)] for pair in zip(order.T, shares.T)
    ]
    return {f"likeliest {rank}": text for rank, text in enumerate(texts, start=1)}


def _evidence_table(evidence: Evidence | None, labels: LabelSpace) -> Table:
    """List the parts of a prediction with the largest weights, and the value or likeliest label of each."""
    if evidence is None:
        return {"headers": ["evidence"], "data": [["this head gives no evidence"]]}
    kept = evidence.first(MAX_PARTS)
    share = [f"{weight:.1%}" for weight in kept.weights.tolist()]
    if labels.has_values:
        values = labels.decode(kept.distributions.float())
        texts = [", ".join(f"{part:.4g}" for part in np.atleast_1d(value)) for value in values.cpu().numpy()]
    else:
        texts = [str(labels.names[row]) for row in kept.distributions.argmax(1).tolist()]
    what = _value_header(labels) if labels.has_values else "likeliest label"
    count = f"evidence ({len(kept.names)} of {len(evidence.names)})"
    return {"headers": [count, "weight", what], "data": [list(row) for row in zip(kept.names, share, texts)]}


def _chart(folder: Path, found: Predictions, row: int, evidence: Evidence | None) -> str:
    known = found.value is not None
    marks = evidence if found.labels.kind == "ordinal" else None
    return str(
        charts.answer(
            _new_png(folder),
            found.distribution[row],
            found.labels,
            value=found.value[row] if found.value is not None else None,
            interval=found.interval(LEVEL)[row] if known else None,
            parts=None if marks is None else found.labels.decode(marks.distributions.float()).cpu().numpy(),
            weights=None if marks is None else marks.weights.float().cpu().numpy(),
        )
    )


def _new_png(folder: Path) -> Path:
    return folder / f"{uuid.uuid4().hex}.png"  # a name of its own, because several calls may draw at a time
