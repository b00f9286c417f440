"""The configuration of a run: the values of all options, from which its parts are built."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytorch_lightning as pl
import torch
from jsonargparse import ArgumentError, Namespace

from ldl.command.arguments import Argument, words_of
from ldl.command.classes import check_factories
from ldl.command.compose import compose
from ldl.command.configs import with_current_paths
from ldl.command.messages import one_line, program, user_errors
from ldl.command.parser import check_names, run_parser
from ldl.command.values import BEGINS, document, our_rules
from ldl.errors import LDLError
from ldl.run.processes import set_node_rank
from ldl.run.run_options import check_ranges

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
