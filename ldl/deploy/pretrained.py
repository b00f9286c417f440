"""Hand a model on, as a folder or a repository of the Hugging Face hub: checkpoint, model card and plain facts."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import yaml
from packaging.version import Version
from torch import Tensor

import ldl
from ldl.checkpoint import OUTPUT_ADVICE, describe, replacing, write_checkpoint
from ldl.errors import LDLError, explaining
from ldl.reports.card import USAGE, card_without_run, how_to_use, main_results
from ldl.reports.files import ESCAPED, write_json
from ldl.task import Task
from ldl.validation.files import read_text

CHECKPOINT, CARD, FACTS = "model.ckpt", "README.md", "config.json"
"""Files of a folder or repository. A model is read from the checkpoint; the others are for people and the hub."""


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
    write_json(folder / FACTS, facts, OUTPUT_ADVICE)
    opening = "From this folder" if name == "." else "From Python"
    usage = how_to_use(task, opening, f"from_pretrained({json.dumps(name)})", CHECKPOINT)
    with replacing(folder / CARD, OUTPUT_ADVICE) as file:
        file.write(_card(task, usage, license, source).encode(errors=ESCAPED))


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
        _warn_of_version(folder / FACTS)
        return folder / CHECKPOINT
    if folder.exists() or not re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", str(name)):
        raise LDLError(
            f"{name} is neither a folder nor the name of a repository, such as user/model; pass the file of a "
            "checkpoint to Predictor.from_checkpoint"
        )
    with hub_errors(f"there is no folder {name}, and the hub's repository {name}", revision) as hub:
        options |= {"revision": revision, "library_name": "ldl"}
        checkpoint = Path(hub.hf_hub_download(str(name), CHECKPOINT, **options))
        with suppress(hub.errors.EntryNotFoundError):  # the checkpoint suffices
            _warn_of_version(Path(hub.hf_hub_download(str(name), FACTS, **options)), str(name))
        return checkpoint


def _warn_of_version(file: Path, name: str | None = None) -> None:
    """Warn about a model of a later major or minor version of ldl, and about damaged facts."""
    if not file.is_file():
        return
    try:
        written = json.loads(read_text(file))["ldl_version"]
        later = Version(written).release[:2] > Version(ldl.__version__).release[:2]
    except (LDLError, ValueError, TypeError, LookupError, RecursionError):
        shown = file if name is None else f"{FACTS} of {name}"
        warnings.warn(f"{shown} has no readable ldl_version; the model is read from {CHECKPOINT} alone", stacklevel=4)
        return
    if later:
        warnings.warn(
            f"{name or file.parent} was written by ldl {written}, and this is ldl {ldl.__version__}: predictions may "
            "differ, or loading may fail; update with pip install --upgrade ldl",
            stacklevel=4,
        )


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
        LDLError: The hub cannot be reached, or rejects the request.
    """
    with TemporaryDirectory() as temporary, hub_errors(f"the hub's repository {repo_id}", None) as hub:
        api = hub.HfApi(endpoint=endpoint, token=token, library_name="ldl", library_version=ldl.__version__)
        repo, folder = api.create_repo(repo_id, private=private, exist_ok=True).repo_id, Path(temporary)
        save(task, folder, repo, license, source)  # the hub adds the name of the account
        files = [hub.CommitOperationAdd(name, folder / name) for name in (CHECKPOINT, CARD, FACTS)]
        message = f"Upload {type(task.head).__name__} with ldl {ldl.__version__}"
        return str(api.create_commit(repo, files, commit_message=message).commit_url)


@contextmanager
def hub_errors(repository: str, revision: str | None) -> Iterator[Any]:
    """Give ``huggingface_hub``, and raise its errors as LDLError of one line about ``repository``."""
    import huggingface_hub as hub  # here, since few programs need it
    from huggingface_hub import errors

    try:
        yield hub
    except LDLError:
        raise
    except errors.RepositoryNotFoundError as error:
        raise LDLError(f"{repository} does not exist or is private; correct the name, or pass token") from error
    except errors.RevisionNotFoundError as error:
        raise LDLError(f"{repository} has no revision {revision!r}; give a branch, a tag or a commit") from error
    except errors.LocalEntryNotFoundError as error:
        raise LDLError(f"{repository} cannot be reached, and no copy is in the cache; check the network") from error
    except errors.EntryNotFoundError as error:
        raise LDLError(f"{repository} has no {CHECKPOINT}; it was not written by Predictor.push_to_hub") from error
    except Exception as error:  # errors of HTTP and validation, without a common base
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise LDLError(f"{repository} cannot be used: {reason}") from error


def _is_plain(value: Any) -> bool:
    held = list(value.values()) if isinstance(value, dict) else value
    return all(map(_is_plain, held)) if isinstance(held, list | tuple) else not isinstance(held, Tensor)


def _card(task: Task, usage: str, license: str | None, source: Path | None) -> str:
    """Return the model card with the metadata of the hub: that beside ``source``, or a new one."""
    from huggingface_hub import ModelCard

    folder = None if source is None else source.absolute().parent
    if source is not None and folder is not None and source.name == CHECKPOINT and (folder / CARD).is_file():
        text = (folder / CARD).read_text(encoding="utf-8")
    else:
        card, results = _of_run(folder and folder.parent, f'from_checkpoint("checkpoints/{source and source.name}")')
        card = card or card_without_run(task, usage, {"ldl": ldl.__version__, "torch": str(torch.__version__)})
        text = f"---\n{_metadata(task, results).to_yaml()}\n---\n\n{card}"
    with explaining(f"{folder}/{CARD} has metadata that are no YAML", errors=(ValueError, yaml.YAMLError)):
        made = ModelCard(text)
    if license is not None:
        made.data["license"] = license
        made.data.pop("license_name", None)
    made.text = re.sub(rf"(?<=\n## {USAGE}\n\n).*?(?=\n\n## )", lambda _: usage, made.text, flags=re.DOTALL)
    return str(made)


def _of_run(run: Path | None, tested: str) -> tuple[str, dict[str, Any]]:
    """Return card and results of a run, or nothing if its card does not have the text ``tested``."""
    if run is None:
        return "", {}
    try:
        card = (run / "model_card.md").read_text(encoding="utf-8")
        results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "", {}
    # The results of a run are those of one of its checkpoints, which the card names.
    return (card, results) if tested in card else ("", {})


def _metadata(task: Task, results: dict[str, Any]) -> Any:
    """Return the metadata of the hub."""
    from huggingface_hub import EvalResult, ModelCardData

    shape, head = task.input_shape or (), type(task.head).__name__
    kind = "regression" if task.labels.has_values else "classification"
    kind = "image-classification" if len(shape) == 3 and shape[0] in (1, 3) else f"tabular-{kind}"
    metrics = main_results(results, task) if results else {}
    return ModelCardData(
        license="other",
        license_name="see-model-card",
        library_name="ldl",
        tags=["label-distribution-learning", head.lower(), type(task.backbone).__name__.lower()],
        pipeline_tag=None if task.gives_maps else kind,
        metrics=[*metrics] or None,
        model_name=head if metrics else None,
        eval_results=[EvalResult(kind, results["data"], results["title"], *each) for each in metrics.items()] or None,
    )
