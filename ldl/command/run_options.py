"""Options of a run besides ``model``, ``data`` and ``trainer``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Stage = Literal["fit", "test", "predict", "crossval", "compare", "tune"]
Select = Literal["last", "best"]
MatmulPrecision = Literal["highest", "high", "medium"]


@dataclass
class WandbOptions:
    """Weights & Biases.

    Args:
        mode: ``auto`` is online if you are logged in, else offline; ``disabled`` switches wandb off.
        project: Project of the run.
        name: Name of the run; None takes the name of the run directory, with data and head.
        group: Group of the run; None makes one for each cross-validation.
        tags: Tags of the run.
    """

    mode: Literal["auto", "online", "offline", "disabled"] = "auto"
    project: str = "ldl"
    name: str | None = None
    group: str | None = None
    tags: Sequence[str] = ()


RUN_OPTIONS: dict[str, tuple[Any, Any, str]] = {
    "stage": (
        Stage,
        "fit",
        "fit: train, then test. test, predict: a checkpoint on the data. crossval: fit and test every fold. "
        "compare: the candidates of a file, such as -c configs/compare/tabular.yaml, on the same folds. "
        "tune: hyperparameters of a search space, such as -c configs/tune/tabular_ldlf.yaml beside the run's.",
    ),
    "ckpt_path": (
        str | None,
        None,
        "Checkpoint to resume from, test or predict with; last: checkpoints/last.ckpt of --run_dir, or a new run if "
        "there is none yet.",
    ),
    "run_dir": (str | None, None, "Folder of this run; default runs/TIME_DATA_HEAD."),
    "select": (Select, "last", "Weights that are tested after fit: the last, or the best by validation KL."),
    "jobs": (
        int,
        1,
        "Processes of this machine that run folds, candidates or trials at the same time.",
    ),
    "scheduler": (str | None, None, "Address of a Dask scheduler whose workers run them."),
    "matmul_precision": (
        MatmulPrecision,
        "highest",
        "Precision of float32 matrix products: highest is float32 throughout, high is TF32 and medium bfloat16, on "
        "GPUs that have these.",
    ),
    "quote_formulas": (
        bool,
        False,
        "Write names in predictions.csv that begin with =, +, - or @ with an apostrophe before them, for spreadsheet "
        "programs, which read such cells as formulas. Numbers stay as they are.",
    ),
    "wandb": (WandbOptions, WandbOptions(), "Weights & Biases."),
}
"""By name their type, default and description."""
