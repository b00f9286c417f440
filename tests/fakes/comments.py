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


def unequal_votes(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Return votes on :func:`comments` of five raters, of whom ``dee`` calls most comments rude and ``eli`` guesses."""
    rng = np.random.default_rng(seed)
    is_rude = table["comment"].str.contains("|".join(WORDS["rude"])).to_numpy()
    chance = {"ann": (0.1, 0.9), "bea": (0.1, 0.9), "cem": (0.1, 0.9), "dee": (0.6, 0.98), "eli": (0.5, 0.5)}
    votes = []
    for rater, (of_kind, of_rude) in chance.items():
        says_rude = rng.random(len(table)) < np.where(is_rude, of_rude, of_kind)
        votes.append(pd.DataFrame({"id": table["id"], "rater": rater, "label": np.where(says_rude, "rude", "kind")}))
    return pd.concat(votes).sort_values(["id", "rater"], ignore_index=True)


def save(folder: Path, rows: int = 120, seed: int = 0) -> tuple[Path, Path]:
    """Write both tables into a folder, and return their paths."""
    table, votes = comments(rows, seed)
    paths = folder / "comments.csv", folder / "votes.csv"
    table.to_csv(paths[0], index=False)
    votes.to_csv(paths[1], index=False)
    return paths
