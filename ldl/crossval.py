"""Cross-validation: every fold a run of its own, one ``results.json`` over all."""

from __future__ import annotations

from pathlib import Path

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
    folder: Path | None = None
    folds, seconds = [], 0.0
    count = 1
    while len(folds) < count:
        config = _of_fold(cli.config, len(folds))
        run = Run(cli, config, folder and folder / f"fold_{len(folds)}", wandb_group=folder.name if folder else None)
        if folder is None:
            # The first run chose the directory and found how many folds there are.
            count, folder = run.data.num_folds, run.folder
            run = Run(cli, config, folder / "fold_0", wandb_group=folder.name)
        try:
            entry, fit_seconds = run.fit_and_test()
        finally:
            run.close()
        folds.append(entry)
        seconds += fit_seconds
        run.finish(folds[-1:], fit_seconds, table=False)
    run.folder = folder
    run.finish(folds, seconds)


def _of_fold(config: Namespace, fold: int) -> Namespace:
    clone = config.clone()
    clone.data.init_args.fold = fold
    return clone
