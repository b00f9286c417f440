"""Help and lists of classes, from the signatures and docstrings of the classes that a command line can name."""

from __future__ import annotations

import inspect
import re
import shutil
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytorch_lightning as pl

from ldl.command.arguments import Argument
from ldl.command.classes import BASES, OURS, find_class, subclasses
from ldl.command.messages import no_class, program
from ldl.command.options import CommandParser, help_text, option_texts
from ldl.command.stages import stages
from ldl.data.sources import SOURCES
from ldl.errors import LDLError, did_you_mean
from ldl.head import AlternatingHead, FittedHead, Head, ImageHead
from ldl.options import options_of
from ldl.plugins import COMMANDS, discover, load_registered
from ldl.run.loggers import WandbOptions
from ldl.run.output import silence
from ldl.run.run_options import RUN_OPTIONS
from ldl.task import Task

TITLES = {"model.head": "Heads", "data": "Data", "model.backbone": "Backbones"}
GROUPS: dict[str, tuple[type, str]] = {
    "model": (Task, "optimiser, schedule, decoder, mixup"),
    "trainer": (pl.Trainer, "epochs, devices, precision, what is logged"),
    "wandb": (WandbOptions, "Weights & Biases"),
}
"""Options in groups, with the class that takes them and a line about them."""
PARSERS_OWN = [
    ("-c, --config", "Configuration, by name (heads/softmax) or file; several compose."),
    ("--seed_everything", "Seed of the run, default 0; false for none."),
    ("--print_config", "Print the whole configuration, and run nothing."),
    ("--version", "Print the version."),
]
"""Options of the parser itself, which belong to no class."""
LEFT = 22
"""Width of the names on the first page."""


def help_page(arguments: Iterable[Argument]) -> str | None:
    """Return the help page that a command line requests.

    Returns None if it requests no page, or a page that the parser prints itself.

    Raises:
        LDLError: there is no such class or group.
    """
    for name, value, _ in arguments:
        if name in ("-h", "--help"):
            return _front_page()
        if name.startswith("--help."):
            return _group_page(name.removeprefix("--help."))
        key = name.removeprefix("--").removesuffix(".help")
        if name.endswith(".help") and key in OURS:
            return _class_page(key, value) if value and not value.startswith("-") else "\n".join(_class_rows(key))
    return None


def heads(args: list[str]) -> None:
    """List the heads with how each learns and what it takes, or all about one."""
    _print_classes(args, "heads", heads.__doc__, "model.head", "a head")


def data(args: list[str]) -> None:
    """List the data sets with files, source and protocols, or all about one."""
    _print_classes(args, "data", data.__doc__, "data", "a data module")


def _print_classes(args: list[str], command: str, doc: str | None, key: str, what: str) -> None:
    parser = CommandParser(command, doc)
    parser.add_argument("name", nargs="?", help=f"{what}, for all its options")
    name = parser.parse_args(args).name
    silence()
    discover()
    if name is None:
        print(_class_list(key))
    elif (page := _class_page(key, name)) is not None:
        print(page)
    else:
        paths = [_path(cls) for cls in known(key) if cls.__name__ == name.rpartition(".")[2]]
        fix = f"give {' or '.join(paths)}" if paths else f"ldl {command} lists all"
        raise LDLError(f"{name!r} is not the name of {what}, or of several; {fix}")


def known(key: str) -> list[type]:
    """Return the classes that the option ``key`` can name, in alphabetical order."""
    return sorted(dict.fromkeys(subclasses(BASES[key])), key=lambda cls: cls.__name__.lower())


def _front_page() -> str:
    run = program()
    lines = [
        "Models whose output is a label distribution: how much each label describes an instance.",
        "",
        _row(run, "train and test on the built-in data set, with charts in runs/"),
        _row(f"{run} OPTIONS", f"such as {run} -c tabular --data.path FILE"),
        _row("ldl SUBCOMMAND ...", "see below"),
    ]
    for key in OURS:
        lines += ["", *_class_rows(key)]
    lines += ["Stages: --stage NAME", *(_row(name, stage.text) for name, stage in stages().items())]
    lines += ["Subcommands:", *(_row(name, line) for name, line in summaries().items()), "", "Options:"]
    lines += [_row(name, text) for name, text in PARSERS_OWN]
    for name, (option, text) in RUN_OPTIONS.items():
        if name not in GROUPS:
            lines += _option(f"--{name}", option.annotation, option.default, text)
    return "\n".join([*lines, "", "More:", *(_row(f"--help.{name}", line) for name, (_, line) in GROUPS.items())])


def summaries() -> dict[str, str]:
    """Return the subcommands with the first sentence of their docstrings."""
    return {name: _first_sentence(run.__doc__) for name, run in load_registered(COMMANDS).items()}


def _first_sentence(doc: str | None) -> str:
    return (doc or "").partition("\n")[0].partition(". ")[0].rstrip(".")


def _class_rows(key: str) -> list[str]:
    title = f"{TITLES[key]}: --{key} NAME; --{key}.help NAME prints the options of one"
    return [title, *(_row(cls.__name__, _summary(cls)) for cls in known(key))]


