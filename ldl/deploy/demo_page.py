"""A local page, in gradio, that shows the predictions of a trained model for a row, a table or an image."""

from __future__ import annotations

import html
import tempfile
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ldl import charts
from ldl.charts.drawing import in_unit
from ldl.data.images.locators import Detector, shows_objects
from ldl.data.pictures import read_picture
from ldl.data.tables.columns import ColumnEncoding, ColumnKind, Encoding
from ldl.errors import LDLError, explaining
from ldl.inference import Predictions, Predictor
from ldl.labels import LabelSpace
from ldl.methods.evidence import Evidence
from ldl.reports.files import as_text
from ldl.reports.rows import INTERVAL_LEVEL, in_words
from ldl.tables.csv_table import read_csv
from ldl.tables.entries import read_number

FIELDS_PER_LINE = 4
MAX_FIELDS = 30
"""Largest number of features with a field each; more features come as text or a file."""
MAX_ROWS = 1000
"""Largest number of rows of a table that are shown."""
MAX_PARTS, MAX_LIKELIEST = 8, 5
"""Largest number of listed parts of a prediction, and of likeliest labels if labels have no values."""
CALIBRATED = "Intervals are calibrated: they hold the true value of 90% of all rows that are like the validation rows."
UNCALIBRATED = "Intervals are not calibrated: they hold 90% of the predicted mass."

WebTable = dict[str, list[Any]]
"""Headers and data, in the form of gradio's tables."""


class Field(NamedTuple):
    """A field of the page: the name of a column, its initial value, its kind, and its categories, if there are any."""

    name: str
    initial: float | str
    kind: ColumnKind
    categories: Sequence[str] = ()


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
    preprocessing, shape = predictor.task.preprocessing or {}, predictor.task.input_shape or ()
    if detector is not None and "crop_size" not in preprocessing:
        raise LDLError("the model was not trained on crops of images; leave --detector out")
    if "crop_size" not in preprocessing and len(shape) != 1:
        kind = "bags" if "scaling" in preprocessing else f"arrays {shape}"
        if predictor.task.gives_maps:
            kind = "maps of images"
        raise LDLError(f"ldl demo shows models of rows and of crops of images; this is a model of {kind}")
    with gr.Blocks(title=title, analytics_enabled=False, fill_width=True, delete_cache=(600, 3600)) as page:
        note = CALIBRATED if predictor.task.calibration else UNCALIBRATED
        gr.Markdown(f"## {as_text(title)}" + (f"\n{note}" if predictor.labels.has_values else ""))
        if "crop_size" in preprocessing:
            _show_images(gr, PicturePage(predictor, folder, detector))
        else:
            _show_rows(gr, page, RowPage(predictor, folder))
    return page


def import_gradio() -> Any:
    """Return the module gradio. Raises LDLError, with the command that installs it."""
    with explaining("ldl demo needs gradio", "pip install 'ldl[demo]'", (ImportError,)):
        import gradio
    return gradio


def _show_rows(gr: Any, page: Any, row_page: RowPage) -> None:
    with gr.Row():
        with gr.Column(scale=2), gr.Tabs():
            if row_page.has_fields:
                with gr.Tab("One row"):
                    fields = _fields(gr, row_page)
                    one = gr.Button("Predict", variant="primary")
            with gr.Tab("A table"):
                hint = f"{', '.join(row_page.names[:3])}{', ...' if row_page.count > 3 else ''}, then one row per line"
                text = gr.Textbox(label=f"{row_page.count} features per row, or a CSV", lines=6, placeholder=hint)
                file = gr.File(label="or a .csv, .parquet, .npz or .mat", type="filepath", height=120)
                row = _as_sent(gr.Number(0, label="row in the chart", precision=0, minimum=0))
                many = gr.Button("Predict", variant="primary")
        with gr.Column(scale=3):
            shown = _outputs(gr)
    if row_page.has_fields:
        predict = _bind(gr, one, row_page.show_fields, fields, shown, "predict")
        page.load(predict, fields, shown, api_visibility="private", concurrency_limit=1, concurrency_id="model")
    _bind(gr, many, row_page.show_table, [text, file, row], shown, "predict_table")


