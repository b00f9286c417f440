"""A made-up table of films with the faults of a real one: shares of votes that sum to 65 to 135, gaps, text, an id."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

OPTIONS = ("--data.label_columns=r*", "--data.votes_column=votes", "--data.drop=title")
"""What the table needs on the command line."""
RATINGS = [f"r{rating}" for rating in range(1, 11)]


def films(rows: int = 120, seed: int = 0, noise: float = 0.0) -> pd.DataFrame:
    """A table whose votes depend on year, rating class and genre. Its last two films have no votes.

    ``noise`` is the standard deviation of what is special about a film. ``docs/examples/films.csv`` is
    ``films(600, 1, 1.0)``.
    """
    rng = np.random.default_rng(seed)
    year, genre = rng.integers(1930, 2006, rows), (rng.random((rows, 2)) < 0.3).astype(int)
    classes = rng.choice(["", "PG", "PG-13", "R", "NC-17"], rows, p=[0.5, 0.15, 0.15, 0.15, 0.05])
    mean = 4 + 0.03 * (year - 1960) + genre[:, 0] + 2 * (classes == "R")
    mean = mean + noise * np.random.default_rng(seed + 1).normal(size=rows)
    chance = np.exp(-(((np.arange(1, 11) - mean[:, None]) / 2) ** 2))
    votes = np.round(10 ** rng.uniform(0.7, 5, rows)).astype(int)
    counts = [rng.multinomial(min(count, 1000), p / p.sum()) for count, p in zip(votes, chance)]
    shares = np.array(counts) / np.sum(counts, 1)[:, None] * rng.uniform(65, 135, (rows, 1))
    shares[-2:], votes[-2:] = 0, 0
    table = {
        "id": np.arange(rows) + 100,
        "title": [f"Film {number}" for number in range(rows)],
        "year": year,
        "length": rng.integers(60, 200, rows),
        "budget": np.where(rng.random(rows) < 0.5, np.nan, 10 ** rng.uniform(4, 8, rows).round(2)),
        "votes": votes,
        "mpaa": classes,
        "Action": genre[:, 0],
        "Short": genre[:, 1],
    }
    return pd.DataFrame(table | dict(zip(RATINGS, shares.round(1).T)))


def save(folder: Path, table: pd.DataFrame, kind: str = "csv") -> Path:
    path = folder / f"films.{kind}"
    table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path)
    return path
