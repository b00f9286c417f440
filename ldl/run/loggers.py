"""Loggers: ``metrics.csv`` always, and Weights & Biases unless it is disabled."""

from __future__ import annotations

import codecs
import csv
import functools
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from pytorch_lightning.loggers import Logger, WandbLogger
from pytorch_lightning.loggers.logger import DummyExperiment, DummyLogger, rank_zero_experiment
from pytorch_lightning.utilities import rank_zero_only
from torch import Tensor
from typing_extensions import override

from ldl.checkpoint import replacing
from ldl.collective import process_rank
from ldl.command._compat import without_launch_inputs
from ldl.errors import LDLError

QUIET: dict[str, Any] = {"show_info": False, "quiet": True}

WAITS = {"init_timeout": 30.0, "finish_timeout": 300.0}
"""Seconds that wandb's server has at the start and at the end of a run.

wandb's defaults are 90 s and no limit. ``WANDB_INIT_TIMEOUT`` and ``WANDB_FINISH_TIMEOUT`` change them.
"""


LOGGED = ("log_metrics", "log_hyperparams", "log_graph", "save", "finalize", "after_save_checkpoint")
"""Methods of a logger that a trainer calls."""


class MetricsFile(Logger):
    """Writes ``metrics.csv``, which a resumed run continues; rows of steps that are repeated are replaced.

    Lightning's ``CSVLogger`` deletes the file first, and keeps up to 100 rows in memory, which a kill would lose.

    Args:
        run_dir: The run directory.
        first_step: Rows of an existing file before this step stay.
    """

    def __init__(self, run_dir: Path, first_step: int = 0) -> None:
        super().__init__()
        self.path, self.first_step = run_dir / "metrics.csv", first_step
        self._columns: list[str] | None = None

    @property
    @override
    def name(self) -> str:
        return ""

    @property
    @override
    def version(self) -> str:
        return ""

    @property
    @override
    def save_dir(self) -> str:
        return str(self.path.parent)

    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: ``config.yaml`` has the options."""

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Append a row; write the file anew if a metric has no column yet."""
        columns = self._begin()
        row = {name: value.item() if isinstance(value, Tensor) else value for name, value in metrics.items()}
        row["step"] = step
        if row.keys() <= set(columns):
            with open(self.path, "a", newline="", encoding="utf-8") as file:
                csv.DictWriter(file, columns).writerow(row)
        else:
            self._columns = sorted({*columns, *row})
            self._write([*self._rows(), row])

    @rank_zero_only
    @override
    def save(self) -> None:
        self._begin()

    def _begin(self) -> list[str]:
        """Return the columns; at the first call, remove the rows from ``first_step`` on."""
        if self._columns is None:
            rows = [row for row in self._rows() if row.get("step") and int(row["step"]) < self.first_step]
            self._columns = [name for name in (rows[0] if rows else ()) if any(row[name] for row in rows)]
            self._write(rows)
        return self._columns

    def _rows(self) -> list[dict[str, Any]]:
        if not self.path.is_file():
            return []
        # A kill or a full disk may have left an incomplete last row.
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        return list(csv.DictReader(line for line in lines if line.endswith("\n")))

    def _write(self, rows: list[dict[str, Any]]) -> None:
        if not rows:
            self.path.unlink(missing_ok=True)
            return
        with replacing(self.path) as file:
            writer = csv.DictWriter(codecs.getwriter("utf-8")(file), self._columns or (), extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)


class UsualLoggers(DummyLogger):
    """Stands for the loggers that a run has by default, in a list of loggers: ``--trainer.logger+=`` adds to them."""


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


def resolve_mode(mode: str, run: str = "") -> tuple[str, str]:
    """Return the mode of wandb, and the reason if a run that should be online is offline.

    The server is queried once per ``run`` and has about ten seconds to answer.
    """
    if mode == "auto":
        mode = os.environ.get("WANDB_MODE") or "auto"
    if mode not in ("auto", "online"):
        return mode, ""
    return _login(mode, run) if process_rank() == 0 else ("disabled", "")


@functools.lru_cache(maxsize=1)
def _login(mode: str, run: str) -> tuple[str, str]:
    import wandb

    _settings({})
    try:
        if wandb.login(prompt=False, verify=True):
            return "online", ""
    except wandb.Error as error:
        return "offline", _reason(error)
    return "offline", "no key is known" if mode == "online" else ""


class QuietWandb(WandbLogger):
    """Weights & Biases with one line of output at the start, besides warnings and errors.

    Args:
        announces: Whether to print the line.
        of_fold: Whether the run is a fold; the line then names the group of all folds.
        why: Reason if a run that should be online is offline.
        options: Options of ``WandbLogger``.
    """

    def __init__(self, announces: bool = True, of_fold: bool = False, why: str = "", **options: Any) -> None:
        super().__init__(options["name"], options["save_dir"], project=options["project"], id=options.get("id"))
        self.announces, self.of_fold, self.why = announces, of_fold, why
        self.options = {**options, "dir": options["save_dir"], "settings": _settings(options)}
        del self.options["save_dir"]
        self.run: Any = None

    @property
    @rank_zero_experiment
    @override
    def experiment(self) -> Any:
        if self.run is None:
            import wandb

            with without_launch_inputs():
                self.run = wandb.init(**self.options)
            self.run.define_metric("trainer/global_step")
            self.run.define_metric("*", step_metric="trainer/global_step", step_sync=True)
            if self.announces:
                print(f"wandb: {_place(self.run, self.of_fold, self.why)}", flush=True)
        return self.run