def _fields(gr: Any, row_page: RowPage) -> list[Any]:
    fields = []
    for start in range(0, row_page.count, FIELDS_PER_LINE):
        with gr.Row():
            fields += [_component(gr, field) for field in row_page.fields[start : start + FIELDS_PER_LINE]]
    return fields


def _component(gr: Any, field: Field) -> Any:
    """Return the component of a field."""
    name, initial, kind, categories = field
    if kind == "number":
        return _as_sent(gr.Number(initial, label=name, min_width=80))
    if categories:
        return gr.Dropdown(categories, value=initial, label=name, allow_custom_value=True, min_width=80)
    if kind == "text":
        return gr.Textbox(initial, label=name, lines=4, placeholder="write or paste a text", min_width=320)
    return gr.Textbox(initial, label=name, placeholder="2024-05-31", min_width=80)


def _show_images(gr: Any, picture_page: PicturePage) -> None:
    with gr.Row():
        with gr.Column(scale=2):
            sources = ["upload", "webcam", "clipboard"]
            image = _as_uploaded(gr.Image(label="image", type="filepath", sources=sources, height=320))
            shows_face = picture_page.detector is not None
            face = _as_sent(gr.Number(1, label="face in the chart", precision=0, minimum=1, visible=shows_face))
            go = gr.Button("Predict", variant="primary")
            note = f"Faces are found by {picture_page.detector.name}." if picture_page.detector else ""
            gr.Markdown(note or f"The whole image is used{' as one face' if picture_page.of_faces else ''}.")
        with gr.Column(scale=3):
            drawn = _image(gr, "faces" if picture_page.of_faces else "image with its prediction")
            shown = _outputs(gr)
    _bind(gr, go, picture_page.show_picture, [image, face], [drawn, *shown], "predict")


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


def _bind(gr: Any, button: Any, do: Callable[..., Any], inputs: list[Any], shown: list[Any], name: str) -> Any:
    def call(*values: Any) -> Any:
        try:
            return do(*values)
        except LDLError as error:
            raise gr.Error(html.escape(" ".join(str(error).split()), quote=False), print_exception=False) from None

    # One call at a time: a model is not safe for concurrent calls.
    button.click(call, inputs, shown, api_name=name, concurrency_limit=1, concurrency_id="model")
    return call


