"""``--stage compare``: candidates on the same folds, a table with tests, and the configuration to train."""

from __future__ import annotations

import json
import math
from collections import Counter
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jsonargparse import Namespace
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ldl.charts.drawing import warn_on_error
from ldl.checkpoint import replacing
from ldl.command.command_line import Command, parse_anew
from ldl.command.messages import program, user_errors
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.jobs.identity import split_of
from ldl.jobs.store import JOBS_FOLDER, Job, Key, Result, Store
from ldl.jobs.workers import OTHER_WORKER, PerProcess, Workers
from ldl.protocols import leak, split_ratio
from ldl.reports.files import ESCAPED, as_text, markdown, write_json
from ldl.run import signals
from ldl.run.console import bars
from ldl.run.output import quiet_trainers
from ldl.run.run_dir import check_no_run, choose_folder, run_dir_lock
from ldl.search.candidates import RunCandidate, identities, make_candidates
from ldl.search.comparison import ComparisonFile, read_comparison
from ldl.search.selection import ALL, FoldNumber, Selection, choose_and_test
from ldl.search.statistics import Outcome, best_of, draw_ranks, spread

TABLE_HEADER = ["candidate", "KL", "p against the best", "rank", "seconds a fold"]
"""Columns of the table; with votes, their NLL follows the KL, and with raters :data:`RATER_HEADER` comes last."""
RATER_HEADER = ["vote NLL given the rater", "p against the best of it"]
"""Columns of the table if a candidate has a model of raters."""


def compare(command: Command) -> None:
    """Test every candidate on every fold, report, and write ``recommended.yaml``.

    Every result is written at once: the same command with the same run directory continues after a stop, and tries
    failed jobs again. The test set of a fold is used once for each candidate.

    Raises:
        LDLError: a candidate cannot be made, they have different test rows, the run directory has another comparison
            or a run, or all candidates failed.
    """
    file = read_comparison(command)
    with quiet_trainers(), user_errors():
        candidates = make_candidates(file)
        data = candidates[0].open(candidates[0].settings[0], 0)
        if any(len(candidate.settings) > 1 for candidate in candidates):
            file.selection.splits(data)  # raises an error now and not in every fold
        run_dir = [] if file.run_dir is None else ["--run_dir", file.run_dir]
        config = parse_anew([*file.command(next(iter(file.entries.values())), {}), *run_dir]).values
        folder = choose_folder(config, data, "compare")
        with run_dir_lock(folder):
            check_no_run(folder, "a comparison")
            signals.shutdown.again = f"the same command with --run_dir {folder} resumes it"
            outcome, recommended, facts = _run_jobs(file, candidates, data, folder, config)
            write_report(folder, outcome, facts)
            with replacing(folder / "recommended.yaml") as stream:
                stream.write(recommended.text(facts["setting"]).encode())
            _show(folder, outcome, facts)


