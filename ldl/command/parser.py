"""The parser of a run, built once in a process, and the check of option names before it parses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any

import pytorch_lightning as pl
from jsonargparse import ActionConfigFile
from pytorch_lightning.cli import LightningArgumentParser

from ldl.command.arguments import Argument, plain
from ldl.command.compose import CLASS_KEYS
from ldl.command.messages import program
from ldl.command.values import MODE
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError, did_you_mean
from ldl.moved import old_names
from ldl.run.run_options import RUN_OPTIONS
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