def _group_page(name: str) -> str:
    if name not in GROUPS:
        raise LDLError(
            f"there is no help on {name!r}{did_you_mean(name, GROUPS)}; pass --help.{', --help.'.join(GROUPS)}"
        )
    return "\n".join(_options(GROUPS[name][0], name, without=("head", "backbone")))


def _class_page(key: str, given: str) -> str | None:
    """Return the page of a class; None for an import path or value that names no class of this kind.

    Raises LDLError if ``given`` looks like the name of a class, and there is none.
    """
    cls = find_class(key, given)
    if cls is None and given.isidentifier() and given not in {cls.__name__ for cls in known(key)}:
        raise LDLError(no_class(key, given))
    if cls is None or not issubclass(cls, BASES[key]):
        return None
    traits = [f"{name}: {value}" for name, value in _traits(cls).items() if value]
    return "\n".join([f"{cls.__name__} ({_path(cls)})", *traits, "", _text(cls), "", *_options(cls, key)])


def _class_list(key: str) -> str:
    lines = []
    for cls in known(key):
        package = "" if cls.__module__.startswith("ldl.") else f" ({cls.__module__})"
        traits = {name: value for name, value in _traits(cls).items() if value}
        short = "".join(f"{traits.pop(name)}; " for name in ("learns", "takes") if name in traits)
        lines += _wrapped(short + _summary(cls) + package, f"{cls.__name__:{LEFT}} ", " " * (LEFT + 1))
        for name, value in traits.items():
            lines += _wrapped(f"{name}: {value}", " " * (LEFT + 1), " " * (LEFT + 3))
    return "\n".join(lines)


def _traits(cls: type) -> dict[str, str]:
    """Return the facts that the help lists about a data module or a head, by name; none for other classes."""
    if issubclass(cls, BASES["data"]):
        return _data_traits(cls)
    return _head_traits(cls) if issubclass(cls, Head) else {}


def _data_traits(cls: type) -> dict[str, str]:
    declared = options_of(cls)
    protocol, default_path = declared.get("protocol"), getattr(declared.get("path"), "default", None)
    protocols = list(getattr(cls, "protocols", {})) or list(protocol.choices if protocol else ())
    names = [Path(str(default_path)).name, *(base.__name__ for base in cls.__mro__)]
    source = next((SOURCES[name] for name in names if name in SOURCES), None)
    traits = {} if source is None else {"files": source.layout, "from": f"{source.where} ({source.licence})"}
    return {**traits, "protocols": ", ".join(protocols) or str(cls.protocol)}  # type: ignore[attr-defined]


def _head_traits(cls: type[Head]) -> dict[str, str]:
    ways = {ImageHead: "fitted on images", FittedHead: "fitted", AlternatingHead: "alternating", Head: "by gradient"}
    takes = "images" if issubclass(cls, ImageHead) else "bags" if cls.takes_bags else "rows"
    return {
        "learns": next(words for kind, words in ways.items() if issubclass(cls, kind)),
        "takes": takes + (", missing values" if cls.takes_missing else ""),
    }


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _text(cls: type) -> str:
    """Return the docstring of a class without its sections, such as the list of arguments."""
    text = re.split(r"\n\s*(?:Args|Attributes|Examples):\n", inspect.getdoc(cls) or "")[0]
    return help_text(text.strip())


def _summary(cls: type) -> str:
    return " ".join(_text(cls).split("\n\n")[0].split()).rstrip(".:")


def _options(cls: type, key: str, without: Iterable[str] = ()) -> list[str]:
    texts = option_texts(cls)
    try:
        signature = inspect.signature(cls, eval_str=True)
    except NameError:  # types that are imported for type checkers alone
        signature = inspect.signature(cls)
    ranges, lines = options_of(cls), []
    for name, parameter in signature.parameters.items():
        if name not in without:
            declared = ranges.get(name)
            accepted = "" if declared is None else declared.range + (declared.what and f", {declared.what}")
            text = texts.get(name, "")
            lines += _option(f"--{key}.{name}", parameter.annotation, parameter.default, text, accepted)
    return lines


def _option(name: str, kind: Any, default: Any, text: str, accepted: str = "") -> list[str]:
    accepted = "" if accepted.startswith("one of") else accepted
    shown = "" if default is inspect.Parameter.empty else f"default {_value(default)}"
    about = "; ".join(filter(None, (_type(kind), accepted, shown)))
    return [f"  {name}  {about}".rstrip(), *_wrapped(" ".join(help_text(text).split()), " " * 6, " " * 6)]


def _type(kind: Any) -> str:
    """Return a type as text, without the modules of classes; empty without an annotation."""
    if kind is inspect.Parameter.empty:
        return ""
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    return re.sub(r"\b(?:\w+\.)+(?=[A-Za-z])", "", text).replace("NoneType", "null").replace("None", "null")


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if inspect.isclass(value):
        return value.__name__
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _row(name: str, text: str) -> str:
    left = f"  {name:{LEFT}} "
    return left + textwrap.shorten(text, _width() - len(left), placeholder=" ...")


def _wrapped(text: str, first: str, others: str) -> list[str]:
    return textwrap.wrap(text, _width(), initial_indent=first, subsequent_indent=others)


def _width() -> int:
    return min(120, shutil.get_terminal_size((100, 24)).columns)