def _run_jobs(
    file: ComparisonFile, candidates: list[RunCandidate], data: LDLDataModule, folder: Path, config: Namespace
) -> tuple[Outcome, RunCandidate, dict[str, Any]]:
    """Compute missing results; returns the outcome, the recommended candidate, and facts such as its setting."""
    store, workers = Store(folder / JOBS_FOLDER), Workers(config.jobs, config.scheduler)
    of = f"{type(data).__name__} {getattr(data, 'path', data.root)}"
    if others := [row["of"] for row in store.rows if row["of"] != of]:
        raise LDLError(f"--run_dir {folder} has the comparison of {others[0]}, not {of}; give another folder")
    specs, folds = identities(candidates, file.selection), range(data.num_folds)
    remote = PerProcess(f"{folder.absolute()} {specs}", partial(_open, file, specs))

    def key(candidate: RunCandidate, fold: FoldNumber) -> Key:
        return {"of": of, "candidate": candidate.name, "fold": fold, "spec": specs[candidate.name]}

    def job(candidate: RunCandidate, fold: int) -> Job:
        if workers.are_remote:
            return Job(key(candidate, fold), partial(_test_remotely, remote, candidate.name, fold, file.selection))
        return Job(key(candidate, fold), partial(choose_and_test, candidate, fold, file.selection))

    jobs = {(each.name, fold): job(each, fold) for fold in folds for each in candidates}
    with bars(config.trainer.enable_progress_bar is not False) as progress:
        done = sum(store.find(each) is not None for each in jobs.values())
        bar = progress.add_task("candidates on folds", total=len(jobs), completed=done)
        store.fill(jobs.values(), workers, lambda result: progress.advance(bar))
    results: dict[str, list[Result]] = {each.name: [] for each in candidates}
    for (name, fold), each in jobs.items():
        results[name].append({"fold": fold, **(store.find(each) or {})})
    outcome = Outcome(results, split_ratio(split_of(data, fold) for fold in folds))
    if not outcome.kl:
        name, reason = next(iter(outcome.failed.items()))
        raise LDLError(f"every candidate failed; {name} in {reason}")
    recommended = next(candidate for candidate in candidates if candidate.name == outcome.recommended)
    final = store.get(key(recommended, ALL), lambda: {"setting": file.selection.choose(recommended, ALL).setting})
    groups = None if data.leaky is None else data.groups
    facts = {
        "data": of,
        "protocol": data.protocol,
        "leaky": data.leaky,
        "leak": None if groups is None else max(leak(split_of(data, fold), groups) for fold in folds),
        "folds": len(folds),
        "choice": str(file.selection),
        "version": version("ldl"),
        "setting": final["setting"],
    }
    return outcome, recommended, facts


def _test_remotely(remote: PerProcess, name: str, fold: int, selection: Selection) -> Result:
    with user_errors():
        candidates = remote.get()
    return choose_and_test(candidates[name], fold, selection)


def _open(file: ComparisonFile, specs: dict[str, str]) -> dict[str, RunCandidate]:
    candidates = make_candidates(file)
    if identities(candidates, file.selection) != specs:
        raise LDLError(OTHER_WORKER)
    return {candidate.name: candidate for candidate in candidates}


# The report.


def header(outcome: Outcome) -> list[str]:
    """Return the header of :func:`table`."""
    of_raters = RATER_HEADER if outcome.rater_nll else []
    return [*TABLE_HEADER[:2], *(["vote NLL"] if outcome.vote_nll else []), *TABLE_HEADER[2:], *of_raters]


def table(outcome: Outcome) -> list[list[str]]:
    """Return the rows below :func:`header`, the lowest mean KL first and failed candidates last."""
    ranks, tests, rater_tests = dict(zip(outcome.kl, outcome.ranks.mean(0))), outcome.p, outcome.rater_p
    best_for_raters = best_of(outcome.rater_nll, "rater_nll") if outcome.rater_nll else None
    rows = []
    for name in sorted(outcome.kl, key=lambda name: float(outcome.kl[name].mean())):
        losses = [spread(losses[name], 4) for losses in (outcome.kl, outcome.vote_nll) if losses]
        row = [name, *losses, _p_text(tests[name], name == outcome.best), f"{ranks[name]:.1f}"]
        row.append(f"{outcome.seconds(name):.2f}")
        if outcome.rater_nll:
            row += [spread(outcome.rater_nll[name], 4), _p_text(rater_tests[name], name == best_for_raters)]
        rows.append(row)
    empty = [""] * (len(header(outcome)) - 2)
    return rows + [[name, "failed", *empty] for name in outcome.failed]


