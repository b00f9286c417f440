"""README and docs are promises: their commands parse, their Python runs, their links lead somewhere."""

from __future__ import annotations

import csv
import importlib
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from fakes.pages import BLOCK, FENCE, anchors_of, fences_of
from fakes.paths import CONFIGS, ROOT, load_script
from fakes.user_inputs import MOST, compare

from benchmarks import annotators, summary
from benchmarks.tables import tabular
from ldl import __version__
from ldl.command import main
from ldl.command.arguments import tokenize
from ldl.command.command_line import Command, parse_anew
from ldl.command.console import find_subcommand
from ldl.command.help import help_page
from ldl.data import RotatedDigits
from ldl.edges.metrics import CRISP, EDGE_METRICS
from ldl.inference import Predictions
from ldl.labels import LabelSpace
from ldl.metrics import metrics_for, registry
from ldl.plugins import COMMANDS, PLUGINS, STAGES, discover, registered
from ldl.run.main import complete, config_beside
from ldl.search.comparison import read_comparison
from ldl.search.selection import Selection
from ldl.search.space import read_tuning

reference = load_script(ROOT / "docs" / "write_reference.py")

PAGES = [
    *(ROOT / place / "README.md" for place in (".", "plugins", "benchmarks", "ldl/examples")),
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
LINK = re.compile(r"(?<!`)!?\[[^\]\[]*\]\(([^)\s]+)\)")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, *languages: str) -> list[str]:
    return fences_of(page.read_text(), *languages)


def commands(page: Path) -> list[str]:
    """The lines of a page's shell blocks, continued ones as one, without comments."""
    lines = "\n".join(blocks(page, "", "bash")).replace("\\\n", " ").replace("$depth", "6").splitlines()
    return [shlex.join(words) for line in lines if (words := shlex.split(line, comments=True))]


def inline_commands(page: Path) -> list[str]:
    """The commands that a page has in its sentences, without those of scripts that an earlier commit has."""
    text = re.sub(r"`python [^`]+`[^.`]*at commit", "", FENCE.sub("", page.read_text()))
    found = re.findall(r"(?<!`)`((?:ldl|python3?|pip|pytest|mkdocs|wandb) [^`]+)`", text)
    return [shlex.join(shlex.split(command)) for command in found if command != f"ldl {__version__}"]


def filled_in(command: str) -> str:
    """A command with the placeholders of the docs replaced."""
    command = re.sub(r"^LDL_TRACEBACK=1 | OPTIONS$", "", command).replace("tabular_NAME", "tabular_maxent")
    command = re.sub(r"^python -m ldl(?= |$)", "ldl", command)
    command = re.sub(r"^ldl -c tabular$", "ldl -c tabular --data.path FILE", command)
    command = command.replace(" MyHead --", " Softmax --").replace("--model.head MyHead", "--model.head Softmax")
    return command.replace("ldl SUBCOMMAND", "ldl heads").replace("faces RELEASE", "faces agedb")


SHORT = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled", "--data.turns=1"]
ALL = sorted({filled_in(command) for page in PAGES for command in (*commands(page), *inline_commands(page))})
NAMED = [command for command in ALL if re.fullmatch(r"ldl [a-z][a-z-]*", command) and command != "ldl heads"]
TRAIN = [command for command in ALL if re.search(r"\btrain\.py\b|^ldl( -|$)", command)]
VERBAL = [command for command in ALL if re.match(r"(python -m )?ldl [a-z]", command) and command not in NAMED]
OTHERS = [command for command in ALL if re.match(r"python (-m (?!ldl )|benchmarks/)", command)]
REST = [command for command in ALL if command not in {*TRAIN, *VERBAL, *OTHERS, *NAMED}]
PROGRAMS = {"pip", "python3", "python", "pytest", "ruff", "mypy", "mkdocs", "cp", "cat", "export", ".", "for", "done"}
PROGRAMS |= {"wandb", "dask", "conda", "docker", "git", "cd"}
"""What the docs call besides ldl and its scripts."""
LANGUAGES = {"", "bash", "python", "yaml", "json", "toml", "csv", "bibtex", "text"}
YAML = [(page, text) for page in PAGES for text in blocks(page, "yaml") if not text.startswith("--8<--")]
EXAMPLES = ROOT / "docs" / "examples"
SNIPPETS = ROOT / "docs" / "snippets"


