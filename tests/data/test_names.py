"""What a file, or a frame, names is found by its name, and what several names could mean is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.io
import torch
import yaml
from sklearn.datasets import load_diabetes

from ldl.bags import Bags
from ldl.command import main
from ldl.data import TabularLDL, TabularValues
from ldl.data.base import Loaded
from ldl.data.names import label_places
from ldl.errors import LDLError
from ldl.estimator import LDLRegressor
from ldl.faces import FaceFolder
from ldl.heads import MaxEnt
from ldl.inference import Predictor
from ldl.labels import LabelSpace
from ldl.options import options

pytestmark = pytest.mark.usefixtures("blank")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
D = torch.softmax(torch.from_numpy(2 * X @ RNG.normal(size=(3, 3))), 1).numpy()
SCORES = LabelSpace.ordinal([1, 2, 10])
TURNED = [1, 2, 0]
"""Where columns stand in the other order."""
QUIET = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]


def frame(names: list[str], order: list[int] | None = None, **more: Any) -> pd.DataFrame:
    labels = pd.DataFrame(D, columns=[f"label:{name}" for name in names]).iloc[:, order or [0, 1, 2]]
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(**more).join(labels)


def save(table: pd.DataFrame, path: Path) -> Path:
    table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False)
    return path


def arrow_table(array: np.ndarray, names: list[Any]) -> Any:
    return pytest.importorskip("pyarrow").table({str(name): column for name, column in zip(names, array.T)})


FRAMES = [lambda array, names: pd.DataFrame(array, columns=names), arrow_table]
Frame = Callable[[np.ndarray, list[Any]], Any]


@pytest.mark.parametrize(
    ("names", "labels", "places"),
    [
        (["c", "a", "b"], LabelSpace.nominal("abc"), [1, 2, 0]),
        (["10", "01", "2.0"], SCORES, [1, 2, 0]),
        (["10", "1", "2"], LabelSpace.nominal(["low", "middle", "high"]), [1, 2, 0]),
        (["01", "1", "1.0"], LabelSpace.nominal(["1", "01", "1.0"]), [1, 0, 2]),
        (["a", "b", "d"], LabelSpace.nominal("abc"), None),
        (["1", "2", "3"], SCORES, None),
        (["1", "2", "٠"], LabelSpace.ordinal([0, 1, 2]), None),
        (["1", "1.0", "2"], SCORES, None),
        (["1", "1.0", "2"], LabelSpace.nominal("abc"), None),
        (["a", "b", "c"], SCORES, None),
    ],
)
def test_labels_are_found_by_name(names: list[str], labels: LabelSpace, places: list[int] | None) -> None:
    if places is not None:
        assert label_places(names, labels, "y", "rename them") == places
    else:
        with pytest.raises(LDLError, match="^y: the columns are .*, but the labels are .*; rename them$"):
            label_places(names, labels, "y", "rename them")


@pytest.mark.parametrize(("kind", "in_memory"), [("csv", 256), ("parquet", 0)])
@pytest.mark.parametrize(
    ("names", "given", "meant"),
    [
        (["1", "2", "10"], {"label_values": [1, 2, 10]}, SCORES),
        (["x", "y", "z"], {"label_names": ["x", "y", "z"]}, LabelSpace.nominal("xyz")),
        (["x", "y", "z"], {"label_names": ["x", "y", "z"], "label_values": [1, 2, 10]}, SCORES),
        (["0", "1", "2"], {"label_names": ["x", "y", "z"]}, LabelSpace.nominal("xyz")),
    ],
)
def test_labels_of_a_file(
    kind: str, in_memory: float, names: list[str], given: dict[str, Any], meant: LabelSpace, tmp_path: Path
) -> None:
    for order in (None, TURNED):
        path = save(frame(names, order), tmp_path / f"{order is None}.{kind}")
        data = TabularLDL(str(path), in_memory=in_memory, cache_dir=str(tmp_path / "cache"), **given)
        data.setup()
        assert data.labels == meant
        np.testing.assert_allclose(data.columns["target"][torch.arange(60)].numpy(), D, atol=1e-6)


@pytest.mark.parametrize("make", FRAMES, ids=["pandas", "pyarrow"])
def test_labels_of_a_frame(make: Frame) -> None:
    labels = SCORES
    turned = make(D[:, TURNED], [2, 10, 1])
    plain, named = (LDLRegressor(MaxEnt(l2=0.1), labels=labels).fit(X, y) for y in (D, turned))
    assert np.array_equal(plain.predict(X), named.predict(X))
    assert plain.score(X, D) == plain.score(X, turned)
    assert plain.measure(X, D) == plain.measure(X, turned)
    other = make(D, [1, 2, 3])
    for ask in (plain.score, plain.measure, LDLRegressor(MaxEnt(l2=0.1), labels=labels).fit):
        with pytest.raises(LDLError, match="^y: the columns are '1', '2', '3', but the labels are '1', '2', '10'"):
            ask(X, other)


@pytest.mark.slow
def test_a_checkpoint_is_tested_and_trained_on_by_name(tmp_path: Path) -> None:
    """Without the option of its labels, too, of which the checkpoint knows."""
    given = ["--data.label_values=[1,2,10]"]
    paths = [save(frame(["1", "2", "10"], order), tmp_path / f"{order is None}.csv") for order in (None, TURNED)]
    run = ["-c", "configs/runs/tabular/softmax.yaml", "--data.val_fraction=0", "--model.decoder=expectation", *QUIET]
    main([*run, *given, f"--data.path={paths[0]}", "--trainer.max_epochs=2", f"--run_dir={tmp_path / 'run'}"])
    run.append(f"--ckpt_path={tmp_path / 'run' / 'checkpoints' / 'last.ckpt'}")
    made = []
    for path in paths:
        out = tmp_path / f"out {path.stem}"
        main([*run, "--stage=test", f"--data.path={path}", f"--run_dir={out}"])
        main([*run, *given, f"--data.path={path}", "--trainer.max_epochs=3", f"--run_dir={out / 'on'}"])
        made.append([json.loads((folder / "results.json").read_text())["mean"] for folder in (out, out / "on")])
    assert made[0] == made[1] and made[0][0] == json.loads((tmp_path / "run" / "results.json").read_text())["mean"]


@pytest.mark.slow
def test_a_checkpoint_of_other_labels_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["-c", "configs/runs/tabular/softmax.yaml", "--data.val_fraction=0", *QUIET]
    path = save(frame(["a", "b", "c"]), tmp_path / "t.csv")
    main([*run, f"--data.path={path}", "--trainer.max_epochs=1", f"--run_dir={tmp_path / 'run'}"])
    path = save(frame(["a", "d", "c"]), tmp_path / "u.csv")
    run += [f"--ckpt_path={tmp_path / 'run' / 'checkpoints' / 'last.ckpt'}", f"--data.path={path}", "--stage=test"]
    with pytest.raises(SystemExit):
        main([*run, f"--run_dir={tmp_path / 'out'}"])
    assert "(nominal 'a', 'b', 'c'), but the data have inputs (3,) and 3 labels (nominal 'a', 'd', 'c')" in (
        capsys.readouterr().err
    )


@options
class OwnRows(TabularLDL):
    """A set of one's own, whose labels stand in whatever order."""

    def load(self) -> Loaded:
        super().load()
        return Loaded(LabelSpace.nominal("cab"), {"target": torch.tensor(D[:, [2, 0, 1]])})


