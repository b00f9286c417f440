"""Options of a run that no class of ldl declares: those of the command line and of Lightning's Trainer."""

from __future__ import annotations

from typing import Any, Literal

from jsonargparse import Namespace

from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.options import names_with_role
from ldl.run.loggers import WandbOptions
from ldl.validation.option import NEUTRAL, Option

Stage = str  # the name of a registered stage
Select = Literal["last", "best"]
MatmulPrecision = Literal["highest", "high", "medium"]


def _option(annotation: Any, default: Any, role: str = "", least: float | None = None) -> Option:
    return Option(default, least, role=role, annotation=annotation)


RUN_OPTIONS: dict[str, tuple[Option, str]] = {
    "stage": (_option(Stage, "fit", "display"), "Stage of the run, by name."),
    "ckpt_path": (
        _option(str | None, None, "start"),
        "Checkpoint to resume, test or predict; last: checkpoints/last.ckpt of --run_dir, or a new run.",
    ),
    "run_dir": (_option(str | None, None, "place"), "Folder of this run; default runs/TIME_DATA_HEAD."),
    "select": (
        _option(Select, "last"),
        "Weights that are tested after fit: the last, or the best by validation KL.",
    ),
    "jobs": (
        _option(int, 1, "speed", least=1),
        "Processes of this machine that run folds, candidates or trials at once.",
    ),
    "scheduler": (_option(str | None, None, "speed"), "Address of a Dask scheduler whose workers run them."),
    "matmul_precision": (
        _option(MatmulPrecision, "highest"),
        "Precision of float32 matrix products on GPUs: highest is float32, high TF32, medium bfloat16.",
    ),
    "quote_formulas": (
        _option(bool, False, "display"),
        "Write names in predictions.csv that begin with =, +, - or @ with an apostrophe first, since spreadsheet "
        "programs read them as formulas.",
    ),
    "wandb": (_option(WandbOptions, WandbOptions(), "display"), "Weights & Biases."),
}
"""Options of a run besides ``model``, ``data`` and ``trainer``, with their descriptions."""

TRAINER_OPTIONS = {
    "num_nodes": Option(least=1),
    "max_epochs": Option(least=-1, what="-1 for no end"),
    "min_epochs": Option(least=0),
    "max_steps": Option(least=-1, what="-1 for no end"),
    "min_steps": Option(least=0),
    "val_check_interval": Option(above=0, what="batches, or a share of an epoch"),
    "check_val_every_n_epoch": Option(least=1),
    "num_sanity_val_steps": Option(least=-1, what="-1 for all"),
    "log_every_n_steps": Option(least=0, what="0 for none"),
    "accumulate_grad_batches": Option(least=1),
    "gradient_clip_val": Option(least=0, what="0 for none"),
    "limit_val_batches": Option(role="limit"),
    "limit_test_batches": Option(role="limit"),
    "limit_predict_batches": Option(role="limit"),
    "overfit_batches": Option(role="limit"),
    "fast_dev_run": Option(role="limit"),
    "barebones": Option(role="limit"),
    "logger": Option(role="display"),
    "enable_progress_bar": Option(role="display"),
    "enable_checkpointing": Option(role="display"),
    "enable_model_summary": Option(role="display"),
}
"""Ranges and roles of the Trainer's options, which Lightning does not declare; it checks other values itself."""

WRITER_OPTIONS = {
    **dict.fromkeys(("dirpath", "save_dir"), Option(role="place", is_path=True)),
    **dict.fromkeys(("filename", "name", "version", "sub_dir", "prefix"), Option(role="place")),
}
"""Options of Lightning's callbacks and loggers that are folders, or that become parts of paths in a folder."""

RANGES = {
    "seed_everything": Option(least=0, most=2**32 - 1),
    **{name: option for name, (option, _) in RUN_OPTIONS.items() if option.least is not None},
    **{f"trainer.{name}": option for name, option in TRAINER_OPTIONS.items() if option.range},
}
"""Ranges of numbers by their names on the command line; None and words are for Lightning."""


def run_names(*roles: str) -> set[str]:
    """Return the names of the options of a run that have one of some roles."""
    return {name for name, (option, _) in RUN_OPTIONS.items() if option.role in roles}


def trainer_names(*roles: str) -> set[str]:
    """Return the names of the trainer's options that have one of some roles."""
    return {name for name, option in TRAINER_OPTIONS.items() if option.role in roles}


def is_neutral(name: str) -> bool:
    """Return whether an option changes no result, by its dotted name in a configuration, without ``init_args``."""
    group, _, rest = name.partition(".")
    option = rest.partition(".")[0]
    if group == "data":
        return option in names_with_role(LDLDataModule, *NEUTRAL)
    if group == "trainer":
        return option in trainer_names(*NEUTRAL)
    return group in run_names(*NEUTRAL)


def check_ranges(config: Namespace) -> None:
    """Raise LDLError for a number out of its range, or a random seed."""
    if config.seed_everything is True:
        raise LDLError("seed_everything is true, so no run could be repeated; give a number, or false for no seed")
    for name, option in RANGES.items():
        value = config.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and not option.accepts(value):
            raise LDLError(f"{name} {value!r} must be {option.range}{option.what and f', {option.what}'}")
