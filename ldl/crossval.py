"""Cross-validation: every fold a run of its own, one ``results.json`` over all."""

from __future__ import annotations

from typing import Any

from jsonargparse import Namespace

from ldl.config import LDLCLI
from ldl.errors import LDLError
from ldl.run import Run


def crossval(cli: LDLCLI) -> None:
    """Fit and test every fold of the configured protocol, each from the same seed, in ``fold_0``, ``fold_1``, ...

    The folds are one group in wandb. Works in one process and in several: all of them go through the
    folds in step.
    """
    if cli.config.ckpt_path is not None:
        raise LDLError("--stage crossval trains every fold anew; leave --ckpt_path out")
    # Chooses the directory and finds how many folds there are; it is not run.
    first = Run(cli, _of_fold(cli.config, 0))
    folds: list[dict[str, Any]] = []
    seconds = 0.0
    for number in range(first.data.num_folds):
        folder = first.folder / f"fold_{number}"
        run = Run(cli, _of_fold(cli.config, number), folder, wandb_group=first.folder.name)
        try:
            entry, fit_seconds = run.fit_and_test()
        finally:
            run.close()
        folds.append(entry)
        seconds += fit_seconds
        run.finish([entry], fit_seconds, table=False)
    first.finish(folds, seconds)


def _of_fold(config: Namespace, fold: int) -> Namespace:
    clone = config.clone()
    clone.stage = "fit"
    clone.data.init_args.fold = fold
    return clone
