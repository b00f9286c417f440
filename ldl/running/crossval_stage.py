"""``--stage crossval``: every fold of the configured protocol, each once, here or in other processes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from jsonargparse import Namespace
from rich.console import Console
from rich.progress import Progress

from ldl.cells.coordinator import Cell, Workers
from ldl.cells.sharing import share, unshare
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.running import console, stopping
from ldl.running.cell_key import cell_key, check_one_process
from ldl.running.crossval import all_folds, crossvalidate, fit_fold
from ldl.running.folder import nothing_left
from ldl.running.folds import Key, done_folds, fold_folder
from ldl.running.lock import alone_in
from ldl.running.naming import choose_folder, run_name
from ldl.running.parser import LDLCLI
from ldl.running.refusals import refusals
from ldl.running.run import make_task, make_trainer, seed_of, show
from ldl.running.training import seed_everything
from ldl.task import Task

Parse = Callable[[list[str]], LDLCLI]

OTHER_WORKER = (
    "a worker reads other data, weights or plugins, or is of another version of ldl, than the process that asks it"
)


def crossval(cli: LDLCLI, parse: Parse) -> None:
    """Fit and test every fold, each from the same seed, in ``fold_0``, ``fold_1``, ...; those that are done are kept.

    Beside the folds' means, ``results.json`` gets the metrics over all their test instances together, each of the
    same weight, and ``charts/`` shows these. The folds are one group in wandb.

    Args:
        cli: The command line.
        parse: Parses another one, in any process.

    Raises:
        LDLError: the run directory has folds of something else, or a fold was refused or has failed.
    """
    config = cli.config
    if config.ckpt_path is not None:
        raise LDLError("--stage crossval takes no --ckpt_path: with the --run_dir of what was begun it goes on")
    workers = Workers(config.jobs, config.scheduler)
    if workers.are_others:
        check_one_process(config, "--jobs and --scheduler train each fold")
    data = cli.make_data(of_fold(config, 0))
    folder = choose_folder(config, data, config.model.head.class_path.rpartition(".")[2])
    runs = FoldRuns(cli, data, folder)
    with alone_in(folder), nothing_left(folder), refusals():
        stopping.watch.again = f"the same command with --run_dir {folder} goes on"
        seed_everything(runs.seed)
        data.setup()
        numbers = all_folds(data)
        key = cell_key(cli.dump(of_fold(config, 0)), data)
        done = done_folds(folder, numbers, key)
        if done:
            console.say(f"{len(done)} of {len(numbers)} folds are done")
        if workers.are_others and len(done) < len(numbers):
            _train_elsewhere(workers, runs, parse, key, [number for number in numbers if number not in done])
        content = crossvalidate(
            runs.make_task,
            data,
            seed=runs.seed,
            trainer=runs.make_trainer,
            folder=folder,
            select=config.select,
            each=console.tell_fold,
            key=key,
        )
        show(folder, content, data)


class FoldRuns:
    """Makes what trains the folds of a configuration.

    Args:
        cli: The command line.
        data: Its data module, at the fold that is trained.
        folder: The run directory.
    """

    def __init__(self, cli: LDLCLI, data: LDLDataModule, folder: Path) -> None:
        self.cli, self.data, self.folder = cli, data, folder
        self.seed = seed_of(cli.config)
        self._told = False

    def make_task(self) -> Task:
        """A task that is not trained."""
        task = make_task(self.cli, of_fold(self.cli.config, self.data.fold), self.data, {})
        if not self._told:
            console.say(console.pretrained(task.backbone))
        return task

    def make_trainer(self) -> pl.Trainer:
        """A trainer that writes into the folder of the fold."""
        config = of_fold(self.cli.config, self.data.fold)
        head = config.model.head.class_path.rpartition(".")[2]
        own, group = fold_folder(self.folder, self.data.fold), run_name(self.folder, self.data, head)
        trainer = make_trainer(self.cli, config, self.data, own, {}, group)
        if not self._told:
            console.say(console.opening(head, self.data, trainer, "crossval"))
        self._told = True
        return trainer

    def be_silent(self) -> None:
        """Show nothing."""
        self._told = True
        self.cli.config.trainer.enable_progress_bar = False


def of_fold(config: Namespace, fold: int) -> Namespace:
    """The configuration that trains one fold."""
    clone = config.clone()
    clone.stage = "fit"
    if "fold" in clone.data.init_args:
        clone.data.init_args.fold = fold
    return clone


@dataclass(frozen=True)
class _Elsewhere:
    """How another process comes to a cross-validation.

    Attributes:
        parse: Parses a command line there.
        config: File of the complete configuration.
        shared: The data, set up, for processes of this machine; None lets each read them.
        folder: The run directory.
        count: Number of folds.
        key: What the folds depend on.
    """

    parse: Parse
    config: str
    shared: bytes | None
    folder: str
    count: int
    key: tuple[tuple[str, str], ...]


def _train_elsewhere(workers: Workers, runs: FoldRuns, parse: Parse, key: Key, numbers: list[int]) -> None:
    """Have folds trained by other processes. Raises LDLError where some were refused or have failed."""
    config, data, folder = runs.cli.config, runs.data, runs.folder
    with tempfile.TemporaryDirectory(dir=folder, prefix=".cells-") as scratch:
        text = Path(scratch).absolute() / "config.yaml"
        text.write_text(runs.cli.dump(of_fold(config, 0)), encoding="utf-8")
        shared = share(data, text.parent) if workers.scheduler is None else None
        plan = _Elsewhere(parse, str(text), shared, str(folder.absolute()), data.num_folds, tuple(key.items()))
        cells = [Cell(f"fold {number}", partial(_train_fold, plan, number)) for number in numbers]
        shows = config.trainer.enable_progress_bar is not False and Console().is_terminal
        console.say(console.opening_elsewhere(config.model.head.class_path, data, str(workers)))
        with Progress(disable=not shows, transient=True) as progress:
            bar = progress.add_task("folds", total=data.num_folds, completed=data.num_folds - len(numbers))

            def each(name: str, result: dict[str, Any]) -> None:
                console.tell_fold(result)
                progress.advance(bar)

            failed = workers.do(cells, each)
    if failed:
        name, reason = next(iter(failed.items()))
        raise LDLError(
            f"{len(failed)} of {data.num_folds} folds failed ({', '.join(failed)}); {name}: {reason}; the same command "
            f"with --run_dir {folder} tries them again"
        )


def _train_fold(plan: _Elsewhere, number: int) -> dict[str, Any]:
    """Train one fold, and return its ``results.json``; the data are read once a process."""
    runs, key = _open(plan), dict(plan.key)
    own = fold_folder(runs.folder, number)
    with refusals():
        select = runs.cli.config.select
        made = fit_fold(number, runs.make_task, runs.data, runs.seed, runs.make_trainer, own, select, plan.count, key)
    return made[1].result


@lru_cache(maxsize=1)
def _open(plan: _Elsewhere) -> FoldRuns:
    cli = plan.parse(["-c", plan.config])
    if plan.shared is None:
        data = cli.make_data(cli.config)
        data.setup()
        if cell_key(cli.dump(cli.config), data) != dict(plan.key):
            raise LDLError(OTHER_WORKER)
    else:
        data = unshare(plan.shared)
    runs = FoldRuns(cli, data, Path(plan.folder))
    runs.be_silent()
    return runs