class RowPage:
    """Functions of the page of a model of rows: one field per feature or encoded column, or a table.

    Args:
        predictor: Predictor of a model of rows.
        folder: Folder for charts.
    """

    def __init__(self, predictor: Predictor, folder: Path) -> None:
        self.predictor, self.folder = predictor, folder
        preprocessing = predictor.task.preprocessing or {}
        width = (predictor.task.input_shape or (0,))[-1]
        names = [str(name) for name in preprocessing.get("features") or [f"feature {k}" for k in range(width)]]
        usual = _usual(preprocessing.get("scaling") or {}, width)
        self.encoding = Encoding.from_state(preprocessing["encoding"]) if "encoding" in preprocessing else None
        self.fields: list[Field]
        if self.encoding is None:
            self.fields = [Field(name, number, "number") for name, number in zip(names, usual)]
        else:
            places = self.encoding.places
            self.fields = [_field(column, usual[places[column.name] :]) for column in self.encoding.columns]
        self.names, self.count = [field.name for field in self.fields], len(self.fields)

    @property
    def has_fields(self) -> bool:
        """Whether every feature gets a field."""
        return self.count <= MAX_FIELDS

    def show_fields(self, *values: Any) -> tuple[WebTable, str, WebTable]:
        """Return table, chart and evidence of the row in the fields; an empty field is a missing feature."""
        row = [
            _number(value, field.name) if field.kind == "number" else value for value, field in zip(values, self.fields)
        ]
        return self._show(np.array([row], dtype=float if self.encoding is None else object), 0)

    def show_table(self, text: str | None, file: str | None, row: float | None) -> tuple[WebTable, str, WebTable]:
        """Return the table of all rows of a file, or of pasted text, and chart and evidence of one ``row``."""
        chosen = _whole_number(row, "row in the chart")
        if file:
            return self._show(file, chosen)
        if not (text or "").strip():
            raise LDLError(f"paste a row of {self.count} features, or several, or choose a file")
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            path = Path(folder) / "pasted.csv"
            path.write_text(str(text).strip() + "\n", encoding="utf-8")
            return self._show(read_pasted(path) if self.encoding is None else path, chosen)

    def _show(self, inputs: Any, row: int) -> tuple[WebTable, str, WebTable]:
        predictions = self.predictor.predict(inputs)
        evidence = self.predictor.evidence(inputs, row)
        table = _prediction_table(predictions)
        if len(predictions) > MAX_ROWS:
            table["headers"][0] += f" ({MAX_ROWS} of {len(predictions)})"
            table["data"] = table["data"][:MAX_ROWS]
        return table, _chart(self.folder, predictions, row, evidence), _evidence_table(evidence, predictions.labels)


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

    def show_picture(self, picture: str | None, face: float | None) -> tuple[str, WebTable, str, WebTable]:
        """Return the image with its faces, a table with a row per face, and chart and evidence of one ``face``."""
        if not picture:
            raise LDLError("choose an image first")
        path, row = Path(picture), _whole_number(face, "face in the chart") - 1
        predictions = self.predictor.predict(path, detector=self.detector)
        if not 0 <= row < len(predictions):
            raise LDLError(f"face {row + 1} must be in 1..{len(predictions)}, the faces of this image")
        evidence = self.predictor.evidence(path, row, detector=self.detector)
        pixels = read_picture(path)
        height, width = pixels.shape[:2]
        boxes = np.array([[0, 0, width - 1, height - 1]])
        if self.detector is not None:
            boxes = np.stack([predictions.facts[side] for side in ("x0", "y0", "x1", "y1")], axis=1)
        texts = [f"{number}: {text}" for number, text in enumerate(in_words(predictions), start=1)]
        drawn = charts.photograph(_new_png(self.folder), pixels, boxes, None, texts, predictions.labels)
        chart = _chart(self.folder, predictions, row, evidence)
        return str(drawn), _prediction_table(predictions), chart, _evidence_table(evidence, predictions.labels)


def read_pasted(path: Path) -> Path | np.ndarray:
    """Return the path of a CSV file with column names, or the rows (N, F) of one without, NaN if missing.

    Raises LDLError for a field that is no number in rows without names.
    """
    table = read_csv(path, has_header=lambda first: any(np.isinf(list(map(read_number, first)))))
    headed = table.header != [str(number + 1) for number in range(len(table.header))]
    return path if headed else table.numbers(table.header, missing=True)


def _field(column: ColumnEncoding, usual: list[float]) -> Field:
    """Return the field of a column, which begins with its median or the most frequent category, or without text.

    Args:
        column: The column.
        usual: Usual values of the features, from the first feature of this column on.
    """
    fill = column.fill or ()
    if column.kind == "number":
        return Field(column.name, float(f"{fill[0]:.4g}") if fill else usual[0], "number")
    if column.kind == "category":
        ranked = sorted(zip(usual, column.categories), key=lambda pair: -pair[0])
        return Field(column.name, ranked[0][1] if ranked else "", "category", column.categories)
    if column.kind == "text":
        return Field(column.name, "", "text")
    return Field(column.name, "-".join(f"{round(number):02}" for number in fill[:3]), "date")


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


def _number(sent: Any, field: str) -> float:
    """Return the number of a field, NaN if it is empty. Raises LDLError."""
    number = np.nan if sent is None else read_number(str(sent))
    if np.isinf(number):
        raise LDLError(f"the field {field!r} is {str(sent)[:80]!r}; give a number, or leave it empty")
    return number


