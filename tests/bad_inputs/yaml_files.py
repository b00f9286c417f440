"""Configurations that are no YAML, no configuration, or more than one should hold."""

from __future__ import annotations

from pathlib import Path

from bad_inputs.harness import SMALL, Case

SOUND = (
    "data: {class_path: TabularLDL, init_args: {path: '{here}/table.csv'}}\nmodel: {backbone: null, head: Softmax}\n"
)

RUNS_A_COMMAND = "{class_path: os.system, init_args: {command: touch PWNED}}"
# What stands in a.yaml, and what the line says.
CONTENT: dict[str, tuple[str | bytes, str]] = {
    "sound": ("seed_everything: 3\n", ""),
    "byte order mark": ("seed_everything: 3\n".encode("utf-8-sig"), ""),
    "empty": ("", "a.yaml"),
    "latin-1": ("model: {decoder: größe}\n".encode("latin-1"), "a.yaml|line 1|UTF-8|0xf6"),
    "utf-16": ("model: {}\n".encode("utf-16"), "a.yaml|line 1|UTF-8|0xff"),
    "NUL": (b"model: {}\0\n", "a.yaml"),
    "control characters": (b"model: \x01\n", "a.yaml"),
    "tabs": ("model:\n\thead: LDLF\n", "a.yaml|line 2"),
    "open bracket": ("model: [\n", "a.yaml|line 2"),
    "brackets without end": ("model: " + "[" * 3000 + "]" * 3000, "a.yaml"),
    "a number": ("7\n", "a.yaml"),
    "a list": ("- a\n- b\n", "a.yaml"),
    "a text": ("abc\n", "a.yaml"),
    "two documents": ("seed_everything: 1\n---\nseed_everything: 2\n", "a.yaml"),
    "a key twice": ("seed_everything: 1\nseed_everything: 2\n", "a.yaml|seed_everything"),
    "a tag that runs": ("model: !!python/object/apply:os.system [touch PWNED]\n", "a.yaml"),
    "an unknown tag": ("model: !x {}\n", "a.yaml"),
    "an anchor within itself": ("model: &a [*a]\n", "line 1|contains itself"),
    "keys that are numbers": ("1: 2\n", "1"),
    "keys that are lists": ("? [a]\n: 2\n", "a.yaml"),
    "no model": ("model: null\n", "model"),
    "no data": ("data: null\n", "data"),
    "no head": ("model: {head: null}\n", "model.head"),
    "a list for a head": ("model: {head: [LDLF]}\n", "model.head"),
    "a number for a head": ("model: {head: 7}\n", "model.head"),
    "a list for the trainer": ("trainer: [1]\n", "trainer"),
    "arguments that are a list": ("model: {head: {class_path: LDLF, init_args: [1]}}\n", "model.head"),
    "a number for a class": ("model: {head: {class_path: 7}}\n", "model.head"),
    "arguments without class": ("model: {head: {init_args: {trees: 3}}}\n", "trees"),
    "a misspelt key": ("modle: {head: LDLF}\n", "'modle.head'|'model"),
    "a misspelt option": (
        "model: {head: {class_path: LDLF, init_args: {tree: 3}}}\n",
        "LDLF has no option 'tree'|trees",
    ),
    "a date for a seed": ("seed_everything: 2020-01-01\n", "seed_everything"),
    "an optimiser that runs": (f"model: {{optimizer: {RUNS_A_COMMAND}}}\n", "os.system"),
    "a scheduler that runs": (f"model: {{lr_scheduler: {RUNS_A_COMMAND}}}\n", "os.system"),
    "a head that runs": (f"model: {{head: {RUNS_A_COMMAND}}}\n", "os.system"),
    "a backbone that runs": (f"model: {{backbone: {RUNS_A_COMMAND}}}\n", "os.system"),
    "data that run": (f"data: {RUNS_A_COMMAND}\n", "os.system"),
    "a callback that runs": (f"trainer: {{callbacks: [{RUNS_A_COMMAND}]}}\n", "os.system"),
    "a logger that runs": (f"trainer: {{logger: {RUNS_A_COMMAND}}}\n", "os.system"),
    "loggers that run": (f"trainer: {{logger: [{RUNS_A_COMMAND}]}}\n", "os.system"),
    "a strategy that runs": (f"trainer: {{strategy: {RUNS_A_COMMAND}}}\n", "os.system"),
    "a plugin that runs": (f"trainer: {{plugins: [{RUNS_A_COMMAND}]}}\n", "os.system"),
    "a profiler that runs": (f"trainer: {{profiler: {RUNS_A_COMMAND}}}\n", "os.system"),
    "an accelerator that runs": (f"trainer: {{accelerator: {RUNS_A_COMMAND}}}\n", "os.system"),
    "wandb that runs": (f"wandb: {RUNS_A_COMMAND}\n", "os.system"),
}


def cases() -> dict[str, Case]:
    """All of them, by name."""
    return {f"yaml, {name}": _case(content, says) for name, (content, says) in CONTENT.items()}


def _case(content: str | bytes, says: str) -> Case:
    def write(here: Path) -> None:
        (here / "sound.yaml").write_text(SOUND.replace("{here}", str(here)))
        (here / "a.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())

    return Case("-c {here}/sound.yaml -c {here}/a.yaml", says, write, SMALL)
