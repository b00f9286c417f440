"""The house in numbers: how far a reader travels, what is held twice, and what the core knows of domains.

    python benchmarks/house.py                    # the table of measures
    python benchmarks/house.py --tree CHECKOUT    # of another checkout
    python benchmarks/house.py --list             # with the places behind the numbers

It reads the code with ``ast``, without importing it; only ``house_journey.py`` runs it, once, in a process of its own.
``tests/test_house.py`` holds the first five measures.

How it counts:

- ``house_journey.py`` counts files and functions, and how often the command line is tokenised and a task built.
- A list of options is a tuple, list, set or dict of a module with two names of options, or more, that are most of its
  texts. The options are of classes in other files, of Lightning's trainer, or of the command line. Words that
  are no list of options in spite of this are in ``VOCABULARIES``, each with the reason. Roles are no options.
- A class name has two meanings if two files define a class or a type of this name.
- Guard code is a condition that does nothing but raise, any other ``raise``, and functions whose only work is to raise.
- A code line is neither blank nor part of a docstring or an import.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.house_journey import follow_run

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "ldl"
DOMAINS = ("ldl.bags", "ldl.deploy", "ldl.edges", "ldl.faces", "ldl.search")
"""Packages that the rest of ``ldl``, the core, does not import."""

VOCABULARIES = {
    "classes.py:BASES": "declares the base class of each part of a configuration",
    "classes.py:OURS": "declares where the package of each part of a configuration lies",
    "help.py:TITLES": "declares the title of each list of classes",
    "audit.py:EVERY_IMAGE": "values with which an audit builds its data",
    "run_options.py:TRAINER_OPTIONS": "declares ranges and roles of options of Lightning's trainer, which has none",
    "runs.py:COLUMNS": "columns of the list of runs",
}
"""Lists of words that are no lists of options, by ``file:NAME``, each with the reason."""

GUARDS = ("check", "refuse", "reject", "require", "must", "forbid")
"""How the names of functions begin that only raise."""


class Measure(NamedTuple):
    """A line of the table.

    Attributes:
        name: What is measured.
        now: The value, as text.
        wanted: What it should be, as text.
        places: What the value counts, for ``--list``.
    """

    name: str
    now: str
    wanted: str
    places: list[str] = []


class Source(NamedTuple):
    """A file of the package.

    Attributes:
        name: Path below the checkout, with ``/``.
        text: Content.
        tree: The same, parsed.
    """

    name: str
    text: str
    tree: ast.Module

    @property
    def module(self) -> str:
        """Dotted name."""
        return self.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def code(self) -> set[int]:
        """Numbers of the code lines."""
        lines = {number for number, line in enumerate(self.text.splitlines(), 1) if line.strip()}
        return lines - lines_of(node for node in ast.walk(self.tree) if is_import(node) or is_docstring(node))


def read_package(root: Path) -> list[Source]:
    """Read all files of ``ldl/`` in a checkout."""
    paths = sorted((root / PACKAGE).rglob("*.py"))
    texts = [(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")) for path in paths]
    return [Source(name, text, ast.parse(text)) for name, text in texts]


# Domains


def imports_of_domains(sources: list[Source], domains: tuple[str, ...] = DOMAINS) -> list[str]:
    """Return ``file:line modules`` for each statement outside the domains that imports one, also inside a function.

    Texts such as entry points and tables of moved paths do not count, unless ``import_module`` gets them.
    """
    places = []
    for source in sources:
        if not is_below(source.module, domains):
            for line, modules in imported_modules(source.tree):
                if inside := [module for module in modules if is_below(module, domains)]:
                    places.append(f"{source.name}:{line} {', '.join(inside)}")
    return places


def imported_modules(tree: ast.Module) -> Iterator[tuple[int, list[str]]]:
    """Yield the line of each import and the dotted names of what it imports; of ``from a import b`` that is ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield node.lineno, [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, [f"{node.module}.{name.name}" for name in node.names]
        elif isinstance(node, ast.Call) and called_name(node) in ("import_module", "resolve_name", "__import__"):
            yield node.lineno, [text.replace(":", ".") for text in strings_in(node.args)]


def is_below(module: str, packages: tuple[str, ...]) -> bool:
    """Return whether a module is one of some packages, or inside one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


# Lists of options


def kept_lists(sources: list[Source]) -> list[str]:
    """Return ``file:NAME (words)`` of the lists of options of classes that other files define."""
    owners, roles = owners_of_options(sources), roles_of_options(sources)
    lists = []
    for source in sources:
        for name, words in listed_words(source.tree):
            foreign = [word for word in words if word in owners and source.name not in owners[word]]
            is_list = len(foreign) >= 2 and 2 * len(foreign) > len(words) and not roles.issuperset(words)
            if is_list and f"{Path(source.name).name}:{name}" not in VOCABULARIES:
                lists.append(f"{source.name}:{name} ({', '.join(foreign)})")
    return lists


def roles_of_options(sources: list[Source]) -> set[str]:
    """Return the words of the table ``ROLES``, some of which are names of options too."""
    return {
        word
        for source in sources
        for node in source.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and "ROLES" in assigned_names(node)
        for word in keys_of(node.value)
    }


def owners_of_options(sources: list[Source]) -> dict[str, set[str]]:
    """Return the files of the classes that have an option, by its name: of a class with options, or of a run."""
    owners: dict[str, set[str]] = defaultdict(set)
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef):
                for name in options_of(node):
                    owners[name].add(source.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and "RUN_OPTIONS" in assigned_names(node):
                for name in keys_of(node.value):
                    owners[name].add(source.name)
    for name in trainer_options():
        owners[name].add("pytorch_lightning")
    return owners


def options_of(cls: ast.ClassDef) -> set[str]:
    """Return the options that a class declares: fields under ``@options``, or arguments of its ``__init__``."""
    decorators = {called_name(node) if isinstance(node, ast.Call) else dotted_name(node) for node in cls.decorator_list}
    if "options" in decorators:
        fields = [node for node in cls.body if isinstance(node, ast.AnnAssign) and node.value is not None]
        return {
            name
            for node in fields
            for name in assigned_names(node)
            if "ClassVar" not in ast.unparse(node.annotation) and not is_call(node.value, "buffer")
        }
    if not is_component(cls):
        return set()
    return {
        argument.arg
        for node in cls.body
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
        for argument in (*node.args.args, *node.args.kwonlyargs)
        if argument.arg != "self"
    }


def is_component(cls: ast.ClassDef) -> bool:
    """Return whether a command line can name a class: a head, backbone, callback, the task, a data module."""
    ends = ("Head", "Backbone", "DataModule", "LightningModule", "Callback", "Options", "Averaging")
    return any(dotted_name(base).endswith(ends) for base in cls.bases) or cls.name.endswith("Options")


def trainer_options() -> set[str]:
    """Return the options of Lightning's trainer, from its source: an import would take seconds."""
    spec = find_spec("pytorch_lightning")
    assert spec is not None and spec.submodule_search_locations
    path = Path(spec.submodule_search_locations[0], "trainer", "trainer.py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    cls = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Trainer")
    start = next(node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    return {argument.arg for argument in (*start.args.args, *start.args.kwonlyargs)} - {"self"}


def listed_words(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Yield name and words of each list, set, tuple or dict of a module; of ``data.fold.`` only ``fold``."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            words = [text.strip("-. ").rpartition(".")[2] for text in listed_texts(node.value)]
            for name in assigned_names(node):
                yield name, list(dict.fromkeys(words))


def listed_texts(value: ast.expr) -> Iterator[str]:
    """Yield the texts of a literal container, the keys of a dict, also where one is built from another."""
    if isinstance(value, ast.Tuple | ast.List | ast.Set):
        for element in value.elts:
            if isinstance(element, ast.Constant) and isinstance(element.value, str):
                yield element.value
            elif isinstance(element, ast.Starred):
                yield from listed_texts(element.value)
    elif isinstance(value, ast.Dict):
        yield from keys_of(value)
    elif isinstance(value, ast.SetComp | ast.ListComp | ast.GeneratorExp | ast.DictComp):
        yield from (text for generator in value.generators for text in listed_texts(generator.iter))
    elif isinstance(value, ast.BinOp):
        yield from listed_texts(value.left)
        yield from listed_texts(value.right)
    elif isinstance(value, ast.Call) and called_name(value) in ("tuple", "set", "frozenset", "list", "dict"):
        yield from (text for argument in value.args for text in listed_texts(argument))
        yield from (keyword.arg for keyword in value.keywords if keyword.arg)


# Names, guards, tests, lines


def double_names(sources: list[Source]) -> list[str]:
    """Return ``Name (files)`` of the classes and types that more than one file defines."""
    files: dict[str, set[str]] = defaultdict(set)
    for source in sources:
        classes = [node.name for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)]
        assigned = [node for node in source.tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
        types = [name for node in assigned for name in assigned_names(node) if is_type_name(name)]
        for name in (*classes, *types):
            files[name].add(source.name)
    return [f"{name} ({', '.join(sorted(places))})" for name, places in sorted(files.items()) if len(places) > 1]


def is_type_name(name: str) -> bool:
    """Return whether a name is spelled as a class, not as a constant or a type variable."""
    return name[:1].isupper() and not name.isupper()


def count_guards(sources: list[Source]) -> tuple[int, int]:
    """Return the number of lines of guard code, and of all code lines."""
    guards = code = 0
    for source in sources:
        lines = source.code
        code += len(lines)
        guards += len(lines & guard_lines(source.tree))
    return guards, code


def guard_lines(tree: ast.Module) -> set[int]:
    """Return the numbers of the lines of a file that only hold mistakes off."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
            lines |= set(range(node.lineno, last_line(node.body[-1]) + 1))
        elif (
            isinstance(node, ast.Raise)
            or (isinstance(node, ast.ExceptHandler) and isinstance(node.body[-1], ast.Raise))
            or (isinstance(node, ast.FunctionDef) and only_raises(node))
            or (isinstance(node, ast.Expr) and is_guard_name(called_name(node.value)))
        ):
            lines |= lines_of([node])
    return lines


def only_raises(function: ast.FunctionDef) -> bool:
    """Return whether a function is a guard by its name, or may raise, but returns, yields and stores nothing."""
    nodes = list(ast.walk(function))
    stores = (ast.Attribute, ast.Subscript)
    works = any(
        (isinstance(node, ast.Return) and node.value is not None)
        or isinstance(node, ast.Yield | ast.YieldFrom)
        or (isinstance(node, stores) and isinstance(node.ctx, ast.Store))
        for node in nodes
    )
    raises = any(isinstance(node, ast.Raise) for node in nodes)
    return is_guard_name(function.name) or (raises and not works and function.name != "__init__")


def is_guard_name(name: str) -> bool:
    """Return whether a function is a guard by its name."""
    return name.rpartition(".")[2].lstrip("_").startswith(GUARDS)


def untested_by_name(root: Path, sources: list[Source]) -> list[str]:
    """Return the files ``ldl/a/b.py`` without ``tests/a/test_b.py`` or a folder ``tests/a/b`` of tests."""
    modules = [source.name for source in sources if not source.name.endswith("__init__.py")]
    return [name for name in modules if not has_test(root, name)]


def has_test(root: Path, name: str) -> bool:
    """Return whether the test of a file is found by the file's name."""
    place = Path("tests", *Path(name).parts[1:])
    folder = root / place.with_suffix("")
    test = root / place.with_name(f"test_{place.stem.strip('_')}.py")
    return test.is_file() or any(folder.glob("test_*.py"))


# Nodes


def lines_of(nodes: Any) -> set[int]:
    """Return the numbers of the lines of some nodes."""
    return {line for node in nodes for line in range(node.lineno, last_line(node) + 1)}


def last_line(node: Any) -> int:
    """Return the number of the last line of a node."""
    return int(node.end_lineno)


def is_import(node: ast.AST) -> bool:
    """Return whether a node is an import."""
    return isinstance(node, ast.Import | ast.ImportFrom)


def is_docstring(node: ast.AST) -> bool:
    """Return whether a node is a text of its own, such as the docstring of a function or of a constant."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_call(node: ast.AST | None, name: str) -> bool:
    """Return whether a node calls a function of some name."""
    return isinstance(node, ast.Call) and called_name(node) == name


def called_name(node: ast.AST) -> str:
    """Return the name of a called function, without what it is an attribute of; empty for anything but a call."""
    return dotted_name(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def dotted_name(node: ast.AST) -> str:
    """Return ``a.b`` for a name or attribute; of a subscript that of its value."""
    if isinstance(node, ast.Subscript):
        return dotted_name(node.value)
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def assigned_names(node: ast.Assign | ast.AnnAssign) -> list[str]:
    """Return the names that an assignment gives a value."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def keys_of(node: ast.AST | None) -> list[str]:
    """Return the texts among the keys of a literal dict."""
    return list(strings_in(node.keys)) if isinstance(node, ast.Dict) else []


def strings_in(nodes: Any) -> Iterator[str]:
    """Yield the values of the texts among some nodes."""
    return (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


# The table


def measure(root: Path) -> list[Measure]:
    """Return all measures of a checkout."""
    sources = read_package(root)
    journey = follow_run(root)
    domains, lists, names = imports_of_domains(sources), kept_lists(sources), double_names(sources)
    guards, code = count_guards(sources)
    untested = untested_by_name(root, sources)
    modules = sum(not source.name.endswith("__init__.py") for source in sources)
    lengths = {source.name: len(source.text.splitlines()) for source in sources}
    travelled = f"{len(journey.files)} / {len(journey.functions)}"
    return [
        Measure("files / functions to the first training step of `train.py`", travelled, "40 / 220", journey.functions),
        Measure("times the command line is tokenised, the task built", f"{journey.tokenised}, {journey.built}", "1, 1"),
        Measure("imports of a domain by the core", str(len(domains)), "0", domains),
        Measure("hand-kept lists of other classes' options", str(len(lists)), "0", lists),
        Measure("class names of `ldl/` with two meanings", str(len(names)), "at most 5", names),
        Measure("share of guard code", f"{guards / code:.1%} ({guards:,} of {code:,} lines)", "10%"),
        Measure("modules whose test is found by name", f"{1 - len(untested) / modules:.0%}", "90%", untested),
        Measure("lines, files of `ldl/`", f"{sum(lengths.values()):,}, {len(lengths)}", "at most 43,330 lines"),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=ROOT, help="checkout to measure (default: this one)")
    parser.add_argument("--list", action="store_true", help="print the places behind the numbers too")
    options = parser.parse_args()
    measures = measure(options.tree.resolve())
    print("| measure | now | wanted |\n|---|---|---|")
    for line in measures:
        print(f"| {line.name} | {line.now} | {line.wanted} |")
    for line in measures if options.list else []:
        if line.places:
            print(f"\n{line.name}:")
            print("\n".join(f"  {place}" for place in line.places))


if __name__ == "__main__":
    main()