def test_a_set_of_one_s_own_follows_a_checkpoint(tmp_path: Path) -> None:
    data = OwnRows(str(save(frame(["a", "b", "c"]), tmp_path / "t.csv")))
    data.follow(LabelSpace.nominal("abc"), None, None)
    data.setup()
    assert data.labels.names == ("a", "b", "c") and np.array_equal(data.columns["target"].numpy(), D)


def arrays(**named: np.ndarray) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        np.savez(folder / "t.npz", **named)
        return folder / "t.npz"

    return write


def cells(**named: np.ndarray) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        scipy.io.savemat(folder / "t.mat", named)
        return folder / "t.mat"

    return write


def folder_of(**named: np.ndarray) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        for name, array in named.items():
            np.save(folder / f"{name}.npy", array)
        return folder

    return write


def table(kind: str, **named: Any) -> Callable[[Path], Path]:
    return lambda folder: save(pd.DataFrame({"a": X[:, 0], **named}), folder / f"t.{kind}")


V, G = np.arange(60.0), np.arange(60) // 6
LABELLED = {f"label:{name}": column for name, column in zip("xyz", D.T)}


@pytest.mark.parametrize(
    ("write", "data", "option", "taken", "several"),
    [
        (table("csv", age=V, Target=V), TabularValues, "value_key", "Target", "'age', 'Target'"),
        (table("parquet", age=V, value=V), TabularValues, "value_key", "value", "'age', 'value'"),
        (table("csv", age=V, group=G, person=G), TabularValues, "group_key", "group", "'group', 'person'"),
        (table("parquet", **LABELLED, Group=G, person=G), TabularLDL, "group_key", "Group", "'Group', 'person'"),
        (arrays(X=X, data=X, labels=D), TabularLDL, "feature_key", "data", "'X', 'data'"),
        (arrays(X=X, labels=D, y=D), TabularLDL, "target_key", "y", "'labels', 'y'"),
        (cells(X=X, x=X, value=V), TabularValues, "feature_key", "x", "'X', 'x'"),
        (folder_of(features=X, data=X, labels=D), TabularLDL, "feature_key", "features", "'data', 'features'"),
        (folder_of(features=X, labels=D, group=G, persons=G), TabularLDL, "group_key", "group", "'group', 'persons'"),
    ],
)
def test_of_several_usual_names_one_is_asked_for(
    write: Callable[[Path], Path],
    data: type[TabularValues] | type[TabularLDL],
    option: str,
    taken: str,
    several: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, cache = str(write(tmp_path)), str(tmp_path / "cache")
    with pytest.raises(LDLError, match=f"each of {several} may be the .*; choose one with --data.{option} NAME$"):
        data(path, cache_dir=cache).setup()
    made = data(path, cache_dir=cache, **{option: taken})  # type: ignore[arg-type]
    made.setup()
    assert f"{option.removesuffix('_key')} {taken!r}" in made.taken
    assert f"taken from {path}: {made.taken}\n" in capsys.readouterr().out


@pytest.mark.slow
def test_the_column_taken_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the run's configuration a file that has one more usual name is read as before, and tested without groups."""
    diabetes = load_diabetes(as_frame=True).frame
    path = save(diabetes, tmp_path / "diabetes.csv")
    run = ["-c", "configs/runs/tabular/aaknn.yaml", "--data=TabularValues", f"--data.path={path}", *QUIET]
    with pytest.raises(SystemExit):
        main([*run, f"--run_dir={tmp_path / 'run'}"])
    assert "each of 'age', 'target' may be the value; choose one with --data.value_key" in capsys.readouterr().err
    save(diabetes.drop(columns="age").assign(person=np.arange(442) // 2), path)
    main([*run, "--data.folds=20", f"--run_dir={tmp_path / 'run'}"])
    taken = "value 'target', group 'person', 9 features 'sex', 'bmi', 'bp', 's1', 's2', 's3', 's4', 's5' and 1 more"
    assert f"taken from {path}: {taken}\n" in capsys.readouterr().out
    assert f"Taken from the file: {taken}." in (tmp_path / "run" / "model_card.md").read_text()
    kept = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["data"]["init_args"]
    assert (kept["value_key"], kept["group_key"], kept["feature_key"]) == ("target", "person", None)
    save(diabetes.drop(columns="age").assign(person=np.arange(442) // 2, value=0, group=1), path)
    with pytest.raises(SystemExit):
        main([*run, f"--run_dir={tmp_path / 'again'}"])
    capsys.readouterr()
    main(["-c", str(tmp_path / "run" / "config.yaml"), "--trainer.limit_test_batches=1", f"--run_dir={tmp_path / 'a'}"])
    said = capsys.readouterr().out
    assert "value 'target', group 'person', 10 features" in said and "no features are 'group'" in said
    save(diabetes.drop(columns="age")[::-1], tmp_path / "new.csv")
    given = [f"--ckpt_path={tmp_path / 'run' / 'checkpoints' / 'last.ckpt'}", f"--data.path={tmp_path / 'new.csv'}"]
    main(["--stage=test", *given, f"--run_dir={tmp_path / 'test'}"])
    assert "value 'target', no group 'person', 9 features" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["Label", "Bag", "class", "label:x"])
def test_bags_have_no_other_columns_than_features(name: str, tmp_path: Path) -> None:
    bags = pd.DataFrame({"label": G % 2, "bag": G, "a": X[:, 0]})
    data = Bags(str(save(bags, tmp_path / "t.csv")), folds=2)
    data.setup()
    assert data.taken == "label 'label', bag 'bag', 1 features 'a'"
    path = save(bags.assign(**{name: G}), tmp_path / "t.csv")
    data = Bags(str(path), folds=2)
    data.setup()
    assert data.feature_names == ["a"] and f"left out {name!r}" in data.taken


def test_lists_of_faces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "faces.csv"
    path.write_text("path,age,person,note\na.jpg,3,1,x\n")
    FaceFolder(path=str(path)).read()
    said = f"taken from {path}: columns 'path', 'age', 'person'; left out 'note'\n"
    assert capsys.readouterr().out == said
    path.write_text("path,age,person,group\na.jpg,3,1,1\n")
    with pytest.raises(LDLError, match="each of 'group', 'person' may be the group; choose one with --data.group_key"):
        FaceFolder(path=str(path)).read()


def test_a_predictor_knows_the_key_of_training(tmp_path: Path) -> None:
    path = arrays(X=X, labels=D)(tmp_path)
    run = ["-c", "configs/runs/tabular/aaknn.yaml", f"--data.path={path}", *QUIET, f"--run_dir={tmp_path / 'run'}"]
    main(run)
    arrays(features=X + 1, X=X)(tmp_path)
    predictor = Predictor.from_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt")
    assert np.array_equal(predictor.predict(path).distribution, predictor.predict(X).distribution)
