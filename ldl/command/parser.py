"""The parser of a run: LightningCLI without subcommands, built once in a process, with one-line errors."""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytorch_lightning as pl
import torch
from jsonargparse import ArgumentError, Namespace
from pytorch_lightning.callbacks import ProgressBar
from pytorch_lightning.cli import LightningArgumentParser, LightningCLI
from pytorch_lightning.loggers import Logger
from pytorch_lightning.plugins.environments import LightningEnvironment

from ldl.checkpoint import write_whole
from ldl.command.arguments import Given, plain, tokenize, words_of
from ldl.command.classes import BASES, check_factories, find_class
from ldl.command.configs import merge, read_config, read_option, with_current_paths
from ldl.command.messages import one_line, program, refusals
from ldl.command.values import BEGINS, MODE, document, our_rules
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.run.loggers import UsualLoggers
from ldl.run.processes import check_strategy, is_single_in_slurm, set_node_rank
from ldl.run.run_options import RUN_OPTIONS, check_ranges
from ldl.run.signals import SignalHandlers, listen_for_requeue, watch_processes
from ldl.task import Task
from ldl.validation.yaml_text import resolved

# The data modules distribute batches over the processes.
TRAINER_DEFAULTS = {"use_distributed_sampler": False}

OPTIMIZER = "torch.optim.AdamW"
"""The default of ``Task``."""

FORM = {"class_path", "init_args", "dict_kwargs"}
"""Keys of a class in a configuration."""

USUAL_LOGGERS = f"{UsualLoggers.__module__}.{UsualLoggers.__qualname__}"


class LDLCLI(LightningCLI):
    """Parses a command line into ``config``. The parts of a run are built from it, or from a changed clone of it.

    Attributes:
        given: The options of the command line.

    Args:
        args: The command line; it may name configurations as :func:`ldl.command.configs.find_config` accepts them.

    Raises:
        LDLError: an option, a class, a value or a configuration is wrong.
    """

    built: LightningArgumentParser | None = None
    """The parser, once it is built in this process."""

    def __init__(self, args: list[str]) -> None:
        self.given = tokenize(args)
        with our_rules(), refusals():
            super().__init__(
                Task,
                LDLDataModule,
                subclass_mode_data=True,
                save_config_callback=None,
                trainer_defaults=TRAINER_DEFAULTS,
                seed_everything_default=0,
                parser_kwargs={
                    "exit_on_error": False,
                    "description": "Train and test models of label distributions.",
                    "parser_mode": MODE,
                },
                args=_with_one_config(self.given),
                run=False,
                auto_configure_optimizers=False,
                load_from_checkpoint_support=False,
            )
        for name in ("ckpt_path", "run_dir"):
            if self.config[name] == "":
                raise LDLError(f"--{name} is empty; give a path, or leave it out")
            self.config[name] = self.config[name] and os.path.expanduser(self.config[name])
        check_factories(self.config.model)
        set_node_rank(self.config.trainer.num_nodes)

    def setup_parser(self, *args: Any, **kwargs: Any) -> None:
        """Build the parser at the first call in a process."""
        if LDLCLI.built is None:
            super().setup_parser(*args, **kwargs)
            LDLCLI.built = self.parser
        self.parser = LDLCLI.built
        self.parser.prog = program()

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        for name, (option, text) in RUN_OPTIONS.items():
            parser.add_argument(f"--{name}", type=option.annotation, default=option.default, help=text)
        parser.set_defaults({"model.optimizer": None})  # jsonargparse would hand its arguments on to another one

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        vars(parser).pop("print_config", None)  # left there by a command line that failed
        try:
            self.config = parser.parse_args(args)
        except (ArgumentError, ImportError) as error:
            options = [plain(name) for name, _ in parser.get_defaults().items()]
            raise LDLError(one_line(str(error), [*options, "print_config"])) from None
        except RecursionError:
            raise LDLError("a configuration is nested too deep, or contains itself") from None
        check_ranges(self.config)

    def instantiate_classes(self) -> None:
        """Do nothing yet: cross-validation builds a task and a trainer for each fold."""

    def make_task(self, config: Namespace) -> Task:
        """Build the task of a configuration."""
        return self._instantiate(config).model

    def make_data(self, config: Namespace) -> LDLDataModule:
        """Build the data module of a configuration."""
        with our_rules():
            return self.parser.instantiate(config).data

    def _instantiate(self, config: Namespace) -> Namespace:
        torch.set_float32_matmul_precision(config.matmul_precision)
        without_data = config.clone()
        without_data.pop("data")
        with our_rules():
            return self.parser.instantiate(without_data)

    def make_trainer(
        self, config: Namespace, callbacks: list[pl.Callback], beside: Sequence[Logger] = (), **overrides: Any
    ) -> pl.Trainer:
        """Build the trainer of a configuration; it writes each checkpoint completely or not at all.

        Args:
            config: The configuration.
            callbacks: Callbacks besides the configured ones; those that the configuration has too are left out.
            beside: Loggers that are added if the configuration names loggers, in place of ``UsualLoggers``.
            **overrides: Arguments of the trainer that replace the configured ones.

        Raises:
            LDLError: Lightning does not accept the options, or ldl does not support the strategy.
        """
        arguments = {**dict(self._instantiate(config).trainer.items(branches=True, nested=False)), **overrides}
        given = arguments.pop("callbacks") or []
        given = given if isinstance(given, list) else [given]
        # Lightning accepts one callback per key, and one progress bar.
        taken = {callback.state_key for callback in given}
        kinds = (ProgressBar,) if any(isinstance(callback, ProgressBar) for callback in given) else ()
        callbacks = [one for one in callbacks if one.state_key not in taken and not isinstance(one, kinds)]
        if beside and (named := arguments["logger"]) not in (None, True, False):
            named = named if isinstance(named, list) else [named]
            arguments["logger"] = [*(each for each in named if not isinstance(each, UsualLoggers)), *beside]
        check_strategy(arguments["strategy"])
        plugins = arguments["plugins"]
        if arguments["barebones"]:
            raise LDLError(
                "trainer.barebones logs and saves nothing, and a run does both; use it with pl.Trainer alone"
            )
        if is_single_in_slurm(arguments):
            arguments["plugins"] = LightningEnvironment()
        with refusals():
            listen_for_requeue(plugins)
            trainer = pl.Trainer(**arguments, callbacks=[SignalHandlers(), *given, *callbacks])
        check_strategy(trainer.strategy)  # which Lightning has chosen for "auto"
        if arguments["sync_batchnorm"] and trainer.world_size > 1 and trainer.strategy.root_device.type == "cpu":
            raise LDLError("trainer.sync_batchnorm needs GPUs, and this run has processes on CPUs; leave it out")
        return watch_processes(write_whole(trainer))

    def dump(self, config: Namespace, chosen: Mapping[str, Any] | None = None) -> str:
        """Return ``config`` as complete YAML, which repeats the run from its start in a directory of its own.

        Args:
            config: The configuration.
            chosen: Values that the data module has chosen for options that are None.
        """
        config = config.clone()
        config.pop("config", None)
        config.run_dir, config.jobs, config.scheduler = None, 1, None
        options = config.data.init_args
        for name, value in (chosen or {}).items():
            if name in options and options[name] is None:
                options[name] = value
        if config.stage in ("fit", "crossval"):
            config.ckpt_path = None
        with our_rules():
            return str(self.parser.dump(config, skip_unset=False)).removeprefix(BEGINS)


