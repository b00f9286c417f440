"""Rows as users have them: arrays, frames and files, scaled and ordered as in training by the predictor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.io
import torch
from fakes.bags import LABELS as SIDES
from fakes.bags import fitted, some_bags
from fakes.tasks import rows as skewed
from fakes.tasks import small_task

from ldl.backbones.base import Identity
from ldl.bags import MILBoost
from ldl.collective import Collective
from ldl.data import TabularLDL
from ldl.data.tables.scaling import FeatureScaler
from ldl.deploy.export import Deployed
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import BoostedTrees, MaxEnt, Softmax
from ldl.inference import Predictor
from ldl.inference.inputs import read_instances
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.task import Task

NAMES = ["age", "height", "weight"]
RNG = np.random.default_rng(0)
X = np.concatenate([RNG.exponential(size=(30, 2)), RNG.integers(40, 90, (30, 1))], 1)
D = RNG.dirichlet(np.ones(4), 30)
FRAME = pd.DataFrame(X, columns=NAMES)
LABELLED = FRAME.join(pd.DataFrame(D, columns=[f"label:{name}" for name in "abcd"]))


def save(folder: Path, kind: str, frame: pd.DataFrame = FRAME) -> Path:
    file = folder / f"table.{kind}"
    if kind == "csv":
        frame.to_csv(file, index=False)
    elif kind == "parquet":
        frame.to_parquet(file)
    elif kind == "npz":
        np.savez(file, features=frame.to_numpy())
    else:
        scipy.io.savemat(file, {"features": frame.to_numpy()})
    return file


def trained(folder: Path, head: Head | None = None, named: bool = True, **options: Any) -> tuple[Predictor, Any]:
    """A predictor whose task knows a table's names and scaling, and what the bare network gives for its rows."""
    if named:
        LABELLED.to_csv(folder / "train.csv", index=False)
    else:
        np.savez(folder / "train.npz", mine=X, labels=D)
    data = TabularLDL(folder / f"train.{'csv' if named else 'npz'}", **options)  # type: ignore[arg-type]
    data.setup()
    torch.manual_seed(0)
    task = Task(head or Softmax(), Identity())
    task.build(data.labels, data.input_shape)
    task.preprocessing = data.preprocessing
    with torch.no_grad():
        return Predictor(task, batch_size=7), task.eval()(data.scaled).numpy()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Predictor, Any]:
    return trained(tmp_path_factory.mktemp("rows"))


@pytest.mark.parametrize("scaling", ["standard", "ranks", "hellinger", "quantile_normal", "quantile_uniform", "none"])
def test_every_scaling(scaling: str, tmp_path: Path) -> None:
    predictor, wanted = trained(tmp_path, scaling=scaling, clip=0.7)
    np.testing.assert_allclose(predictor(X).distribution, wanted, atol=1e-6)
    raw = predictor.task(torch.from_numpy(X).float()).detach().numpy()
    assert scaling == "none" or np.abs(raw - wanted).max() > 0.01  # what the bare network makes of raw rows


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz", "mat"])
def test_every_kind_of_file(model: tuple[Predictor, Any], kind: str, tmp_path: Path) -> None:
    predictor, wanted = model
    found = predictor(save(tmp_path, kind))
    np.testing.assert_allclose(found.distribution, wanted, atol=1e-6)
    assert found.names is None and found.value is None and found.std is None
    assert found.distribution.dtype == np.float32
    if kind in ("csv", "parquet"):
        mixed = LABELLED.assign(who="somebody")[["label:b", "weight", "who", "age", "label:a", "height"]]
        found = predictor(str(save(tmp_path, kind, mixed)))
        np.testing.assert_allclose(found.distribution, wanted, atol=1e-6)


@pytest.mark.parametrize(
    "given",
    [X.tolist(), torch.from_numpy(X).requires_grad_(), FRAME[NAMES[::-1]].astype({"weight": "Int64"})],
    ids=["lists", "tensor with gradients", "frame in another order"],
)
def test_every_kind_of_object(model: tuple[Predictor, Any], given: Any) -> None:
    predictor, wanted = model
    np.testing.assert_allclose(predictor.predict(given).distribution, wanted, atol=1e-6)


def test_frames_have_names(model: tuple[Predictor, Any]) -> None:
    found = model[0](FRAME.set_index(pd.Index([f"person {number}" for number in range(30)]))[10:20])
    assert found.names == [f"person {number}" for number in range(10, 20)]
    np.testing.assert_allclose(found.distribution, model[1][10:20], atol=1e-6)


