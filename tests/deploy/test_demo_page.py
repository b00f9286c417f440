"""The page of ``ldl demo`` shows the predictions of ``Predictor``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fakes.comments import comments
from fakes.films import films, save
from fakes.photographs import drawn_model
from fakes.tasks import fitted_checkpoint
from PIL import Image

from ldl.data import TabularLDL
from ldl.deploy.demo_page import PicturePage, RowPage, make_page
from ldl.deploy.demo_server import serving
from ldl.errors import LDLError
from ldl.estimator import LDLRegressor
from ldl.heads import MaxEnt, Softmax, StructRF
from ldl.inference import Predictor

gradio_client = pytest.importorskip("gradio_client", reason="pip install 'ldl[demo]'")


@pytest.fixture(scope="module")
def page(checkpoint: Path) -> Iterator[Any]:
    """A client of its page."""
    with serving(checkpoint, 0) as address:
        assert address.startswith("http://127.0.0.1:")
        yield gradio_client.Client(address, verbose=False)


def _same(table: dict[str, Any], predictions: Any) -> None:
    assert table["headers"] == ["row", "value", "standard deviation", "lower 90%", "upper 90%"]
    expected = np.column_stack(
        [np.arange(len(predictions)), predictions.value, predictions.std, predictions.interval(0.9)]
    )
    np.testing.assert_allclose(np.array(table["data"], dtype=float), expected, rtol=6e-4)


@pytest.mark.slow
def test_a_row(page: Any, checkpoint: Path) -> None:
    predictor, row = Predictor.from_checkpoint(checkpoint), [61.5, 1.1, -2.0]
    table, chart, parts = page.predict(*row, api_name="/predict")
    _same(table, predictor.predict(np.array([row])))
    assert Image.open(chart).size[0] > 500
    evidence = predictor.evidence(np.array([row]))
    assert evidence is not None and [line[0] for line in parts["data"]] == evidence.names[:8]
    assert parts["headers"] == ["evidence (8 of 20)", "weight", "value"] and parts["data"][0][1] == "5.0%"


@pytest.mark.slow
@pytest.mark.parametrize("text", ["61.5,1.1,-2\n40,0.9,-4", "change,age,other,ratio\n-2,61.5,9,1.1\n-4,40,9,0.9\n"])
def test_pasted_rows(text: str, page: Any, checkpoint: Path) -> None:
    table, _, _ = page.predict(text, None, 1, api_name="/predict_table")
    _same(table, Predictor.from_checkpoint(checkpoint).predict(np.array([[61.5, 1.1, -2], [40, 0.9, -4]])))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "row", "message"),
    [
        ("", 0, "paste a row of 3 features"),
        ("1,2", 0, "2 features a row, but the model takes 3"),
        ("age,ratio\n1,2", 0, "no column 'change'"),
        ("1,2,3", 4, "row 4 must be in 0..0"),
    ],
)
def test_mistakes_are_told(text: str, row: int, message: str, page: Any) -> None:
    with pytest.raises(gradio_client.exceptions.AppError, match=message):
        page.predict(text, None, row, api_name="/predict_table")


@pytest.mark.slow
def test_text_in_a_number_is_told_without_a_traceback(page: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(gradio_client.exceptions.AppError, match="the field 'age' is 'old'; give a number, or leave it"):
        page.predict("old", 1.1, -2.0, api_name="/predict")
    with pytest.raises(gradio_client.exceptions.AppError, match="the field 'row in the chart' is 'first'; give a num"):
        page.predict("1,2,3", None, "first", api_name="/predict_table")
    assert "Traceback" not in "".join(capfd.readouterr())


@pytest.mark.slow
def test_a_long_table_says_that_it_is_cut(checkpoint: Path, tmp_path: Path) -> None:
    page = RowPage(Predictor.from_checkpoint(checkpoint), tmp_path)
    table, _, _ = page.show_table("61.5,1.1,-2\n" * 1001, None, 1000)
    assert table["headers"][0] == "row (1000 of 1001)" and len(table["data"]) == 1000


def test_an_empty_field_is_told(checkpoint: Path, tmp_path: Path) -> None:
    predictor = Predictor.from_checkpoint(checkpoint)
    with pytest.raises(LDLError, match="^the field 'row in the chart' is empty; give a whole number$"):
        RowPage(predictor, tmp_path).show_table("1,2,3", None, None)
    with pytest.raises(LDLError, match="^the field 'face in the chart' is empty"):
        PicturePage(predictor, tmp_path).show_picture("a.png", None)


@pytest.mark.slow
def test_labels_without_values_and_many_features(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "a.npz", features=rng.normal(size=(30, 31)), labels=rng.dirichlet(np.ones(4), 30))
    checkpoint = fitted_checkpoint(MaxEnt(), TabularLDL(str(tmp_path / "a.npz")), tmp_path / "a.ckpt")
    row = rng.normal(size=(1, 31))
    with serving(checkpoint, 0) as address:
        client = gradio_client.Client(address, verbose=False)
        assert list(client.view_api(return_format="dict", print_info=False)["named_endpoints"]) == ["/predict_table"]
        table, _, parts = client.predict(",".join(map(repr, row[0].tolist())), None, 0, api_name="/predict_table")
    (distribution,) = Predictor.from_checkpoint(checkpoint).predict(row).distribution
    best = int(distribution.argmax())
    assert table["data"][0][:2] == [
        0,
        f"{Predictor.from_checkpoint(checkpoint).labels.names[best]} ({distribution[best]:.1%})",
    ]
    assert parts["data"] == [["this head gives no evidence"]]


KINDS: dict[str, Callable[[np.ndarray], Image.Image]] = {
    "deep.png": lambda rgb: Image.fromarray(rgb[..., 0].astype(np.uint16) * 200 + 99),
    "clear.png": lambda rgb: Image.fromarray(np.dstack([rgb, rgb[..., :1]])),
    "palette.gif": lambda rgb: Image.fromarray(rgb).quantize(16),
    "ink.jpg": lambda rgb: Image.fromarray(rgb).convert("CMYK"),
    "numbers.tif": lambda rgb: Image.fromarray(rgb[..., 0].astype(np.float32)),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_page_reads_the_file_as_uploaded(name: str, tmp_path: Path) -> None:
    """Gradio converts 16 bits, transparency and ink by itself, other than the reader of ldl."""
    predictor, file = Predictor.from_checkpoint(drawn_model(tmp_path / "a.ckpt", None)), tmp_path / name
    KINDS[name](np.random.default_rng(0).integers(0, 256, (40, 30, 3)).astype(np.uint8)).save(file)
    page = make_page(predictor, "model", tmp_path)
    component = next(block for block in page.blocks.values() if getattr(block, "label", None) == "image")
    sent = component.preprocess(component.data_model(path=str(file), orig_name=name))
    assert sent == str(file)
    shown = PicturePage(predictor, tmp_path)
    if name == "numbers.tif":
        with pytest.raises(LDLError, match="of mode F; save it with 8 or 16 bits"):
            shown.show_picture(sent, 1)
    else:
        row, expected = shown.show_picture(sent, 1)[1]["data"][0], predictor.predict(file)
        assert row[1] == pytest.approx(expected.value[0], rel=1e-3)


def test_a_photograph_of_another_format_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0heicmif1" + bytes(40))
    page = PicturePage(Predictor.from_checkpoint(drawn_model(tmp_path / "a.ckpt", None)), tmp_path)
    with pytest.raises(LDLError, match=r"a.heic cannot be read as an image: unknown or damaged format; JPEG, PNG, .*"):
        page.show_picture(str(tmp_path / "a.heic"), 1)


def test_fields_hold_numbers(checkpoint: Path, tmp_path: Path) -> None:
    page = RowPage(Predictor.from_checkpoint(checkpoint), tmp_path)
    assert page.show_fields("61.5", 1.1, -2)[0]["data"] == page.show_fields(61.5, 1.1, -2)[0]["data"]
    for sent in ("old", [1], "1e999", {}):
        with pytest.raises(LDLError, match="^the field 'age' is .*; give a number, or leave it empty$"):
            page.show_fields(sent, 1.1, -2)
    for row, message in (("first", "'first'; give a number"), (0.5, "is 0.5; give a whole number"), ("", "is empty")):
        with pytest.raises(LDLError, match=f"^the field 'row in the chart' .*{message}"):
            page.show_table("1,2,3", None, row)


@pytest.mark.slow
def test_columns_of_text_are_lists(tmp_path: Path) -> None:
    table = films(60)
    data = TabularLDL(str(save(tmp_path, table)), label_columns="r*", votes_column="votes", drop="title", folds=4)
    saved = fitted_checkpoint(StructRF(trees=3), data, tmp_path / "films.ckpt")
    predictor = Predictor.from_checkpoint(saved)
    with serving(saved, 0) as address:
        client = gradio_client.Client(address, verbose=False)
        fields = client.view_api(return_format="dict")["named_endpoints"]["/predict"]["parameters"]
        kinds = {field["label"]: field["component"] for field in fields}
        assert kinds == dict.fromkeys(["year", "length", "budget", "Action", "Short"], "Number") | {"mpaa": "Dropdown"}
        row = {"year": 1990, "length": 100, "budget": None, "mpaa": "R", "Action": 1, "Short": 0}
        shown = client.predict(*row.values(), api_name="/predict")[0]
        expected = predictor.predict(pd.DataFrame([row]))
        np.testing.assert_allclose(float(shown["data"][0][1]), expected.value[0], rtol=1e-3)
        pasted = client.predict(pd.DataFrame([row]).to_csv(index=False), None, 0, api_name="/predict_table")[0]
        assert pasted["data"] == shown["data"]


@pytest.mark.parametrize("of_faces", [True, False])
def test_only_pages_of_faces_mention_faces(of_faces: bool, tmp_path: Path) -> None:
    predictor = Predictor.from_checkpoint(drawn_model(tmp_path / "a.ckpt", None))
    preprocessing = predictor.task.preprocessing
    assert preprocessing is not None
    predictor.task.preprocessing = preprocessing if of_faces else {**preprocessing, "faces": False}
    shown = [block.get_config() for block in make_page(predictor, "model", tmp_path).blocks.values()]
    texts = [f"{each.get('label')} {each.get('value')}" for each in shown if each.get("visible", True)]
    assert any("The whole image is used" in text for text in texts)
    assert any("face" in text for text in texts) == of_faces


def test_a_column_of_text_has_a_text_box(tmp_path: Path) -> None:
    pytest.importorskip("wordllama", reason="pip install 'ldl[text]'")
    table, votes = comments(40)
    shares = pd.crosstab(votes["id"], votes["label"], normalize="index").to_numpy()
    fitted = LDLRegressor(Softmax(), text_columns="comment", epochs=2).fit(table[["comment", "length"]], shares)
    row_page = RowPage(fitted.predictor_, tmp_path)
    assert [field.kind for field in row_page.fields] == ["text", "number"] and row_page.fields[0].initial == ""
    shown, chart, _ = row_page.show_fields("lovely idea, well done", 22)
    row = pd.DataFrame({"comment": ["lovely idea, well done"], "length": [22]})
    likeliest = fitted.predict(row)[0]
    assert shown["data"][0][1] == f"{likeliest.argmax()} ({likeliest.max():.1%})" and Path(chart).is_file()
    page = make_page(fitted.predictor_, "comments", tmp_path)
    boxes = [block for block in page.blocks.values() if getattr(block, "label", "") == "comment"]
    assert [type(box).__name__ for box in boxes] == ["Textbox"] and boxes[0].lines == 4