def _with_one_config(given: Sequence[Given]) -> list[str]:
    """Return a command line with one configuration, into which all configurations and named classes are merged.

    A class that is named again has its own defaults, and those options given before that it also has. jsonargparse
    would pass on the arguments of the previous class: SGD would get AdamW's weight decay.
    """
    content: dict[str, Any] = {"model": {"optimizer": OPTIMIZER}}
    for option in given:
        if option.is_config and option.value:
            content = merge(content, _with_init_args(read_config(option.value)))
    for group in ("trainer", "model"):
        if not isinstance(given_group := content.get(group, {}), dict):
            raise LDLError(f"{group} is {given_group!r}, but holds options; write {group}: {{NAME: VALUE}}")
    options = [option for option in given if not (option.is_config and option.value)]
    trainer = content.get("trainer", {})
    if trainer.get("logger") in (None, True) and any(option.name == "--trainer.logger+" for option in options):
        content = merge(content, {"trainer": {"logger": [{"class_path": USUAL_LOGGERS}]}})
    for key in BASES:
        content, options = _with_class(key, content, options)
        _check_form(key, _part(content, key))
    words = [with_current_paths(word) for word in words_of(options)]
    return [f"--config={document(content)}", *words]


def _with_init_args(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a file with the options of a class below ``init_args``, also if it names no class."""
    for key in BASES:
        above, _, name = key.rpartition(".")
        owner, inside = _part(content, above), _part(content, key)
        if isinstance(inside, dict) and inside and not FORM & inside.keys():
            owner[name] = {"init_args": inside}
    return content


def _part(content: Any, key: str) -> Any:
    """Return the part of a configuration with a dotted name, or all of it for no name; None if there is none."""
    for name in key.split(".") if key else ():
        content = content.get(name) if isinstance(content, dict) else None
    return content


def _check_form(key: str, part: Any) -> None:
    """Raise LDLError if a file has the options of a class beside its name, or none where they belong."""
    inside = part.get("init_args") if isinstance(part, dict) and "class_path" in part else None
    if inside is not None and not isinstance(inside, dict):
        raise LDLError(f"{key}.init_args is {resolved(inside)!r}, but holds options; write init_args: {{NAME: VALUE}}")
    if isinstance(part, dict) and "class_path" in part and (stray := sorted(part.keys() - FORM)):
        raise LDLError(f"{key}.{stray[0]} stands beside class_path; write it below {key}.init_args")


def _with_class(key: str, content: dict[str, Any], options: list[Given]) -> tuple[dict[str, Any], list[Given]]:
    """Move the class that options name last for ``key`` into the configuration."""
    naming = [
        place
        for place, option in enumerate(options)
        if option.value and plain(option.name).removesuffix(".class_path") == f"--{key}"
    ]
    if not naming:
        return content, options
    last = naming[-1]
    path = with_current_paths(options[last].value)
    named: Any = read_option(options[last].name, path)
    for name in reversed(key.split(".")):
        named = {name: named}
    known = inspect.signature(cls).parameters if (cls := find_class(key, path)) else ()
    before = [option for place, option in enumerate(options[:last]) if place not in naming]
    kept = [option for option in before if _is_known(option, f"--{key}.", known)]
    return merge(content, named), [*kept, *options[last + 1 :]]


def _is_known(option: Given, prefix: str, known: Collection[str]) -> bool:
    """Return whether an option is outside the class, or the class has it."""
    name = plain(option.name)
    return not name.startswith(prefix) or name.removeprefix(prefix).split(".")[0] in known
