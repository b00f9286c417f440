"""The measures by which the house does not drift back; ``python benchmarks/house.py --list`` prints all of them."""

from __future__ import annotations

import ast

import pytest
from fakes.paths import BENCHMARKS, ROOT, load_script

house = load_script(BENCHMARKS / "house.py")
house_journey = load_script(BENCHMARKS / "house_journey.py")

MOST_FILES, MOST_FUNCTIONS = 63, 408
"""What was reached; 40 and 220 are wanted."""
MOST_DOUBLE_NAMES = 5


def source(text: str, name: str = "ldl/task.py") -> house.Source:
    return house.Source(name, text, ast.parse(text))


@pytest.fixture(scope="module")
def sources() -> list[house.Source]:
    return house.read_package(ROOT)


@pytest.fixture(scope="module")
def journey() -> house_journey.Journey:
    return house_journey.follow_run(ROOT)


def test_the_first_training_step_is_near(journey: house_journey.Journey) -> None:
    assert len(journey.files) <= MOST_FILES, journey.files
    assert len(journey.functions) <= MOST_FUNCTIONS, journey.functions


def test_a_run_is_built_once(journey: house_journey.Journey) -> None:
    assert (journey.tokenised, journey.built) == (1, 1)


def test_the_core_imports_no_domain(sources: list[house.Source]) -> None:
    assert house.imports_of_domains(sources) == []


def test_no_list_of_options_is_kept_by_hand(sources: list[house.Source]) -> None:
    assert house.kept_lists(sources) == [], "declare a role of the option instead, or a reason in house.VOCABULARIES"


def test_a_class_name_has_one_meaning(sources: list[house.Source]) -> None:
    assert len(house.double_names(sources)) <= MOST_DOUBLE_NAMES, house.double_names(sources)


@pytest.mark.parametrize(
    "text",
    [
        "from ldl.edges.votes import count_folder",
        "from ldl import edges",
        "def show():\n    import ldl.edges",
        "if TYPE_CHECKING:\n    from ldl.edges import BSDS500",
        "votes = import_module('ldl.edges.votes')",
        "run = pkgutil.resolve_name('ldl.edges.command:edges_eval')",
    ],
)
def test_every_way_to_import_a_domain_counts(text: str) -> None:
    assert len(house.imports_of_domains([source(text)])) == 1
    assert house.imports_of_domains([source(text, "ldl/edges/report.py")]) == []


def test_texts_that_name_a_domain_do_not_count() -> None:
    assert (
        house.imports_of_domains([source("MOVED = {'ldl.data.edges': 'ldl.edges'}\nfrom ldl.heads import edges")]) == []
    )


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("KEPT = ('depth', 'trees')", True),
        ("KEPT = {'model.head.depth', *('trees',)}", True),
        ("KEPT = {name: 1 for name in ('depth', 'trees')}", True),
        ("KEPT = dict(depth='none', trees='none')", True),
        ("KEPT = frozenset(['--depth', '--trees']) | OTHERS", True),
        ("KEPT = ('logger', 'enable_progress_bar')", True),
        ("KEPT = ('depth', 'path', 'red', 'green')", False),
        ("KEPT = ('depth',)", False),
        ("KEPT = ('path', 'fold')", False),
    ],
)
def test_lists_of_options_are_found(text: str, counts: bool) -> None:
    fields = ("depth: int = 3", "trees: int = option(default=1)", "leaves: Tensor = buffer()")
    head = "\n    ".join(["@options\nclass Forest(Head):", *fields])
    roles = "ROLES = {'path': 'a file', 'fold': 'a split'}"
    data = "class Set(LDLDataModule):\n    def __init__(self, path, fold): ..."
    others = [source(head, "ldl/heads/forest.py"), source(roles, "ldl/options.py"), source(data, "ldl/data/set.py")]
    assert bool(house.kept_lists([*others, source(text)])) == counts
    assert house.kept_lists([source(f"{head}\n{text}")]) == [] or "logger" in text


def test_guards_are_conditions_that_raise_and_functions_that_do_nothing_else() -> None:
    text = (
        "def scale(value):\n"
        "    if value < 0:\n"
        "        raise LDLError('negative')\n"
        "    check_finite(value)\n"
        "    return 2 * value\n"
        "def check_finite(value):\n"
        "    'A docstring.'\n"
        "    for entry in value:\n"
        "        if entry != entry: raise LDLError('NaN')\n"
    )
    assert house.count_guards([source(text)]) == (6, 8)


def test_a_test_is_found_by_name() -> None:
    assert house.has_test(ROOT, "ldl/heads/softmax.py")
    assert not house.has_test(ROOT, "ldl/heads/no_such_head.py")
