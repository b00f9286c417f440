"""The configuration of a run: the values of all options, from which its parts are built."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytorch_lightning as pl
import torch
from jsonargparse import ActionConfigFile, ArgumentError, Namespace
from pytorch_lightning.cli import LightningArgumentParser

from ldl.command.arguments import Argument, plain, words_of
from ldl.command.classes import check_factories
from ldl.command.configs import CLASS_KEYS, compose, with_current_paths
from ldl.command.messages import one_line, program, user_errors
from ldl.command.stages import find_stage
from ldl.command.values import BEGINS, MODE, document, our_rules
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError, did_you_mean
from ldl.moved import old_names
from ldl.run.processes import set_node_rank
from ldl.run.run_options import RUN_OPTIONS, check_ranges
from ldl.task import Task

__getattr__ = old_names(__name__)

GROUPS = ("model", "trainer", "wandb")
"""Groups of options; ``data`` is a class of its own."""
OF_PARSER = ("config", "print_config", "help")
"""Options that the parser itself has."""


@cache
def run_parser() -> LightningArgumentParser:
    """Return the parser of a run."""
    parser = LightningArgumentParser(
        prog=program(),
        exit_on_error=False,
        description="Train and test models of label distributions.",
        parser_mode=MODE,
        dump_header=[f"pytorch_lightning=={pl.__version__}"],
    )
    parser.add_argument("-c", "--config", action=ActionConfigFile, help="Path to a configuration file.")
    parser.add_argument("--seed_everything", type=bool | int, default=0, help="Seed of the run; false for none.")
    parser.add_lightning_class_args(pl.Trainer, "trainer")
    parser.set_defaults({"trainer.use_distributed_sampler": False})  # data modules distribute batches over processes
    parser.add_lightning_class_args(Task, "model")
    parser.add_lightning_class_args(LDLDataModule, "data", subclass_mode=True)
    for name, (option, text) in RUN_OPTIONS.items():
        parser.add_argument(f"--{name}", type=option.annotation, default=option.default, help=text)
    parser.set_defaults({"model.optimizer": None})  # jsonargparse would hand its arguments on to another one
    return parser


@cache
def option_names() -> frozenset[str]:
    """Return the names of all options of a run, without those of classes."""
    names = (plain(name) for name, _ in run_parser().get_defaults(skip_validation=True).items())
    return frozenset([*names, *OF_PARSER])


def check_names(content: dict[str, Any], arguments: Sequence[Argument]) -> None:
    """Raise LDLError for a name that is no option of a run. Options of classes are left to the parser.

    Args:
        content: The merged configurations.
        arguments: The command line.
    """
    names = option_names()
    for name in _names_of(content):
        if not _is_option(name, names):
            near = did_you_mean(name, [*names, *GROUPS]) or did_you_mean(name.split(".")[0], [*GROUPS, "data"])
            raise LDLError(f"unknown option {name!r}{near}; see {program()} --help")
    for each in arguments:
        if not each.name.startswith("-"):
            raise LDLError(f"{each.name!r} is no option; options begin with --, such as --data.path {each.name}")
        name = each.option.lstrip("-").removesuffix("+")
        if each.name in ("-c", "--config"):
            raise LDLError(f"{each.name} needs the name or the file of a configuration")
        if not _is_option(name, names) and not name.endswith(".help"):
            raise LDLError(f"unknown option {each.name}{did_you_mean(name, names)}; see {program()} --help")


def _names_of(content: dict[str, Any]) -> Iterator[str]:
    """Yield the dotted names of the options in a configuration."""
    for name, value in content.items():
        if isinstance(value, dict) and value and not CLASS_KEYS & value.keys():
            yield from (f"{name}.{option}" for option in value)
        else:
            yield str(name)


def _is_option(name: str, names: Collection[str]) -> bool:
    """Return whether a name is an option, a group of options, or below an option whose value may be a class."""
    parts = name.split(".")
    above = {".".join(parts[:number]) for number in range(1, len(parts) + 1)}
    return name in GROUPS or not above.isdisjoint(names)


PARTS = ("data", "model", "trainer")
"""Options of the objects of a run."""


@dataclass(frozen=True)
class Config:
    """The options of a run with their values.

    Attributes:
        values: The values; those of a class are its path and its options.
        arguments: The command line that gave some of them.
    """

    values: Namespace
    arguments: Sequence[Argument] = ()

    @property
    def seed(self) -> int | None:
        """The seed of the run; None for none."""
        return seed_of(self.values)

    @property
    def head(self) -> str:
        """Class of the head, without its module."""
        return str(self.values.model.head.class_path.rpartition(".")[2])

    def of_fold(self, fold: int) -> Config:
        """Return the configuration that trains one fold."""
        values = self.values.clone()
        values.stage = "fit"
        if "fold" in values.data.init_args:
            values.data.init_args.fold = fold
        return replace(self, values=values)

    def text(self, chosen: Mapping[str, Any] | None = None) -> str:
        """Return the configuration as complete YAML, which repeats the run from its start in a directory of its own.

        Args:
            chosen: Values that the data module has chosen for options that are None.
        """
        values = self.values.clone()
        values.pop("config", None)
        values.run_dir, values.jobs, values.scheduler = None, 1, None
        options = values.data.init_args
        for name, value in (chosen or {}).items():
            if name in options and options[name] is None:
                options[name] = value
        if values.stage in ("fit", "crossval"):
            values.ckpt_path = None
        with our_rules():
            return str(run_parser().dump(values, skip_unset=False)).removeprefix(BEGINS)

    def instantiate(self, name: str) -> Any:
        """Build an object of ``PARTS``: the data module, the task, or the arguments of the trainer."""
        torch.set_float32_matmul_precision(self.values.matmul_precision)
        values = self.values.clone()
        for other in PARTS:
            if other != name:
                values.pop(other)
        with our_rules():
            # Of the groups, only the task is an object.
            return run_parser().instantiate(values, instantiate_groups=name == "model")[name]


def seed_of(values: Namespace) -> int | None:
    """Return the seed of a configuration; None for none."""
    return None if values.seed_everything is False else int(values.seed_everything)


def parse(content: dict[str, Any], arguments: Sequence[Argument]) -> Config:
    """Parse the merged configurations and the command line of a run.

    Raises:
        LDLError: An option, a class, a value or a configuration is wrong.
    """
    content, others = compose(content, arguments)
    check_names(content, others)
    parser = run_parser()
    parser.prog = program()
    vars(parser).pop("print_config", None)  # left there by a command line that failed
    words = [with_current_paths(word) for word in words_of(others)]
    with our_rules(), user_errors():
        try:
            values = parser.parse_args([f"--config={document(content)}", *words])
        except (ArgumentError, ImportError) as error:
            raise LDLError(one_line(str(error))) from None
        except RecursionError:
            raise LDLError("a configuration is nested too deep, or contains itself") from None
    find_stage(str(values.stage))
    check_ranges(values)
    for name in ("ckpt_path", "run_dir"):
        if values[name] == "":
            raise LDLError(f"--{name} is empty; give a path, or leave it out")
        values[name] = values[name] and os.path.expanduser(values[name])
    check_factories(values.model)
    set_node_rank(values.trainer.num_nodes)
    config = Config(values, arguments)
    if config.seed is not None:
        pl.seed_everything(config.seed, workers=True, verbose=False)
    return config