CASES: list[tuple[str, Any, str]] = [
    ("fewer features", X[:, :2], "2 features a row, but the model takes 3 .'age', 'height', 'weight'.; give those of"),
    ("transposed", X.T, r"shape \(3, 30\), and the model takes \(N, 3\) \('age', .*\), .* transpose them, features\.T"),
    ("one row", X[0], r"have shape \(3,\); a matrix with one row a sample is needed"),
    ("text", X.astype(str), "features are <U32, not numbers"),
    ("NaN", np.where(X > 80, np.nan, X), "features row .*, column 2 is nan; every entry must be a finite number"),
    ("rows of unequal length", [[1.0, 2.0], [1.0]], "inputs are no array"),
    ("a missing column", FRAME.drop(columns="height"), "no column 'height', which the model was trained on; there are"),
    ("a misspelt column", FRAME.rename(columns={"height": "heigth"}), "did you mean 'heigth'"),
    ("a column of text", FRAME.assign(weight="heavy"), "column 'weight' is .*, not numbers; convert text"),
    ("a doubled column", pd.concat([FRAME, FRAME[["age"]]], axis=1), "column 'age' is there twice"),
    ("no file", "nowhere.csv", "no data file at"),
]


@pytest.mark.parametrize(("given", "words"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_other_rows_are_refused(model: tuple[Predictor, Any], given: Any, words: str) -> None:
    with pytest.raises(LDLError, match=words) as refused:
        model[0](given)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 400


def test_a_table_without_names_is_taken_in_order(tmp_path: Path) -> None:
    predictor, wanted = trained(tmp_path, named=False, feature_key="mine")
    np.testing.assert_allclose(predictor(FRAME).distribution, wanted, atol=1e-6)
    np.testing.assert_allclose(predictor(save(tmp_path, "csv", LABELLED)).distribution, wanted, atol=1e-6)
    np.testing.assert_allclose(predictor(tmp_path / "train.npz").distribution, wanted, atol=1e-6)
    with pytest.raises(LDLError, match="4 columns .'age', .*, but the model takes 3 features, whose names are unknown"):
        predictor(FRAME.assign(more=1))


def test_numbers_name_columns_without_names(tmp_path: Path) -> None:
    predictor, wanted = trained(tmp_path, named=False, feature_key="mine")
    for first in (0, 1):
        numbered = pd.DataFrame(X, columns=range(first, first + 3))[[first + 2, first, first + 1]]
        np.testing.assert_allclose(predictor(numbered).distribution, wanted, atol=1e-6)
        for kind in ("csv", "parquet"):
            file = save(tmp_path, kind, numbered.rename(columns=str))
            np.testing.assert_allclose(predictor(file).distribution, wanted, atol=1e-6)
    numbered.rename(columns=str).join(LABELLED.filter(like="label:")).to_csv(tmp_path / "test.csv", index=False)
    tested = TabularLDL(tmp_path / "test.csv")  # type: ignore[arg-type]
    tested.setup()
    tested.prepare_as(predictor.task.preprocessing)
    np.testing.assert_allclose(predictor.task(tested.scaled).detach(), wanted, atol=1e-6)
    # The first row of a file without names is a row.
    (tmp_path / "rows.csv").write_text("\n".join(",".join(map(str, row)) for row in X))
    with pytest.raises(LDLError, match="rows.csv: its columns are the numbers .*; a .csv needs a row of names"):
        predictor(tmp_path / "rows.csv")


def test_masked_entries_are_missing(model: tuple[Predictor, Any]) -> None:
    predictor, wanted = model
    masked = np.ma.array(X, mask=X > 80)
    np.testing.assert_allclose(predictor(np.ma.array(X, mask=False)).distribution, wanted, atol=1e-6)
    for given in (masked, list(masked), torch.masked.as_masked_tensor(torch.from_numpy(X), torch.from_numpy(X <= 80))):
        with pytest.raises(LDLError, match=r"features row .*, column 2 is nan"):
            predictor(given)


def test_missing_features_go_to_heads_that_take_them(tmp_path: Path) -> None:
    LABELLED.assign(height=FRAME["height"].where(FRAME.index > 5)).to_csv(tmp_path / "t.csv", index=False)
    data = TabularLDL(tmp_path / "t.csv", missing="keep")  # type: ignore[arg-type]
    data.setup()
    head = BoostedTrees(rounds=2)
    task = Task(head, Identity())
    task.build(data.labels, data.input_shape)
    task.preprocessing = data.preprocessing
    head.fit(Rows(data.scaled, data.columns["target"]), Collective())
    wanted = task.eval()(data.scaled).detach().numpy()
    for given in (tmp_path / "t.csv", pd.read_csv(tmp_path / "t.csv"), data.features):
        np.testing.assert_allclose(Predictor(task)(given).distribution, wanted, atol=1e-6)


def test_what_is_no_distribution_is_refused(tmp_path: Path) -> None:
    """Also in the last batch, which no other follows."""
    predictor, _ = trained(tmp_path)
    next(predictor.task.head.parameters()).data.fill_(torch.nan)
    for rows in (X[:5], X):
        with pytest.raises(LDLError, match="Softmax.forward gives no distribution for row 0 of the data"):
            predictor(rows)


def test_unknown_scaling_is_reported() -> None:
    with pytest.raises(LDLError, match="Predictor needs a trained task"):
        Predictor(Task(Softmax()))
    task = Task(Softmax(), Identity())
    task.build(LabelSpace.nominal("ab"), (3,))
    with pytest.warns(UserWarning, match="nothing is known of the scaling of features: rows are taken as scaled"):
        predictor = Predictor(task)
    np.testing.assert_allclose(predictor(X).distribution, task(torch.from_numpy(X).float()).detach(), atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_it_computes_in_float32_after_any_precision(dtype: torch.dtype) -> None:
    """A head that is fitted keeps float64."""
    task = small_task(Softmax()).to(dtype)
    with pytest.raises(LDLError, match=f"the weights are {dtype}, and files compute in float32; call task.float"):
        Deployed(task)
    Predictor(task)(skewed(5))
    assert all(weight.dtype == torch.float32 for weight in task.parameters())
    fitted = small_task(MaxEnt()).to(dtype)
    Predictor(fitted)(skewed(5))
    assert {part.dtype for part in fitted.head.state_dict().values()} == {torch.promote_types(dtype, torch.float32)}


@pytest.fixture(scope="module")
def bags() -> tuple[Predictor, np.ndarray, np.ndarray]:
    """A predictor of bags, raw bags with NaN for what is missing, and what the bare network gives for them."""
    padded, target = some_bags(0, bags=12)
    raw = 3 * padded.double().numpy() + 5
    scaler = FeatureScaler("standard", None)
    scaler.fit(raw.reshape(-1, 4)[~np.isnan(raw.reshape(-1, 4)).any(1)])
    scaled = torch.stack([scaler.apply(bag, "") for bag in raw])
    head = fitted(MILBoost(rounds=5), scaled, target)
    task = Task(MILBoost(rounds=5), Identity())
    task.build(SIDES, (-1, 4))
    task.head.load_state_dict(head.state_dict())
    task.preprocessing = {"features": list("wxyz"), "key": None, "scaling": scaler.state_dict()}
    return Predictor(task, batch_size=5), raw, head(scaled).detach().numpy()


def long(raw: np.ndarray) -> pd.DataFrame:
    """A row an instance, bags in turns."""
    rows = [[f"bag {bag}", *instance] for instances in raw.transpose(1, 0, 2) for bag, instance in enumerate(instances)]
    return pd.DataFrame(rows, columns=["bag", *"wxyz"]).dropna()


def test_bags(bags: tuple[Predictor, np.ndarray, np.ndarray], tmp_path: Path) -> None:
    predictor, raw, wanted = bags
    ragged = [bag[~np.isnan(bag).any(1)] for bag in raw]
    table = long(raw)
    names = list(dict.fromkeys(table["bag"]))
    files = {"headed.csv": table[["z", "bag", "y", "x", "w"]].assign(label=1), "bare.csv": table}
    for name, frame in files.items():
        frame.to_csv(tmp_path / name, index=False, header=name == "headed.csv")
    table.assign(label=0)[["label", "bag", *"wxyz"]].to_csv(tmp_path / "labelled.csv", index=False, header=False)
    table.to_parquet(tmp_path / "bags.parquet")
    for given in (raw, torch.from_numpy(raw), ragged, table, *sorted(tmp_path.iterdir())):
        found = predictor(given)
        np.testing.assert_allclose(found.distribution, wanted, atol=1e-6)
        assert found.names == (names if isinstance(given, pd.DataFrame | Path) else None)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "there is no bag to predict"),
        ([np.ones((2, 3))], "bag 0: 3 features a row, but the model takes 4"),
        ([np.ones((2, 4)), np.ones(4)], r"bag 1: features have shape \(4,\)"),
        (pd.DataFrame(np.ones((2, 4)), columns=list("wxyz")), "no column 'bag', the bag of each row"),
    ],
)
def test_other_bags_are_refused(bags: tuple[Predictor, Any, Any], given: Any, words: str) -> None:
    with pytest.raises(LDLError, match=words):
        bags[0](given)


@pytest.mark.parametrize("nameless", [None, " "], ids=repr)
def test_rows_of_no_bag_are_refused(nameless: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame(np.ones((4, 2)), columns=["x", "y"]).assign(bag=["a", "b", nameless, nameless])
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for given in (frame, *tmp_path.iterdir()):
        said = "(the (bag|group, column 'bag',) of row 2 is missing|line 4, column 'bag' is '.*', which is) .*; give"
        with pytest.raises(LDLError, match=said):
            read_instances(given, (-1, 2), {"features": ["x", "y"]})
