"""Made-up comments with votes, whose words decide how kind people find them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

WORDS = {
    "kind": ("thank you", "lovely idea", "well done", "so helpful", "great work", "glad you came"),
    "rude": ("go away", "what rubbish", "nobody asked", "awful nonsense", "stupid waste", "be quiet"),
}
SUBJECTS = ("the garden", "this recipe", "our bus stop", "the new bridge", "your song", "that old film")
LABELS = ("kind", "rude")


def comments(rows: int = 120, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a table of comments, with columns ``id``, ``comment`` and ``length``, and one of votes on them.

    Each of five raters calls a comment by its words in four of five cases.
    """
    rng = np.random.default_rng(seed)
    mood = rng.choice(LABELS, rows)
    texts = [
        f"{', '.join(rng.choice(WORDS[each], 3, replace=False))}: {rng.choice(SUBJECTS)} {number}"
        for number, each in enumerate(mood)
    ]
    table = pd.DataFrame({"id": np.arange(rows) + 1, "comment": texts, "length": [len(text) for text in texts]})
    agrees = rng.random((rows, 5)) < 0.8
    labels = np.where(agrees, mood[:, None], np.where(mood == "kind", "rude", "kind")[:, None])
    votes = pd.DataFrame(labels, columns=[f"r{number}" for number in range(5)]).assign(id=table["id"])
    votes = votes.melt("id", var_name="rater", value_name="label").sort_values(["id", "rater"], ignore_index=True)
    return table, votes


def save(folder: Path, rows: int = 120, seed: int = 0) -> tuple[Path, Path]:
    """Write both tables into a folder, and return their paths."""
    table, votes = comments(rows, seed)
    paths = folder / "comments.csv", folder / "votes.csv"
    table.to_csv(paths[0], index=False)
    votes.to_csv(paths[1], index=False)
    return paths
