"""The usual names of columns by their role in a table, and the names of the sets of a published split."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

Role = Literal["image", "item", "rater", "vote", "value", "group", "split", "bag", "text"]

USUAL: dict[Role, tuple[str, ...]] = {
    "image": ("path", "image", "image_path", "file", "file_name", "filename", "file_path", "filepath", "img_path"),
    # A column "id" beside one of those before it, or beside another name that ends in _id, often numbers the rows.
    "item": ("item", "task", "image", "path", "file", "instance", "example")
    + ("item_id", "task_id", "instance_id", "example_id", "sample_id", "image_id")
    + ("id", "image_path", "file_name", "filename", "uid", "uuid", "unnamed_0"),
    "rater": ("rater", "annotator", "worker", "reader", "reading", "user", "performer", "coder", "judge")
    + ("rater_id", "annotator_id", "worker_id", "reader_id", "user_id", "coder_id", "judge_id", "user_name"),
    "vote": ("label", "vote", "answer", "rating", "response", "class", "annotation", "judgment", "judgement"),
    "value": ("value", "values", "age", "target", "y"),
    "group": ("group", "groups", "person", "persons", "patient", "subject", "participant", "individual", "user")
    + ("slide", "case", "family", "identity")
    + ("group_id", "person_id", "patient_id", "subject_id", "participant_id", "individual_id", "user_id")
    + ("slide_id", "case_id", "family_id", "identity_id"),
    "split": ("split", "set", "subset", "partition", "usage", "part", "fold", "folds"),
    "bag": ("bag", "bag_id"),
    "text": ("text", "comment", "sentence", "tweet", "post", "message", "review", "utterance", "document", "passage")
    + ("question", "prompt", "context", "answer", "response", "reply", "completion", "statement", "title", "headline")
    + ("body", "content", "abstract", "paragraph", "transcript", "caption", "premise", "hypothesis")
    + ("comment_text", "tweet_text", "post_text", "review_text", "full_text", "raw_text"),
}
"""Usual names in the form of :func:`plain_name`, the most usual first."""

SPLIT_SETS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev", "development", "publictest"), "val"),
    **dict.fromkeys(("test", "testing", "privatetest"), "test"),
}
"""Sets of a published split, by their lower-case names in a column or in the names of folders."""


def plain_name(name: Any) -> str:
    """Return a name in lower case with words joined by ``_``: ``Patient ID`` and ``patientId`` are ``patient_id``."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", str(name).strip())
    return re.sub(r"[\W_]+", "_", words).strip("_").lower()


def usual_columns(header: Iterable[Any], role: Role) -> list[Any]:
    """Return the columns whose names are usual for a role, the most usual first.

    Any other name that ends in ``_id``, such as ``film_id``, may be an item.
    """
    header, order = list(header), {name: rank for rank, name in enumerate(USUAL[role])}
    if role == "item":
        others = {plain_name(name) for name in header} - {name for names in USUAL.values() for name in names}
        order |= {name: order["id"] for name in others if name.endswith("_id")}
    present = [name for name in header if plain_name(name) in order]
    return sorted(present, key=lambda name: (order[plain_name(name)], plain_name(name) == "id"))


def bag_column(header: Sequence[str]) -> str | None:
    """Return the column of the bags, the most usual one, or None."""
    return next(iter(usual_columns(header, "bag")), None)
