"""The command-line parser: LightningCLI without subcommands, and with one-line errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from operator import or_
from typing import Any, Literal, get_args

import jsonargparse._typehints as typehints
import pytorch_lightning as pl
import torch
from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt
from pytorch_lightning.callbacks import ProgressBar
from pytorch_lightning.cli import LightningArgumentParser, LightningCLI

from ldl.checkpoint import write_whole
from ldl.data.base import LDLDataModule
from ldl.running.arguments import options_of, words_of
from ldl.running.class_paths import check_factories
from ldl.running.configs import find_config
from ldl.running.nodes import meet, take_rank
from ldl.running.ranges import check_ranges
from ldl.running.refusals import refusals
from ldl.running.stopping import attend
from ldl.running.strategies import check_strategy
from ldl.running.tracking import WandbOptions
from ldl.running.training import Select
from ldl.spec import current_path
from ldl.start.wording import program
from ldl.task import Task

Stage = Literal["fit", "test", "predict", "crossval", "compare", "tune"]
MatmulPrecision = Literal["highest", "high", "medium"]

# Ours replace them: a run directory of our own layout, and batches dealt to the processes by the data modules.
TRAINER_DEFAULTS = {"use_distributed_sampler": False}


class LDLCLI(LightningCLI):
    """Parses the command line into ``config``, of which, or of a changed clone of it, the parts are made one by one.

    Args:
        args: The command line; it may name configurations as :func:`ldl.running.configs.find_config` does.
        options: Is filled with the names of all options, also where parsing fails.
    """

    def __init__(self, args: list[str], options: list[str] | None = None) -> None:
        self._options = options if options is not None else []
        self.given = options_of(args)
        with _our_rules_for_classes():
            super().__init__(
                Task,
                LDLDataModule,
                subclass_mode_data=True,
                save_config_callback=None,
                trainer_defaults=TRAINER_DEFAULTS,
                seed_everything_default=0,
                parser_kwargs={
                    "exit_on_error": False,
                    "prog": program(),
                    "description": "Train, test and cross-validate models of label distributions.",
                },
                args=_with_files(args),
                run=False,
                auto_configure_optimizers=False,
                load_from_checkpoint_support=False,
            )
        check_factories(self.config.model)
        take_rank(self.config.trainer.num_nodes)

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        parser.add_argument(
            "--stage",
            type=Stage,
            default="fit",
            help="fit: train, then test. test, predict: a checkpoint on the data. crossval: fit and test every fold. "
            "compare: the candidates of a file, such as -c configs/compare/tabular.yaml, on the same folds. "
            "tune: settings of a search space, such as -c configs/tune/tabular_ldlf.yaml beside the run's.",
        )
        parser.add_argument(
            "--ckpt_path",
            type=str | None,
            default=None,
            help="Checkpoint to resume from, test or predict with; last: checkpoints/last.ckpt of --run_dir, and where "
            "there is none yet, begin.",
        )
        parser.add_argument(
            "--run_dir", type=str | None, default=None, help="Folder of this run; default runs/TIME_DATA_HEAD."
        )
        parser.add_argument(
            "--select",
            type=Select,
            default="last",
            help="Weights that are tested after fit: the last, or the best by validation KL.",
        )
        parser.add_argument(
            "--jobs",
            type=PositiveInt,
            default=1,
            help="Processes of this machine that do folds, candidates or trials at the same time.",
        )
        parser.add_argument(
            "--scheduler", type=str | None, default=None, help="Address of a Dask scheduler whose workers do them."
        )
        parser.add_argument(
            "--matmul_precision",
            type=MatmulPrecision,
            default="highest",
            help="Of products of float32 matrices: highest is float32 throughout, high is TF32 and medium bfloat16, on "
            "GPUs that have these.",
        )
        parser.add_argument("--wandb", type=WandbOptions, default=WandbOptions(), help="Weights & Biases.")

        whole_numbers_first(parser)
        self._options += [name.lstrip("-") for action in parser._actions for name in action.option_strings]

    def _set_seed(self) -> None:
        check_ranges(self.config)
        super()._set_seed()

    def instantiate_classes(self) -> None:
        """Do nothing yet: cross-validation makes a task and a trainer once a fold."""

    def make_task(self, config: Namespace) -> Task:
        """The task of a configuration."""
        return self._instantiate(config).model

    def make_data(self, config: Namespace) -> LDLDataModule:
        """The data module of a configuration."""
        return self.parser.instantiate(config).data

    def _instantiate(self, config: Namespace) -> Namespace:
        torch.set_float32_matmul_precision(config.matmul_precision)
        without_data = config.clone()
        without_data.pop("data")
        return self.parser.instantiate(without_data)

    def make_trainer(self, config: Namespace, callbacks: list[pl.Callback], **overrides: Any) -> pl.Trainer:
        """The trainer of a configuration; it writes whole checkpoints.

        Args:
            config: The configuration.
            callbacks: Added to the configured ones, but for those that the configuration has already.
            **overrides: Arguments of the trainer that replace the configured ones.

        Raises:
            LDLError: Lightning refuses the options, such as an unknown accelerator.
        """
        arguments = {**dict(self._instantiate(config).trainer.items(branches=True, nested=False)), **overrides}
        given = arguments.pop("callbacks") or []
        given = given if isinstance(given, list) else [given]
        # Lightning tells callbacks apart by this key, and refuses two of one, and two progress bars.
        taken = {callback.state_key for callback in given}
        kinds = (ProgressBar,) if any(isinstance(callback, ProgressBar) for callback in given) else ()
        callbacks = [one for one in callbacks if one.state_key not in taken and not isinstance(one, kinds)]
        check_strategy(arguments["strategy"])
        with refusals():
            trainer = pl.Trainer(**arguments, callbacks=[*given, *callbacks])
        check_strategy(trainer.strategy)  # what "auto" has come to
        return meet(attend(write_whole(trainer)))

    def dump(self, config: Namespace) -> str:
        """``config`` as complete YAML, from which the run can be repeated, in a directory of its own.

        A run that was resumed is repeated from the start: resuming is exact, so that gives the same.
        """
        config = config.clone()
        config.pop("config", None)
        config.run_dir, config.jobs, config.scheduler = None, 1, None
        if config.stage in ("fit", "crossval"):
            config.ckpt_path = None
        return self.parser.dump(config, skip_unset=False, format="yaml")


def whole_numbers_first(parser: LightningArgumentParser) -> None:
    """Let ``1`` be one batch: it is all of them as 1.0, and the cache of typing may swap the members of a union."""
    for action in parser._actions:
        members = get_args(getattr(action, "_typehint", None))
        if int in members and float in members:
            action._typehint = reduce(or_, sorted(members, key=lambda kind: kind is float))  # type: ignore[attr-defined]


def _with_files(args: list[str]) -> list[str]:
    """The command line with the files of the configurations that it names."""
    return words_of(
        option._replace(words=["--config", find_config(option.value)]) if option.is_config and option.value else option
        for option in options_of(args)
    )


@contextmanager
def _our_rules_for_classes() -> Iterator[None]:
    """Make a newly named class start from its own defaults, and find classes that moved by the paths they had before.

    jsonargparse hands arguments of the class named before to the new one where it has any of the same name:
    SGD would get AdamW's weight decay, another data set the folds of the first.
    """
    discard, resolve = typehints.discard_init_args_on_class_path_change, typehints.resolve_class_path_by_name

    def discard_all(parser_or_action: Any, previous: Any, value: Any) -> None:
        if previous and "init_args" in previous and previous["class_path"] != value["class_path"]:
            previous["init_args"] = Namespace()
        discard(parser_or_action, previous, value)

    typehints.discard_init_args_on_class_path_change = discard_all
    typehints.resolve_class_path_by_name = lambda cls, name: resolve(cls, current_path(name))
    try:
        yield
    finally:
        typehints.discard_init_args_on_class_path_change = discard
        typehints.resolve_class_path_by_name = resolve
