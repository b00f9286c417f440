"""Hand a model on, as a folder or a repository of the Hugging Face hub: checkpoint, model card and plain facts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

import ldl
from ldl.checkpoint import MENDED_OUT, describe, replacing, write_checkpoint
from ldl.errors import LDLError
from ldl.reports.card import USAGE, card_without_run, how_to_use, main_results
from ldl.reports.files import ESCAPED, write_json
from ldl.task import Task

CHECKPOINT, CARD, FACTS = "model.ckpt", "README.md", "config.json"
"""Files of a folder or repository. Only the checkpoint is read; the others are for people and the hub."""


def save(task: Task, folder: Path, name: str, license: str | None, source: Path | None) -> None:
    """Write the files of a folder.

    Args:
        task: The trained task.
        folder: The folder; it is made, and files of the same names are replaced.
        name: Folder or repository that the card passes to ``from_pretrained``.
        license: Licence of the model by its name on the hub, such as ``mit``; None refers to the card.
        source: Checkpoint of the task. If it is the tested one of a run, the card has the run's data and results.

    Raises:
        LDLError: A file cannot be written.
    """
    write_checkpoint(task, folder / CHECKPOINT)
    described = describe(task)
    steps = (described["preprocessing"] or {}).items()
    described["preprocessing"] = {step: value for step, value in steps if _is_plain(value)}
    calibrated = None if task.calibration is None else task.calibration.units
    facts = {"library_name": "ldl", "ldl_version": ldl.__version__, **described, "calibrated_on": calibrated}
    write_json(folder / FACTS, facts, MENDED_OUT)
    usage = how_to_use(
        task, "From this folder" if name == "." else "From Python", f"from_pretrained({json.dumps(name)})", CHECKPOINT
    )
    card, results = _of_run(source)
    if card:
        card = re.sub(rf"(?<=\n## {USAGE}\n\n).*?(?=\n\n## )", lambda _: usage, card, flags=re.DOTALL)
    else:
        card = card_without_run(task, usage, {"ldl": ldl.__version__, "torch": str(torch.__version__)})
    with replacing(folder / CARD, MENDED_OUT) as file:
        file.write(f"---\n{_header(task, results, license)}\n---\n\n{card}".encode(errors=ESCAPED))


def find_checkpoint(name: str | Path, revision: str | None, options: dict[str, Any]) -> Path:
    """Return the checkpoint of a folder, or of a repository of the hub after its download.

    Args:
        name: Folder, or name of a repository.
        revision: Branch, tag or commit of a repository; None is its main branch.
        options: Further arguments of ``huggingface_hub.hf_hub_download``.

    Raises:
        LDLError: There is no such folder or repository, or it has no checkpoint.
    """
    folder = Path(os.path.expanduser(name))
    if folder.is_dir():
        if not (folder / CHECKPOINT).is_file():
            raise LDLError(
                f"{folder} has no {CHECKPOINT}; give a folder of save_pretrained, or pass the file of a checkpoint to "
                "Predictor.from_checkpoint"
            )
        return folder / CHECKPOINT
    if folder.exists() or not re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", str(name)):
        raise LDLError(
            f"{name} is neither a folder nor the name of a repository, such as user/model; pass the file of a "
            "checkpoint to Predictor.from_checkpoint"
        )
    with hub_errors(f"there is no folder {name}, and the hub's repository {name}", revision) as hub:
        return Path(hub.hf_hub_download(str(name), CHECKPOINT, revision=revision, library_name="ldl", **options))


def push(
    task: Task,
    repo_id: str,
    license: str | None,
    source: Path | None,
    private: bool | None,
    token: str | bool | None,
    endpoint: str | None,
) -> str:
    """Commit the files of :func:`save` to a repository, which is made if it does not exist; return the commit's URL.

    Raises:
        LDLError: The hub cannot be reached or refuses.
    """
    with TemporaryDirectory() as temporary, hub_errors(f"the hub's repository {repo_id}", None) as hub:
        folder = Path(temporary)
        save(task, folder, repo_id, license, source)
        api = hub.HfApi(endpoint=endpoint, token=token, library_name="ldl", library_version=ldl.__version__)
        repo = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
        files = [hub.CommitOperationAdd(name, folder / name) for name in (CHECKPOINT, CARD, FACTS)]
        message = f"Upload {type(task.head).__name__} with ldl {ldl.__version__}"
        return str(api.create_commit(repo, files, commit_message=message).commit_url)


@contextmanager
def hub_errors(what: str, revision: str | None) -> Iterator[Any]:
    """Give ``huggingface_hub``, and raise its errors as LDLError of one line about ``what``."""
    import huggingface_hub as hub  # here, since few programs need it
    from huggingface_hub import errors

    try:
        yield hub
    except LDLError:
        raise
    except errors.RepositoryNotFoundError as error:
        raise LDLError(f"{what} does not exist or is private; correct the name, or pass token") from error
    except errors.RevisionNotFoundError as error:
        raise LDLError(f"{what} has no revision {revision!r}; give a branch, a tag or a commit") from error
    except errors.LocalEntryNotFoundError as error:
        raise LDLError(f"{what} cannot be reached, and no copy is in the cache; check the network") from error
    except errors.EntryNotFoundError as error:
        raise LDLError(f"{what} has no {CHECKPOINT}; it was not written by Predictor.push_to_hub") from error
    except Exception as error:  # errors of HTTP and validation, without a common base
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise LDLError(f"{what} cannot be used: {reason}") from error


def _is_plain(value: Any) -> bool:
    held = value.values() if isinstance(value, dict) else [value]
    return not any(isinstance(part, Tensor) for part in held)


def _of_run(source: Path | None) -> tuple[str, dict[str, Any]]:
    """Return card and results of the run whose tested checkpoint is ``source``, or nothing."""
    if source is None:
        return "", {}
    run = source.absolute().parent.parent
    try:
        card = (run / "model_card.md").read_text(encoding="utf-8")
        results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "", {}
    # The results of a run are those of one of its checkpoints, which the card names.
    return (card, results) if f'from_checkpoint("checkpoints/{source.name}")' in card else ("", {})


def _header(task: Task, results: dict[str, Any], license: str | None) -> str:
    """Return the metadata of the hub in YAML."""
    from huggingface_hub import EvalResult, ModelCardData

    shape, head = task.input_shape or (), type(task.head).__name__
    kind = "regression" if task.labels.has_values else "classification"
    kind = "image-classification" if len(shape) == 3 and shape[0] in (1, 3) else f"tabular-{kind}"
    known = main_results(results, task) if results else {}
    return ModelCardData(
        license=license or "other",
        license_name=None if license else "see-model-card",
        license_link=None if license else CARD,
        library_name="ldl",
        tags=["label-distribution-learning", head.lower(), type(task.backbone).__name__.lower()],
        pipeline_tag=None if task.gives_maps else kind,
        metrics=[*known] or None,
        model_name=head if known else None,
        eval_results=[EvalResult(kind, results["data"], results["title"], *each) for each in known.items()] or None,
    ).to_yaml()