def _settings(options: dict[str, Any]) -> Any:
    """Return wandb's settings for ``options``. Raises LDLError if wandb rejects an option or a variable."""
    import wandb
    from pydantic import ValidationError

    waits: dict[str, Any] = {name: value for name, value in WAITS.items() if f"WANDB_{name.upper()}" not in os.environ}
    names = {"project": "project", "name": "run_name", "group": "run_group", "tags": "run_tags", "mode": "mode"}
    try:
        wandb.Settings(**{names[name]: value for name, value in options.items() if name in names})
        # Warnings but no news: the settings of a run would take effect too late.
        wandb.setup(settings=wandb.Settings(**QUIET))
        return wandb.Settings(**QUIET, **waits)
    except (ValidationError, wandb.Error) as error:
        raise LDLError(
            f"wandb: {_reason(error)}; correct --wandb or its variable, or pass --wandb.mode disabled"
        ) from error


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _place(run: Any, of_fold: bool, why: str = "") -> str:
    """Return where a run, or the group of its fold, is shown, or how to upload it."""
    if not run.offline:
        return f"group {run.group} of {run.project_url}" if of_fold else str(run.url)
    folder = Path(run.dir).parent
    if of_fold:
        folder = folder.parents[2] / "fold_*" / "wandb" / "offline-run-*"
    folder = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    since = f", since it cannot be sent now ({why})" if why else ""
    return f"kept offline{since}; `wandb login`, then `wandb sync {folder}` sends it"


def make_loggers(
    run_dir: Path,
    options: WandbOptions,
    config: dict[str, Any],
    first_step: int = 0,
    name: str | None = None,
    announces: bool = True,
    of_fold: bool = False,
) -> list[Logger]:
    """Make the loggers of one run, which write nothing yet.

    Args:
        run_dir: The run directory.
        options: Options of wandb.
        config: The complete configuration, for wandb.
        first_step: Step of the resumed checkpoint.
        name: Name of the run in wandb if ``options`` have none; None takes the name of the run directory.
        announces: Whether to print where wandb stores the run.
        of_fold: Whether the run is a fold, in a folder beside those of the other folds.
    """
    loggers: list[Logger] = [MetricsFile(run_dir, first_step)]
    mode, why = resolve_mode(options.mode, options.group if of_fold and options.group else str(run_dir))
    if mode != "disabled":
        loggers.append(
            QuietWandb(
                announces,
                of_fold,
                why,
                save_dir=run_dir,
                project=options.project,
                name=options.name or name or run_dir.name,
                group=options.group,
                tags=list(options.tags),
                mode=mode,
                config=config,
                **_continued(run_dir, mode == "online") if first_step else {},
            )
        )
    return loggers


def _continued(run_dir: Path, online: bool) -> dict[str, Any]:
    """Return options by which a run that is resumed in its directory keeps its id; ``wandb sync`` joins the parts."""
    found = (re.fullmatch(r"(?:offline-)?run-(\d+_\d+)-(.+)", path.name) for path in run_dir.glob("wandb/*run-*"))
    ids = [match[2] for match in sorted(filter(None, found), key=lambda match: match[1])]
    # Offline, wandb warns that it cannot resume.
    return {"id": ids[-1], "resume": "allow" if online else None} if ids else {}


class FaultTolerant:
    """Wraps a logger: its first error is a warning, after which it logs nothing.

    ``isinstance`` sees the class of the logger, which callbacks test.
    """

    def __init__(self, logger: Logger) -> None:
        self._logger, self._failed = logger, False

    @classmethod
    def around(cls, logger: Logger) -> Logger:
        """Return the wrapped logger."""
        return cast("Logger", cls(logger))

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._logger)

    def __getattr__(self, name: str) -> Any:
        if name == "_logger":  # of a copy that is not made yet
            raise AttributeError(name)
        if name in LOGGED:
            return lambda *args, **kwargs: self._attempt(lambda: getattr(self._logger, name)(*args, **kwargs), None)
        if name == "experiment":
            return self._attempt(lambda: getattr(self._logger, "experiment"), DummyExperiment())  # noqa: B009
        return getattr(self._logger, name)

    def _attempt(self, log: Callable[[], Any], otherwise: Any) -> Any:
        if self._failed:
            return otherwise
        try:
            return log()
        except Exception as error:
            self._failed = True
            kind = type(self._logger).__name__
            warnings.warn(f"{kind} logs no more: {type(error).__name__}: {_reason(error)}", stacklevel=3)
            return otherwise


fault_tolerant = FaultTolerant.around
"""The function of version 0.2.0."""


def finish(loggers: Sequence[Logger]) -> None:
    """Close the runs of wandb, so that the next fold starts a new one."""
    if any(isinstance(logger, WandbLogger) for logger in loggers) and process_rank() == 0:
        import wandb

        try:
            wandb.finish()
        except Exception as error:
            warnings.warn(f"wandb could not end its run: {_reason(error)}", stacklevel=2)