def _whole_number(sent: Any, field: str) -> int:
    number = _number(sent, field)
    if np.isnan(number):
        raise LDLError(f"the field {field!r} is empty; give a whole number")
    if number != round(number):
        raise LDLError(f"the field {field!r} is {number:g}; give a whole number")
    return int(number)


def _prediction_table(predictions: Predictions) -> WebTable:
    columns: dict[str, Any] = {"row": list(range(len(predictions)))}
    if "face" in predictions.facts:
        columns = {"face": predictions.facts["face"].tolist()}
    columns |= _likeliest(predictions) if predictions.value is None else _values(predictions)
    return {"headers": list(columns), "data": [list(row) for row in zip(*columns.values())]}


def _values(predictions: Predictions) -> dict[str, list[float]]:
    assert predictions.value is not None and predictions.std is not None
    columns: dict[str, np.ndarray] = {}
    header = in_unit("value", predictions.labels)
    for axis, name in enumerate(predictions.labels.axis_names or [""] * predictions.labels.ndim):
        of = f" {name}" if name else ""
        value, std = (rows.reshape(len(predictions), -1)[:, axis] for rows in (predictions.value, predictions.std))
        low, high = predictions.interval(INTERVAL_LEVEL).reshape(len(predictions), -1, 2)[:, axis].T
        columns |= {f"{header}{of}": value, f"standard deviation{of}": std}
        columns |= {f"lower {INTERVAL_LEVEL:.0%}{of}": low, f"upper {INTERVAL_LEVEL:.0%}{of}": high}
    return {name: [float(f"{number:.4g}") for number in column] for name, column in columns.items()}


def _likeliest(predictions: Predictions) -> dict[str, list[str]]:
    order = np.argsort(-predictions.distribution, axis=1, kind="stable")[:, :MAX_LIKELIEST]
    shares = np.take_along_axis(predictions.distribution, order, 1)
    names, columns = predictions.labels.names, {}
    for rank, (likeliest, column) in enumerate(zip(order.T, shares.T), start=1):
        columns[f"likeliest {rank}"] = [f"{names[label]} ({share:.1%})" for label, share in zip(likeliest, column)]
    return columns


def _evidence_table(evidence: Evidence | None, labels: LabelSpace) -> WebTable:
    """List the parts of a prediction with the largest weights, and the value or likeliest label of each."""
    if evidence is None:
        return {"headers": ["evidence"], "data": [["this head gives no evidence"]]}
    kept = evidence.first(MAX_PARTS)
    share = [f"{weight:.1%}" for weight in kept.weights.tolist()]
    if labels.has_values:
        values = labels.decode(kept.distributions.float())
        texts = [", ".join(f"{number:.4g}" for number in np.atleast_1d(value)) for value in values.cpu().numpy()]
    else:
        texts = [str(labels.names[row]) for row in kept.distributions.argmax(1).tolist()]
    answer = in_unit("value", labels) if labels.has_values else "likeliest label"
    count = f"evidence ({len(kept.names)} of {len(evidence.names)})"
    return {"headers": [count, "weight", answer], "data": [list(row) for row in zip(kept.names, share, texts)]}


def _chart(folder: Path, predictions: Predictions, row: int, evidence: Evidence | None) -> str:
    value = interval = parts = weights = None
    if predictions.value is not None:
        value, interval = predictions.value[row], predictions.interval(INTERVAL_LEVEL)[row]
    if evidence is not None and predictions.labels.kind == "ordinal":
        parts = predictions.labels.decode(evidence.distributions.float()).cpu().numpy()
        weights = evidence.weights.float().cpu().numpy()
    distribution, labels = predictions.distribution[row], predictions.labels
    return str(charts.answer(_new_png(folder), distribution, labels, value, interval, parts, weights))


def _new_png(folder: Path) -> Path:
    return folder / f"{uuid.uuid4().hex}.png"  # a name of its own, because several calls may draw at a time