def _p_text(p: float, is_best: bool) -> str:
    if is_best or math.isnan(p):
        return "best" if is_best else "-"
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def write_report(folder: Path, outcome: Outcome, facts: dict[str, Any]) -> None:
    """Write ``comparison.json``, ``table.md`` and, for at least two candidates, ``ranks.png``.

    Args:
        folder: The run directory.
        outcome: The outcome.
        facts: Data, protocol and selection, which ``comparison.json`` begins with.
    """
    chosen = {"best": outcome.best, "recommended": outcome.recommended, "reason": outcome.reason}
    write_json(folder / "comparison.json", {**facts, **chosen, "candidates": _candidates(outcome)})
    rows = [[as_text(name), *cells] for name, *cells in table(outcome)]
    protocol = (
        f"{as_text(facts['data'])}, {facts['protocol']}, {facts['folds']} folds ({_leakage(facts['leak'])}). Mean ± "
        f"standard deviation over the folds; settings chosen {facts['choice']}; p of a two-sided paired t-test over "
        "the folds, corrected for the training rows that they share (Nadeau & Bengio 2003) and for the number of "
        "candidates (Holm)."
    )
    if outcome.vote_nll:
        protocol += (
            " The vote NLL is the KL plus the entropy of the votes, which is the same for all candidates, so p and "
            "ranks hold for both."
        )
    if outcome.rater_nll:
        protocol += (
            " The vote NLL given the rater has tests of its own; a candidate without a model of raters predicts all "
            "raters alike."
        )
    lines = [protocol, "", markdown(header(outcome), rows), "", f"{outcome.reason}.", "", *_chosen_settings(outcome)]
    lines += [f"- {as_text(name)} failed: {as_text(reason)}" for name, reason in outcome.failed.items()]
    (folder / "table.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8", errors=ESCAPED)
    if len(outcome.kl) > 1:
        with warn_on_error("ranks.png"):
            draw_ranks(list(outcome.kl), outcome.ranks, folder / "ranks.png", "folds")


def _leakage(share: float | None) -> str:
    if share is None:
        return "groups unknown, so group leakage cannot be audited"
    return f"{share:.1%} of test rows share a group with training"


def _candidates(outcome: Outcome) -> list[dict[str, Any]]:
    entries = []
    for name, rows in outcome.results.items():
        entry: dict[str, Any] = {"name": name, "error": outcome.failed.get(name)}
        entry |= dict.fromkeys(("kl", "p", "seconds"))
        for metric, losses in (("kl", outcome.kl), ("vote_nll", outcome.vote_nll), ("rater_nll", outcome.rater_nll)):
            if name in losses:
                entry[metric] = {"mean": float(losses[name].mean()), "std": float(losses[name].std(ddof=1))}
        if name in outcome.kl:
            entry |= {"p": outcome.p[name], "seconds": outcome.seconds(name)}
        if name in outcome.rater_nll:
            entry["rater_nll"]["p"] = outcome.rater_p[name]
        folds = [{key: row.get(key) for key in ("fold", "setting", "measures")} for row in rows]
        entries.append({**entry, "folds": folds})
    return entries


def _chosen_settings(outcome: Outcome) -> list[str]:
    """Return lines with the chosen settings, the number of folds that took each, and the settings that failed."""
    lines = []
    for name in outcome.kl:
        counts = Counter(json.dumps(row["setting"]) for row in outcome.results[name] if row["setting"])
        if counts:
            taken = (f"{as_text(setting_text(json.loads(text)))} ({count})" for text, count in counts.most_common())
            lines.append(f"- {as_text(name)}: {'; '.join(taken)}")
    for name, rows in outcome.results.items():
        failed = {text: reason for row in rows for text, reason in row.get("failed_settings", {}).items()}
        for text, reason in failed.items():
            lines.append(f"- {as_text(name)} failed with {as_text(setting_text(json.loads(text)))}: {as_text(reason)}")
    return ["Hyperparameters chosen, and in how many folds:", "", *lines, ""] if lines else []


def setting_text(setting: dict[str, Any]) -> str:
    """Return a setting as on a command line, without dashes."""
    return ", ".join(f"{name} {value}" for name, value in setting.items())


def _show(folder: Path, outcome: Outcome, facts: dict[str, Any]) -> None:
    title = f"{facts['data']}, {facts['protocol']}, {facts['folds']} folds"
    shown = Table(title=Text(title), caption=_leakage(facts["leak"]))
    for number, name in enumerate(header(outcome)):
        shown.add_column(name, justify="right" if number else "left")
    for row in table(outcome):
        shown.add_row(*map(Text, row))
    Console().print(shown)
    for name, reason in outcome.failed.items():
        print(f"{name} failed in {reason}")
    setting = setting_text(facts["setting"])
    print(f"recommended: {outcome.recommended}{setting and f' with {setting}'}")
    print(f"because {outcome.reason}")
    print(f"train it: {program()} -c {folder / 'recommended.yaml'}")
    print(f"more: {', '.join(str(folder / name) for name in ('table.md', 'ranks.png', 'comparison.json'))}")
