"""The raters of a data set: their names, their training votes, and their features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldl.errors import LDLError, did_you_mean, some
from ldl.tables.entries import spelling

if TYPE_CHECKING:
    from ldl.data.tables.columns import Encoding


def find_raters(names: Iterable[Any], known: Sequence[str]) -> np.ndarray:
    """Return the number of each rater (n,), int64, by the names ``known`` (R,) to a model; -1 for another rater.

    Names are compared by their :func:`ldl.tables.entries.spelling`.
    """
    number_of = {spelling(name): number for number, name in enumerate(known)}
    return np.array([number_of.get(spelling(name), -1) for name in names], np.int64)


def rater_numbers(names: Sequence[Any], known: Sequence[str], source: str, fix: str = "") -> np.ndarray:
    """Return the number of each rater (n,), int64, by the names ``known`` (R,) to a model.

    Args:
        names: Names of raters, compared as by :func:`find_raters`.
        known: Name of each rater of the model.
        source: Origin of the names, for messages.
        fix: End of the message, with a semicolon before it.

    Raises:
        LDLError: The model has no rater of a name.
    """
    numbers = find_raters(names, known)
    if unknown := list(dict.fromkeys(spelling(name) for name, number in zip(names, numbers) if number < 0)):
        raise LDLError(
            f"{source}: the model has no rater {some(unknown, 3)}{did_you_mean(unknown[0], known)}; it has the "
            f"{len(known)} raters {some(known, 5)}{fix}"
        )
    return numbers


@dataclass(frozen=True, eq=False)
class FeatureEncoding:
    """How the columns that describe raters become standardised features.

    Attributes:
        encoding: Encoding of the columns as F numbers.
        mean: (F,) mean over the raters with training votes, float64.
        scale: (F,) standard deviation over them, or 1 where it is 0, float64.
    """

    encoding: Encoding
    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, frame: Any, trained: np.ndarray) -> FeatureEncoding:
        """Learn from the rows ``trained`` (n,) of a typed frame, one row a rater (``ldl.data.tables.columns``)."""
        from ldl.data.tables.columns import Encoding  # the package ``ldl.data`` imports this module

        encoding = Encoding.fit(frame.iloc[trained], fill=True)
        numbers = encoding.transform(frame.iloc[trained], "raters")
        scale = numbers.std(0)
        return cls(encoding, numbers.mean(0), np.where(scale > 0, scale, 1.0))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FeatureEncoding:
        """Return the encoding of a checkpoint, whose form ``ldl.validation.checkpoint`` has checked."""
        from ldl.data.tables.columns import Encoding  # as above

        return cls(Encoding.from_state(state["columns"]), np.array(state["mean"]), np.array(state["scale"]))

    def state(self) -> dict[str, Any]:
        """Return plain values."""
        return {"columns": self.encoding.state(), "mean": self.mean.tolist(), "scale": self.scale.tolist()}

    def transform(self, frame: Any, source: str = "raters") -> np.ndarray:
        """Return features (n, F), float32, of a frame with these columns. Raises LDLError for other entries."""
        return ((self.encoding.transform(frame, source) - self.mean) / self.scale).astype(np.float32)


@dataclass(frozen=True, eq=False)
class RaterTable:
    """R raters, numbered from 0.

    Attributes:
        names: Name of each rater, each once.
        votes: (R,) number of training votes, int64; 0 for raters who have only other votes.
        features: (R, F) standardised features, float32; None if none are known.
        encoding: How columns become features; None if none are known.
    """

    names: Sequence[str]
    votes: np.ndarray
    features: np.ndarray | None = None
    encoding: FeatureEncoding | None = None

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> RaterTable:
        """Return the table of a checkpoint. Its features are 0, and are loaded with the weights of the model."""
        names, encoding = list(state["names"]), None
        features = None
        if state["features"] is not None:
            encoding = FeatureEncoding.from_state(state["features"])
            features = np.zeros((len(names), len(encoding.mean)), np.float32)
        return cls(names, np.array(state["votes"], np.int64), features, encoding)

    def state(self) -> dict[str, Any]:
        """Return plain values for a checkpoint, without the features of the raters."""
        features = None if self.encoding is None else self.encoding.state()
        return {"names": list(self.names), "votes": self.votes.tolist(), "features": features}

    def __len__(self) -> int:
        return len(self.names)
