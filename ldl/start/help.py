"""Pages of help, from what the command line knows."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable

from ldl.errors import LDLError, did_you_mean
from ldl.start.check import KINDS, options_of
from ldl.start.schema import BASES, ClassEntry, OptionEntry, Schema
from ldl.start.wording import no_class, program

OWN = ("config", "stage", "ckpt_path", "run_dir", "select", "jobs", "scheduler", "seed_everything", "print_config")
"""Options of the command itself, on the first page."""

TEXTS = {
    "config": "Configuration, by name (heads/softmax) or file; several compose.",
    "seed_everything": "Seed of the run; false for none.",
    "print_config": "Print the whole configuration, and run nothing.",
}
"""Of options that are the parser's own."""

TITLES = {"model.head": "Heads", "model.backbone": "Backbones", "data": "Data"}
GROUPS = {
    "model": "optimiser, schedule, decoder, mixup",
    "trainer": "epochs, devices, precision, what is logged",
    "wandb": "Weights & Biases",
}
LEFT = 22
"""Width of the names."""


def asks_help(args: list[str]) -> bool:
    """Whether a command line asks for help of any kind."""
    names = (arg.partition("=")[0] for arg in args)
    return any(name == "-h" or name.startswith("--help") or name.endswith(".help") for name in names)


def help_page(args: list[str], schema: Schema, verbs: dict[str, str]) -> str | None:
    """The page that a command line asks for; None where it asks for none, or for one that the parser has.

    Args:
        args: The command line.
        schema: What can be said.
        verbs: A line about each verb.

    Raises:
        LDLError: there is no such class or group.
    """
    for name, value in options_of(args):
        if name in ("-h", "--help"):
            return _front(schema, verbs)
        if name.startswith("--help."):
            return _group(name.removeprefix("--help."), schema)
        if (base := name.removeprefix("--").removesuffix(".help")) in BASES and name.endswith(".help"):
            return chosen_page(base, value, schema) if value and not value.startswith("-") else _classes(base, schema)
    return None


def class_page(entry: ClassEntry) -> str:
    """All of one class: its docstring, and its options."""
    traits = [f"{name}: {value}" for name, value in entry.traits.items() if value]
    text = entry.text.replace("``", "")
    options = [line for option in entry.options for line in _option(f"--{entry.base}.{option.name}", option)]
    return "\n".join([f"{entry.name} ({entry.path})", *traits, "", text, "", *options])


def _front(schema: Schema, verbs: dict[str, str]) -> str:
    run = program()
    lines = [
        "Models whose output is a label distribution: how much each label describes an instance.",
        "",
        _row(run, "the embedded set: trained, tested, charts in runs/"),
        _row(f"{run} OPTIONS", f"such as {run} -c tabular_ldlf --data.path FILE"),
        _row("ldl VERB ...", "what is no run, see below"),
    ]
    for base in ("model.head", "data", "model.backbone"):
        lines += ["", f"{TITLES[base]}: --{base} NAME; --{base}.help NAME has the options of one"]
        lines += [_row(entry.name, entry.summary) for entry in schema.of(base)]
    lines += ["", "Verbs:", *(_row(verb, line) for verb, line in verbs.items()), "", "Options:"]
    for name in OWN:
        if name in schema.names:
            lines += _option(f"--{name}" if name != "config" else "-c, --config", schema.names[name])
    lines += ["", "More:", *(_row(f"--help.{group}", about) for group, about in GROUPS.items())]
    return "\n".join([*lines, _row("--version", "Print the version.")])


def _group(name: str, schema: Schema) -> str:
    found = [entry for entry in schema.options if entry.name.startswith(f"{name}.") and _is_shown(entry)]
    if not found:
        raise LDLError(
            f"there is no help on {name!r}{did_you_mean(name, GROUPS)}; ask --help.{', --help.'.join(GROUPS)}"
        )
    return "\n".join(line for entry in found for line in _option(f"--{entry.name}", entry))


def _is_shown(entry: OptionEntry) -> bool:
    return not entry.name.endswith((".help", "+"))


def chosen_page(base: str, given: str, schema: Schema) -> str | None:
    """The page of a class by its name or path; None of one that only the parser can find.

    Raises:
        LDLError: no class has this name.
    """
    entry = schema.find(base, given)
    if entry is None and given.isidentifier():
        known = schema.of(base)
        if not any(other.name == given for other in known):
            raise LDLError(no_class(base, *KINDS[base], given, [other.name for other in known]))
    return None if entry is None else class_page(entry)


def _classes(base: str, schema: Schema) -> str:
    lines = [_row(entry.name, entry.summary) for entry in schema.of(base)]
    return "\n".join([f"{TITLES[base]}: --{base} NAME; --{base}.help NAME has the options of one", *lines])


def _option(name: str, entry: OptionEntry) -> list[str]:
    """A line of type, range and default, and the description below, or beside the name where there are none."""
    kind = " | ".join(entry.choices) if entry.choices else entry.kind
    accepted = "" if entry.range.startswith("one of") else entry.range
    default = f"default {entry.default}" if entry.default else ""
    says, text = "; ".join(filter(None, (kind, accepted, default))), TEXTS.get(entry.name, entry.text)
    if not says and text and len(name) < LEFT and (row := _row(name, text)).endswith(text):
        return [row]
    return [f"  {name}  {says}".rstrip(), *_wrapped(text, 6)]


def _row(name: str, text: str) -> str:
    """A name and what it is, cut to a line."""
    left = f"  {name:{LEFT}} "
    return left + textwrap.shorten(text, page_width() - len(left), placeholder=" ...")


def _wrapped(text: str, indent: int) -> Iterable[str]:
    return textwrap.wrap(text, page_width(), initial_indent=" " * indent, subsequent_indent=" " * indent)


def page_width() -> int:
    """Letters of a line."""
    return min(120, shutil.get_terminal_size((100, 24)).columns)