@pytest.fixture(scope="module", autouse=True)
def own_measures() -> Iterator[None]:
    """The snippets as plugins. What they measure is measured in this file alone."""
    before = dict(registry._registered)
    discover()
    discover(SNIPPETS)
    yield
    registry._registered.clear()
    registry._registered.update(before)


@pytest.fixture(scope="module")
def run(blank_charts: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the default, with a checkpoint: what a reader of most pages has."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    main([*SHORT, "--trainer.max_epochs=1", "--run_dir", str(folder)])
    return folder


def options_of(command: str, run: Path) -> list[str]:
    """What follows train.py, with a checkpoint that exists, and the class of data where it would have to be another."""
    words = shlex.split(command)
    if "predict" in words and "--data.path" in words and "--data" not in words:
        place = words.index("--data.path")
        words[place:place] = ["--data", "PictureFolder" if words[place + 1] == "DIR" else "TableFile"]
    words = words[next(k for k, word in enumerate(words) if word.endswith("train.py") or word == "ldl") + 1 :]
    # A configuration that the reader writes or a run leaves.
    own = re.compile(r"(?!configs/).*\.yaml|configs/my_head\.yaml")
    words = ["configs/default.yaml" if own.fullmatch(word) else word for word in words]
    return [str(run / "checkpoints" / "last.ckpt") if word.endswith("last.ckpt") else word for word in words]


@pytest.mark.parametrize("command", TRAIN)
def test_train_command_parses(command: str, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    options = options_of(command, run)
    if help_page(tokenize(options)) or options == ["--version"]:
        return
    command = Command(tokenize(options))
    if command.stage == "compare":
        comparison = read_comparison(command)
        options = comparison.command(next(iter(comparison.entries.values())), {})
    if command.stage == "tune":
        tuning = read_tuning(command)
        options = tuning.command({dimension.name: dimension.ends[0] for dimension in tuning.space})
    command = Command(tokenize(options))
    try:
        config = complete(command, config_beside(command)).config
    except SystemExit as done:  # of --help and --print_config
        assert done.code == 0
    else:
        assert config.values.stage in ("fit", "test", "predict", "crossval")


class Parsed(Exception):
    """A script has parsed its command line."""


@pytest.mark.parametrize("command", OTHERS)
def test_other_command_parses(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the script's own ``main``, which is stopped there."""
    words = shlex.split(command)
    module, arguments = (words[2], words[3:]) if words[1] == "-m" else (words[1], words[2:])
    monkeypatch.syspath_prepend(str(ROOT))
    script = importlib.import_module(module.removesuffix(".py").replace("/", "."))
    parse_known = ArgumentParser.parse_known_args

    def parse(parser: ArgumentParser, given: list[str] | None = None, *_: object) -> None:
        _, unknown = parse_known(parser, arguments)
        # Those of a run's configuration are handed on.
        assert all(word.startswith("--") and "." in word for word in unknown), unknown
        raise Parsed

    monkeypatch.setattr(ArgumentParser, "parse_args", parse)
    monkeypatch.setattr(ArgumentParser, "parse_known_args", parse)
    with pytest.raises((Parsed, SystemExit)) as end:  # SystemExit(0) of --help
        script.main()
    assert not getattr(end.value, "code", 0)


@pytest.mark.parametrize("command", VERBAL)
def test_verb_parses(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    verb, *arguments = shlex.split(command.removeprefix("python -m "))[1:]
    parse = ArgumentParser.parse_args

    def stop(parser: ArgumentParser, given: list[str], *_: object) -> None:
        parse(parser, given)
        raise Parsed

    monkeypatch.setattr(ArgumentParser, "parse_args", stop)
    with pytest.raises(Parsed):
        find_subcommand(verb)(arguments)


@pytest.mark.parametrize("command", NAMED)
def test_named_verb_exists(command: str) -> None:
    assert command.removeprefix("ldl ") in registered(COMMANDS)


@pytest.mark.parametrize("command", REST)
def test_command_of_another_program(command: str) -> None:
    """Few programs are called, with extras and markers that exist. Files are those of test_files_exist."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    marks = [mark.partition(":")[0] for mark in project["tool"]["pytest"]["ini_options"]["markers"]]
    for part in command.split(" '&&' "):
        words = shlex.split(part.removeprefix(".venv/bin/"))
        assert words[0] in PROGRAMS
        if words[:2] == ["pip", "install"]:
            extras = [extra for word in words for found in re.findall(r"\[(.*)\]", word) for extra in found.split(",")]
            assert {*extras} - {"NAME"} <= project["project"]["optional-dependencies"].keys()
        if words[0] == "pytest" and "-m" in words:
            assert words[words.index("-m") + 1] in marks


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in REST if command.startswith("python -c ")])
def test_one_line_runs(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(shlex.split(command)[2], command, "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_exist(page: Path) -> None:
    """Files that a page names exist now, or at a commit that it names; those of the reader are called my_..."""
    text = page.read_text()
    commits = {*re.findall(r"\bcommit `?([0-9a-f]{7,40})\b", text)}
    named = {*re.findall(r"(?<![\w/.])((?:benchmarks|configs|docs|tests|plugins|ldl)/[\w/]+\.(?:py|yaml|csv))\b", text)}
    for path in (path for path in named if not (ROOT / path).exists() and "my_" not in path):
        earlier = [subprocess.run(["git", "cat-file", "-e", f"{commit}:{path}"], cwd=ROOT) for commit in commits]
        assert any(not run.returncode for run in earlier), f"{name(page)} names {path}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_fences_are_tested(page: Path) -> None:
    """Fences stand at the margin, and a test of this file or of the tutorial takes those of every language.

    Without a language and ``bash``: commands. ``text`` is output, which test_tutorial.py compares.
    """
    marks = re.findall(r"^( *)(```+|~~~+)(.*)$", page.read_text(), re.MULTILINE)
    assert all(not indent and ticks == "```" for indent, ticks, _ in marks)
    assert {language for _, _, language in marks[::2]} <= {
        *["", "bash", "python", "yaml", "json", "toml", "csv", "bibtex", "text"]
    }
    assert {language for _, _, language in marks[1::2]} <= {""}


@pytest.mark.parametrize("page, text", YAML, ids=[f"{name(page)}-{k}" for k, (page, _) in enumerate(YAML)])
def test_configuration_parses(page: Path, text: str, tmp_path: Path) -> None:
    (tmp_path / "shown.yaml").write_text(text)
    config = parse_anew(["-c", str(ROOT / "configs" / "default.yaml"), "-c", str(tmp_path / "shown.yaml")])
    assert config.head in text


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_data_parses(page: Path) -> None:
    """Blocks of TOML, CSV and BibTeX: an entry point that is read, rows as long as their header, the cited version."""
    for text in blocks(page, "toml"):
        (group,) = tomllib.loads(text)["project"]["entry-points"]
        assert group in (PLUGINS, COMMANDS, STAGES)
    for text in blocks(page, "csv"):
        header, *rows = csv.reader(text.splitlines())
        assert rows and all(len(row) == len(header) for row in rows)
    for text in blocks(page, "bibtex"):
        assert f"version = {{{__version__}}}" in text and text.count("{") == text.count("}")


def test_results_begin_as_shown(run: Path) -> None:
    [shown] = blocks(ROOT / "docs" / "reference" / "results-json.md", "json")
    real = (run / "results.json").read_text()
    keys = [re.findall(r'^ *"\w+":|^ *[{[]$', text, re.MULTILINE) for text in (shown, real)]
    assert len(keys[0]) > 10 and keys[0] == keys[1][: len(keys[0])]


@pytest.mark.parametrize("page", ["README.md", "docs/help/alternatives.md"])
def test_numbers_are_those_of_the_tables(page: str) -> None:
    """KL divergences on the start page and beside other packages are on the page of results.

    test_landing.py compares the output of a run.
    """
    measured = (ROOT / "docs" / "results" / "tables.md").read_text()
    shown = re.findall(r"\b0\.\d{4}(?: ± 0\.\d{4})?", FENCE.sub("", (ROOT / page).read_text()))
    assert len(shown) > 10 and [number for number in shown if number not in measured] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links(page: Path) -> None:
    text = FENCE.sub("", page.read_text())
    for target in LINK.findall(text):
        if "://" in target:
            assert re.fullmatch(r"https?://[\w-]+(\.[\w-]+)+(/\S*)?", target), f"{name(page)} links to {target}"
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        if path.parent == EXAMPLES and path.suffix in (".md", ".png"):
            path = path.with_suffix(".py")  # its page and thumbnail are written when the site is built
        assert path.exists(), f"{name(page)} links to {target}"
        if anchor:
            anchors = anchors_of(path.read_text())
            assert anchor in anchors, f"{name(page)} links to {target}; there are {anchors}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page, "python") and page.stem not in ("tutorial", "raters")],
    ids=name,
)  # see test_tutorial.py and test_raters_guide.py
def test_python_runs(page: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page one after the other, in a folder of its own, with one epoch and few digits."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(run / "checkpoints" / "last.ckpt", tmp_path)
    data = RotatedDigits(turns=1)
    data.setup()
    rows = data.split.test[:MOST]
    scope: dict[str, object] = {"inputs": data.inputs(rows, rows, train=False)}
    for block in blocks(page, "python"):
        if not block.startswith("--8<--"):  # a file that tests/test_snippets.py runs
            block = re.sub(r"max_epochs=\d+", "max_epochs=1, enable_progress_bar=False, logger=False", block)
            exec(compile(block.replace("RotatedDigits()", "RotatedDigits(turns=1)"), name(page), "exec"), scope)
        if isinstance(scope.get("found"), Predictions) and "last.ckpt" in block and "trainer" not in scope:
            compare(scope["found"], run / "predictions.csv")


@pytest.mark.slow
def test_quick_start_runs(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands one after the other, with one epoch, one turn and two folds; some go on with a checkpoint."""
    monkeypatch.chdir(ROOT)
    for number, command in enumerate(commands(ROOT / "docs" / "quickstart.md")):
        options = options_of(command, run)
        if "--model.head.help" in options or "--print_config" in options:
            continue
        folder, resumes = tmp_path / str(number), "--ckpt_path" in options and "--stage" not in options
        place = [] if resumes else ["--run_dir", str(folder)]
        folds = [] if "--ckpt_path" in options else ["--data.folds=2"]
        main([*options, *SHORT, *folds, f"--trainer.max_epochs={1 + resumes}", *place])
        left = run if resumes else folder
        assert (left / ("predictions.csv" if "predict" in options else "results.json")).is_file(), command


def test_benchmarks_find_their_blocks() -> None:
    """benchmarks/README.md has all scripts, and the blocks in its last column stand once in the pages."""
    rows = [line for line in (ROOT / "benchmarks" / "README.md").read_text().splitlines() if line.startswith("| `")]
    blocks = [block for row in rows for block in re.findall(r"`(\w+)`", row.split("|")[-2])]
    pages = "".join(page.read_text() for page in PAGES)
    scripts = [path for path in (ROOT / "benchmarks").rglob("*.py") if "\n    launch(main)\n" in path.read_text()]
    named = {re.findall("`(.*?)`", row)[0] for row in rows}
    assert {str(script.relative_to(ROOT / "benchmarks")) for script in scripts} <= named and len(blocks) > 5
    for block in blocks:
        assert re.findall(f"<!-- begin {block} -->\n.*?<!-- end {block} -->", pages, re.DOTALL), block
        assert pages.count(f"<!-- begin {block} -->") == 1, block


@pytest.mark.parametrize("page, name", [(page, name) for page, blocks in reference.BLOCKS.items() for name in blocks])
def test_reference_is_as_written(page: str, name: str) -> None:
    """The blocks of docs/reference follow from the code."""
    assert reference.block_of(page, name) == reference.BLOCKS[page][name](), "run python docs/write_reference.py"


def test_every_variable_is_explained() -> None:
    """The variables of the environment that ldl reads, on the page about them."""
    text = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    used = {name for file in (ROOT / "ldl").rglob("*.py") for name in re.findall(r"\bLDL_[A-Z_]+\b", file.read_text())}
    assert used and [name for name in sorted(used) if f"`{name}`" not in text] == []


def test_every_key_of_results_is_explained(run: Path) -> None:
    """The keys of ``results.json`` of a run, on the page about them."""
    text = (ROOT / "docs" / "reference" / "results-json.md").read_text()
    results = json.loads((run / "results.json").read_text())
    keys = {*results, *results["folds"][0], *results["versions"]}
    assert [key for key in sorted(keys) if f"`{key}`" not in text] == []


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no history")
def test_commits_of_results_exist() -> None:
    """A page that names a commit, from which its script can be run, names one of this history."""
    pages = [page for folder in ("results", "papers", "data") for page in (ROOT / "docs" / folder).glob("*.md")]
    named = {commit for page in pages for commit in re.findall(r"\bcommit `?([0-9a-f]{7,40})\b", page.read_text())}
    known = [subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT).returncode for commit in named]
    assert named and not any(known), named


def test_summary_is_that_of_the_pages() -> None:
    """The summary of all benchmarks and the table of README.md have the numbers of the other pages."""
    for page, blocks in summary.BLOCKS.items():
        text = (ROOT / page).read_text()
        for name, write in blocks.items():
            assert f"<!-- begin {name} -->\n{write()}\n<!-- end {name} -->" in text, "run python benchmarks/summary.py"


@pytest.mark.parametrize("name", annotators.TABLES)
def test_tables_of_annotators_are_those_of_the_stored_results(name: str) -> None:
    text, results = (ROOT / "docs" / "annotators.md").read_text(), json.loads(annotators.STORED.read_text())
    table = annotators.TABLES[name](results["agreement" if name.endswith("agreement") else "measure"])
    assert f"<!-- begin {name} -->\n{table}\n<!-- end {name} -->" in text, "run python benchmarks/annotators.py report"


@pytest.mark.parametrize("name", ["tabular", "pool"])
def test_stored_results_are_of_the_present_heads(name: str) -> None:
    """So that ``tabular.py --report`` writes the tables, and measures anew where a hyperparameter has changed."""
    config = yaml.safe_load((ROOT / "benchmarks" / "tables" / f"{name}.yaml").read_text())
    choice = Selection(tuple(config.get("choose_by", ["kl"])), config.get("inner_folds", 1))
    now = {
        (key, str(tabular.digest(tabular.Method(key, **entry), choice, False)))
        for key, entry in config["methods"].items()
    }
    with (ROOT / "benchmarks" / "tables" / "jobs" / f"{name}.csv").open(newline="") as file:
        assert {(row["method"], row["spec"]) for row in csv.DictReader(file)} == now


@pytest.mark.parametrize("name", ["pool", "tabular"])
def test_the_measured_pool_is_the_one_of_the_run(name: str) -> None:
    method = yaml.safe_load((ROOT / "benchmarks" / "tables" / f"{name}.yaml").read_text())["methods"]["Pool"]
    run, head = (yaml.safe_load((CONFIGS / f"{path}.yaml").read_text()) for path in ("runs/tabular/pool", "heads/pool"))
    assert method == run["model"]["head"] == head["model"]["head"]


def test_every_measure_is_explained() -> None:
    """By its name, or as one of a family that differs in a number or a group."""
    text = (ROOT / "docs" / "results" / "measures.md").read_text()
    spaces = LabelSpace.ordinal(range(101), "years"), LabelSpace.nominal(list("abc")), LabelSpace.nominal(["no", "yes"])
    names = {measure.name for labels in spaces for measure in metrics_for(labels)} - registry._registered.keys()
    names |= {*EDGE_METRICS, *CRISP, "disagreement"}
    stems = {re.sub(r"(_(many|medium|few|\d+_\d+)|\d+)$", "", name) for name in names}
    assert len(stems) > 30 and [stem for stem in stems if not re.search(rf"`{stem}(_|\d|`)", text)] == []


def test_readme_is_one_page() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 130
    assert sum(line.startswith("|---") for line in lines) == 2  # heads, results
    assert 10 <= len(re.findall(r"\d+\.\d+", dict(BLOCK.findall("\n".join(lines)))["landing"])) <= 20
