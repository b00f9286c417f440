"""Settings of other libraries that the process holds: they change no result, and the process gets them back."""

from __future__ import annotations

import logging
import os
import random
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
import torch

from ldl.estimator import LDLRegressor
from ldl.heads import LDLF, MaxEnt, MeanPredictor, Pool, Scaled, Softmax, StructRF, Trained
from ldl.inference import Predictor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
D = RNG.dirichlet(np.ones(3), 40)
POOL = Pool([Trained(Softmax(), epochs=2, scaling="quantile_normal"), Scaled(MaxEnt(l2=0.1)), StructRF(trees=2)])
CASES = {
    "values": (
        LDLRegressor(Softmax(hidden=[4]), epochs=2, conformal="cross", conformal_folds=2),
        np.round(5 * X[:, 0]),
    ),
    "distributions": (LDLRegressor(POOL), D),
}
CLUSTER = {"SLURM_NTASKS": "4", "SLURM_JOB_ID": "7", "SLURM_PROCID": "1", "SLURM_LOCALID": "1", "SLURM_NODEID": "0"}


def found(case: str, folder: Path) -> list[np.ndarray]:
    """What users ask of an estimator, and of its checkpoint."""
    estimator, y = CASES[case]
    estimator.fit(X, y)
    estimator.save(folder / "model.ckpt")
    saved = Predictor.from_checkpoint(folder / "model.ckpt").predict(X)
    answers = [estimator.predict(X), estimator.predict_distribution(X), saved.distribution]
    answers += [np.array([estimator.score(X, y)]), np.array(list(estimator.measure(X, y).values()))]
    return answers + ([estimator.predict_interval(X)] if case == "values" else [])


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[np.ndarray]]:
    return {case: found(case, tmp_path_factory.mktemp(case)) for case in CASES}


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in variables.items():
            patched.setenv(name, value)
        yield


@contextmanager
def srun_is_there() -> Iterator[None]:
    """``srun`` on the path of a node where a notebook runs; Lightning then warns, which here is an error."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patched:
        patched.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
        warnings.simplefilter("error")
        yield


SETTINGS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "sklearn gives frames": lambda: sklearn.config_context(transform_output="pandas"),
    "float64": lambda: default_dtype(torch.float64),
    "bfloat16": lambda: default_dtype(torch.bfloat16),
    "another device": lambda: torch.device("meta"),
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "numpy raises": lambda: np.errstate(all="raise"),
    "SLURM": lambda: environment(SLURM_JOB_NAME="notebook", **CLUSTER),
    "srun": srun_is_there,
    "torchrun": lambda: environment(
        RANK="1", WORLD_SIZE="2", LOCAL_RANK="1", GROUP_RANK="0", TORCHELASTIC_RUN_ID="none", LOCAL_WORLD_SIZE="2"
    ),
    "Lightning": lambda: environment(PL_TRAINER_PRECISION="bf16-true", PL_TRAINER_MAX_EPOCHS="1", PL_GLOBAL_SEED="3"),
}


def settings() -> dict[str, Any]:
    """What a fit could leave behind."""
    return {
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "gradients": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "threads": torch.get_num_threads(),
        "numpy": np.geterr(),
        "sklearn": sklearn.get_config(),
        "environment": dict(os.environ),
    }


@pytest.mark.parametrize("case", ["values", pytest.param("distributions", marks=pytest.mark.slow)])
@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_change_nothing_and_stay(
    setting: str, case: str, expected: dict[str, list[np.ndarray]], tmp_path: Path
) -> None:
    with SETTINGS[setting]():
        before = settings()
        answers = found(case, tmp_path)
        after = settings()
    assert after == before
    for answer, wanted in zip(answers, expected[case], strict=True):
        np.testing.assert_allclose(answer, wanted, rtol=1e-6, atol=1e-6)


SMALL = StructRF(trees=3, depth=6)


@pytest.mark.parametrize("head", [SMALL, LDLF(trees=2, depth=3, outputs=None, batches=2)])
def test_a_fit_is_silent_and_leaves_no_trace(
    head: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PL_GLOBAL_SEED", "5")
    level = logging.getLogger("pytorch_lightning").level
    before = np.random.get_state()[1].copy(), torch.get_rng_state(), random.getstate(), dict(os.environ)  # noqa: NPY002
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LDLRegressor(head, epochs=2).fit(X, D).predict(X)
    assert capfd.readouterr() == ("", "") and not list(tmp_path.iterdir())
    assert np.array_equal(np.random.get_state()[1], before[0]) and torch.equal(torch.get_rng_state(), before[1])  # noqa: NPY002
    assert random.getstate() == before[2] and dict(os.environ) == before[3]
    assert logging.getLogger("pytorch_lightning").level == level


def test_ctrl_c_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: Any, **columns: Any) -> None:
        raise KeyboardInterrupt

    handler = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(MeanPredictor, "fit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        LDLRegressor("MeanPredictor").fit(X, D)
    assert signal.getsignal(signal.SIGINT) is handler
