"""The page, in gradio: which kind it is follows from what the model was trained on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ldl.data.faces.detection.face import Detector
from ldl.demo.picture_page import PicturePage
from ldl.demo.row_page import RowPage
from ldl.errors import LDLError
from ldl.inference import Predictor

WIDE = 4
"""Fields side by side."""
CALIBRATED = "Intervals are calibrated: they hold the true value of 90% of all rows like those of validation."
UNCALIBRATED = "Intervals are not calibrated: they hold 90% of the predicted mass."


def make_page(predictor: Predictor, title: str, folder: Path, detector: Detector | None = None) -> Any:
    """A ``gradio.Blocks``, not launched; its functions are called ``predict`` and ``predict_table`` from outside.

    Args:
        predictor: Of a model of rows, or of crops of pictures.
        title: What is shown above.
        folder: Where charts are drawn.
        detector: What finds the faces in pictures.

    Raises:
        LDLError: a model of something else, or gradio is not installed.
    """
    gr = import_gradio()
    known, shape = predictor.task.preprocessing or {}, predictor.task.input_shape or ()
    if detector is not None and "crop_size" not in known:
        raise LDLError("the model was not trained on crops of pictures; leave --detector out")
    if "crop_size" not in known and len(shape) != 1:
        kind = "maps of pictures" if predictor.task.gives_maps else "bags" if "scaling" in known else f"arrays {shape}"
        raise LDLError(f"ldl demo shows models of rows and of crops of pictures; this is one of {kind}")
    with gr.Blocks(title=title, analytics_enabled=False, fill_width=True, delete_cache=(600, 3600)) as page:
        said = CALIBRATED if predictor.task.calibration else UNCALIBRATED
        gr.Markdown(f"## {title}" + (f"\n{said}" if predictor.labels.has_values else ""))
        if "crop_size" in known:
            _pictures(gr, PicturePage(predictor, folder, detector))
        else:
            _rows(gr, page, RowPage(predictor, folder))
    return page


def import_gradio() -> Any:
    """gradio, or an LDLError that says how to get it."""
    try:
        import gradio
    except ImportError as error:
        raise LDLError(f"ldl demo needs gradio ({error}): pip install 'ldl[demo]'") from None
    return gradio


def _rows(gr: Any, page: Any, of: RowPage) -> None:
    with gr.Row():
        with gr.Column(scale=2), gr.Tabs():
            if of.has_fields:
                with gr.Tab("One row"):
                    fields = _fields(gr, of)
                    one = gr.Button("Predict", variant="primary")
            with gr.Tab("A table"):
                hint = f"{', '.join(of.names[:3])}{', ...' if of.count > 3 else ''}, then a row a line"
                text = gr.Textbox(label=f"{of.count} features a row, or a CSV", lines=6, placeholder=hint)
                file = gr.File(label="or a .csv, .parquet, .npz or .mat", type="filepath", height=120)
                row = gr.Number(0, label="row in the chart", precision=0, minimum=0)
                many = gr.Button("Predict", variant="primary")
        with gr.Column(scale=3):
            shown = _outputs(gr)
    if of.has_fields:
        predict = _bind(gr, one, of.of_fields, fields, shown, "predict")
        page.load(predict, fields, shown, api_visibility="private", concurrency_limit=1, concurrency_id="model")
    _bind(gr, many, of.of_table, [text, file, row], shown, "predict_table")


def _fields(gr: Any, of: RowPage) -> list[Any]:
    fields = []
    for start in range(0, of.count, WIDE):
        with gr.Row():
            for name, usual in list(zip(of.names, of.usual))[start : start + WIDE]:
                fields.append(gr.Number(usual, label=name, min_width=80))
    return fields


def _pictures(gr: Any, of: PicturePage) -> None:
    with gr.Row():
        with gr.Column(scale=2):
            given = gr.Image(label="picture", type="filepath", sources=["upload", "webcam", "clipboard"], height=320)
            face = gr.Number(1, label="face in the chart", precision=0, minimum=1, visible=of.detector is not None)
            go = gr.Button("Predict", variant="primary")
            note = (
                f"Faces are found by {of.detector.name}." if of.detector else "The whole picture is taken as one face."
            )
            gr.Markdown(note)
        with gr.Column(scale=3):
            drawn = gr.Image(
                label="faces", show_label=False, type="filepath", interactive=False, buttons=["fullscreen"]
            )
            shown = _outputs(gr)
    _bind(gr, go, of.of_picture, [given, face], [drawn, *shown], "predict")


def _outputs(gr: Any) -> list[Any]:
    table = gr.Dataframe(label="prediction", interactive=False, wrap=True)
    chart = gr.Image(label="distribution", show_label=False, type="filepath", interactive=False, buttons=["fullscreen"])
    parts = gr.Dataframe(label="what it rests on", interactive=False)
    return [table, chart, parts]


def _bind(gr: Any, button: Any, do: Callable[..., Any], given: list[Any], shown: list[Any], name: str) -> Any:
    def said(*values: Any) -> Any:
        try:
            return do(*values)
        except LDLError as error:
            raise gr.Error(" ".join(str(error).split()), print_exception=False) from None

    # One at a time: a model is no place for two.
    button.click(said, given, shown, api_name=name, concurrency_limit=1, concurrency_id="model")
    return said
