"""The tables of docs/reference that follow from the code: subcommands, options, configurations and environment.

    python docs/write_reference.py

``tests/test_docs.py`` checks that the pages are as this script writes them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common.script import write_block
from ldl.command import help as pages
from ldl.command.console import find_subcommand
from ldl.command.stages import stages
from ldl.reports.files import markdown
from ldl.run.run_options import RUN_OPTIONS

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"


class Parsed(Exception):
    """A subcommand has built its parser, which is the argument."""


def subcommands() -> str:
    """Return a table of the subcommands."""
    rows = [[f"[`{name}`](#ldl-{name})", line] for name, line in pages.summaries().items()]
    return markdown(["subcommand", "effect"], rows)


def arguments() -> str:
    """Return a section for each subcommand: its arguments with their defaults."""
    return "\n\n".join(_section(name) for name in pages.summaries())


def _section(name: str) -> str:
    parser = parser_of(name)
    actions = [action for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    rows = [[_named(action), _default(action), _help(action)] for action in actions]
    description = " ".join((parser.description or "").split())
    return f"### ldl {name}\n\n{description}\n\n{markdown(['argument', 'default', 'effect'], rows)}"


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser that a subcommand builds."""
    parse = argparse.ArgumentParser.parse_args

    def stop(parser: argparse.ArgumentParser, *_: Any) -> None:
        raise Parsed(parser)

    argparse.ArgumentParser.parse_args = stop  # type: ignore[method-assign, assignment]
    try:
        find_subcommand(name)([])
    except Parsed as parsed:
        return parsed.args[0]
    finally:
        argparse.ArgumentParser.parse_args = parse  # type: ignore[method-assign]
    raise AssertionError(name)


def _default(action: argparse.Action) -> str:
    return "" if action.default in (None, False, argparse.SUPPRESS) else f"`{action.default}`"


def _named(action: argparse.Action) -> str:
    values = action.metavar or (action.choices and "{" + ",".join(map(str, action.choices)) + "}")
    if isinstance(values, tuple):
        values = " ".join(values)
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`" + (f" {values}" if action.choices else "")
    takes = action.nargs != 0
    return f"`{action.option_strings[-1]}{f' {values or action.dest.upper()}' if takes else ''}`"


def _help(action: argparse.Action) -> str:
    text = " ".join((action.help or "").split()).replace("|", "\\|")
    return text[:1].upper() + text[1:]


def run_options() -> str:
    """Return a table of the options of a run that belong to no group."""
    rows = [[f"`{name}`", "", "", text] for name, text in pages.PARSERS_OWN]
    for name, (option, text) in RUN_OPTIONS.items():
        if name == "stage":
            text += "".join(f" {stage}: {entry.text}." for stage, entry in stages().items())
        if name not in pages.GROUPS:
            rows += _parsed(pages._option(f"--{name}", option.annotation, option.default, text))
    return markdown(["option", "type", "default", "effect"], rows)


def group(name: str) -> str:
    """Return a table of the options of a group, such as ``model``."""
    return markdown(["option", "type", "default", "effect"], _parsed(pages._group_page(name).splitlines()))


def _parsed(lines: Iterable[str]) -> list[list[str]]:
    """Return a row for each option of the help: its name, type, default and text."""
    rows: list[list[str]] = []
    for line in lines:
        if line.startswith("  --"):
            name, _, rest = line.strip().partition("  ")
            kind, _, default = rest.rpartition("; default ")
            rows.append([f"`{name}`", f"`{kind or rest}`", f"`{default}`" if kind else "required", ""])
        elif line.strip():
            before = rows[-1][3]
            rows[-1][3] = before + line.strip() if re.search(r"\w-$", before) else f"{before} {line.strip()}".strip()
    return [[cell.replace("|", "\\|") for cell in row] for row in rows]


def configurations() -> str:
    """Return a table of the configurations by folder."""
    folders: dict[str, list[str]] = {}
    for path in sorted((ROOT / "configs").rglob("*.yaml")):
        place = path.relative_to(ROOT / "configs")
        folders.setdefault(place.parent.as_posix(), []).append(place.stem)
    rows = [
        [f"`{folder}`" if folder != "." else "", ", ".join(f"`{name}`" for name in names)]
        for folder, names in sorted(folders.items())
    ]
    return markdown(["folder", "names"], rows)


def default_configuration() -> str:
    """Return the text of the default configuration."""
    text = (ROOT / "configs" / "default.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)
    return f"```yaml\n{text.strip()}\n```"


BLOCKS = {
    "command-line.md": {
        "subcommands": subcommands,
        "run_options": run_options,
        "model_options": lambda: group("model"),
        "wandb_options": lambda: group("wandb"),
        "arguments": arguments,
    },
    "configuration.md": {"default": default_configuration, "configurations": configurations},
}
"""By page the blocks that this script writes."""


def block_of(page: str, name: str) -> str:
    """Return a block as it stands on its page."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    found = re.search(f"<!-- begin {name} -->\n(.*?)\n<!-- end {name} -->", text, re.DOTALL)
    return found[1] if found else ""


def main() -> None:
    """Write all blocks."""
    for page, blocks in BLOCKS.items():
        for name, write in blocks.items():
            write_block(REFERENCE / page, name, write())


if __name__ == "__main__":
    main()
