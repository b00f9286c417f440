"""Scaling of tabular features, learned from the training rows and stored with the model.

:class:`FeatureScaler` learns from rows in memory or in a file. :func:`scale` gives the same numbers in torch alone, for
graphs that run without Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from scipy.special import ndtr, ndtri
from sklearn.preprocessing import QuantileTransformer
from torch import Tensor

from ldl.data.storage import RowFile
from ldl.data.tables.distinct import LARGEST_FLOAT32, learn, merged, offset, offset_of, stack
from ldl.errors import LDLError
from ldl.validation.checkpoint import SCALINGS

Scaling = Literal["standard", "ranks", "hellinger", "quantile_normal", "quantile_uniform", "none"]
CONSTANT = 1e-12
"""A standard deviation below this share of the largest feature is rounding noise, not a scale."""
CROWDED = 0.01
"""Share of different fractions of a feature that rounding to float32 may merge: their last digits are noise."""
SORTED_BYTES = 2**29
"""Bytes of the columns that are sorted at a time."""
LIMIT = 3.0
"""Largest magnitude of a feature of the scaling ``ranks``."""


@dataclass
class FeatureScaler:
    """Scales features to comparable ranges, which soft splits need: sigmoids of raw features saturate.

    Attributes:
        kind: ``standard``: mean 0 and standard deviation 1; a feature that is constant in training is only centred.
            ``hellinger``: square roots, centred and divided by one number, so that Euclidean distances are Hellinger
            distances; for histograms and other non-negative features. ``quantile_normal``, ``quantile_uniform``: ranks
            mapped to a normal or uniform distribution of standard deviation 1, for skewed features. The smallest and
            the largest number go to its ends, +-5.2 for a normal one, however often they occur. ``ranks``: mapped to a
            normal distribution with ends at +-3, where equal numbers always get their mean rank, so that many zeros
            stay near 0. Features of two numbers become 0 and 1. ``none``: no scaling, but a feature whose numbers
            float32 would merge, such as times in seconds, is centred.
        clip: Largest magnitude of scaled features, or None.
    """

    kind: Scaling
    clip: float | None
    learned: dict[str, np.ndarray] = field(default_factory=dict, init=False)

    @property
    def _distribution(self) -> str:
        """Distribution to which ranks are mapped; empty for another scaling."""
        return {"quantile_normal": "normal", "quantile_uniform": "uniform", "ranks": "normal"}.get(self.kind, "")

    @property
    def _limit(self) -> float | None:
        """Magnitude from which scaled numbers are equal on purpose, or None."""
        return LIMIT if self.kind == "ranks" and self.clip is None else self.clip

    def fit(self, train: np.ndarray, weight: np.ndarray | None = None, flags: np.ndarray | None = None) -> None:
        """Learn from training rows, for each feature from its known numbers; NaN stays NaN.

        Args:
            train: (N, F) features.
            weight: (N,) weights of the rows in means and deviations; quantiles count rows. None weighs equally.
            flags: (F,) which features are 0 or 1. Quantiles would map them to the ends of the distribution, such as
                -5.2 and 5.2; instead they get the ranks of -1 and 1 in a normal distribution. ``ranks`` finds features
                of two numbers by itself. None: no feature.
        """
        present = ~np.isnan(train)
        if not present.all():
            # A feature that is missing in all rows is scaled as if it were 0.
            train = np.where(present.any(0), train, 0.0)

        def mean_of(rows: np.ndarray) -> np.ndarray:
            if weight is None:
                return np.nanmean(rows, 0)
            shares = np.where(np.isnan(rows), 0.0, weight[:, None])
            return np.nansum(shares * rows, 0) / shares.sum(0)

        if self._distribution:
            transformer = QuantileTransformer(n_quantiles=min(1000, len(train)), subsample=None).fit(train)
            self.learned = {"quantiles": transformer.quantiles_, "references": transformer.references_}
            if self.kind == "ranks":
                self._draw_lines(train)
            elif flags is not None:
                low, high = ndtr(-1), ndtr(1)
                line = (self.learned["references"] - low) / (high - low)
                self.learned["quantiles"][:, flags] = line[:, None]
        elif self.kind == "hellinger":
            train = roots(train)
            mean = mean_of(train)
            squares = np.square(train - mean)
            self._learn_hellinger(mean, np.sqrt(np.nanmean(squares) if weight is None else mean_of(squares).mean()))
        elif self.kind == "standard":
            mean = mean_of(train)
            deviation = np.nanstd(train, 0) if weight is None else np.sqrt(mean_of(np.square(train - mean)))
            self._learn_standard(mean, deviation, np.fmax.reduce(np.abs(train)))

    def fit_file(self, features: RowFile, rows: np.ndarray) -> None:
        """Learn like ``fit(features[rows])``, in blocks of rows, or of columns for quantiles.

        Sums are added in the order of the rows, as numpy adds the rows of an array. The results are equal, except for
        the last bits of the scale of ``hellinger``.

        Args:
            features: (N, F).
            rows: (n,) rising numbers of the training rows.
        """
        if self._distribution:
            self._fit_quantiles(features, rows)
        elif self.kind != "none":
            self._fit_moments(features, rows)

    def _fit_moments(self, features: RowFile, rows: np.ndarray) -> None:
        def blocks() -> Iterator[np.ndarray]:
            for _, block in features.blocks(rows):
                block = block.astype(np.float64)
                yield roots(block) if self.kind == "hellinger" else block

        total, count, largest, squares = (np.zeros(features.shape[1]) for _ in range(4))
        for block in blocks():
            present = ~np.isnan(block)
            block = np.where(present, block, 0.0)
            total, count = _add(total, block), count + present.sum(0)
            largest = np.maximum(largest, np.abs(block).max(0))
        # A feature that is missing in all rows is scaled as if it were 0.
        count = np.where(count > 0, count, len(rows))
        mean = total / count
        for block in blocks():
            squares = _add(squares, np.nan_to_num(np.square(block - mean), copy=False))
        if self.kind == "hellinger":
            self._learn_hellinger(mean, np.sqrt(squares.sum() / count.sum()))
        else:
            self._learn_standard(mean, np.sqrt(squares / count), largest)

    def _fit_quantiles(self, features: RowFile, rows: np.ndarray) -> None:
        width, step = features.shape[1], max(1, SORTED_BYTES // (8 * len(rows)))
        quantiles = []
        for first in range(0, width, step):
            columns = np.empty((len(rows), min(step, width - first)))
            for start, block in features.blocks(rows):
                columns[start : start + len(block)] = block[:, first : first + step]
            self.fit(columns)
            quantiles.append(self.learned["quantiles"])
        self.learned["quantiles"] = np.concatenate(quantiles, 1)

    def keep_distinct(self, features: np.ndarray | RowFile, rows: np.ndarray) -> None:
        """Keep different numbers of a feature different in float32; call it after ``fit`` or ``fit_file``.

        With ``none`` and no ``clip``, a feature is centred if rounding merges more than one in a hundred of its
        numbers. What rounding merges nevertheless in such a feature, or among whole numbers, is moved apart
        (:mod:`ldl.data.tables.distinct`). All other features keep their bits.

        Args:
            features: (N, F); rows in a file are left as they are if their type fits into float32.
            rows: (n,) rising numbers of the training rows.
        """
        if isinstance(features, RowFile) and np.can_cast(features.dtype, np.float32):
            return
        width, step = features.shape[1], max(1, SORTED_BYTES // (8 * len(rows)))
        moved: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        center = np.zeros(width)
        for first in range(0, width, step):
            columns = slice(first, first + step)
            numbers = _columns(features, rows, columns)
            with np.errstate(over="ignore"):
                exact = (numbers == numbers.astype(np.float32)) | np.isnan(numbers)
            if self.kind == "none" and exact.all():
                continue
            numbers = np.sort(numbers, axis=0)
            scaled = self._part(columns).transform(numbers)
            equal = merged(numbers, scaled, self._limit)
            whole = ((numbers == np.round(numbers)) | np.isnan(numbers)).all(0)
            crowded = equal.sum(0) > CROWDED * (np.diff(numbers, axis=0) > 0).sum(0)
            if self.kind == "none" and self.clip is None:
                middle = numbers[np.maximum((~np.isnan(numbers)).sum(0) - 1, 0) // 2, np.arange(numbers.shape[1])]
                center[columns] = np.where(crowded, middle, 0.0)
                scaled = numbers - center[columns]
                equal = merged(numbers, scaled, None)
            for column in np.flatnonzero((whole | crowded) & equal.any(0)).tolist():
                present = ~np.isnan(numbers[:, column])
                moved[first + column] = learn(
                    numbers[present, column], scaled[present, column], equal[present[1:], column]
                )
        if self.kind == "none" and (moved or center.any()):
            self.learned = {"mean": center, "scale": np.ones(width)}
        if moved:
            self.learned |= stack(moved)

    def _part(self, columns: slice) -> FeatureScaler:
        """Return the scaler of some features."""
        scaler = FeatureScaler(self.kind, self.clip)
        scaler.learned = {n: array if n == "references" else array[..., columns] for n, array in self.learned.items()}
        return scaler

    def _draw_lines(self, train: np.ndarray) -> None:
        """Make the quantiles of features of two numbers lines on which these numbers have the ranks of 0 and 1."""
        smallest, largest = np.fmin.reduce(train), np.fmax.reduce(train)
        of_two = ((train == smallest) | (train == largest) | np.isnan(train)).all(0) & (smallest < largest)
        line = (self.learned["references"] - 0.5) / (ndtr(1) - 0.5)
        self.learned["quantiles"][:, of_two] = (smallest + np.outer(line, largest - smallest))[:, of_two]

    def _learn_hellinger(self, mean: np.ndarray, scale: np.ndarray) -> None:
        self.learned = {"mean": mean, "scale": np.full_like(mean, scale if scale > 0 else 1.0)}

    def _learn_standard(self, mean: np.ndarray, deviation: np.ndarray, largest: np.ndarray) -> None:
        self.learned = {"mean": mean, "scale": np.where(deviation <= CONSTANT * largest, 1.0, deviation)}

    def transform(self, features: np.ndarray) -> np.ndarray:
        """Scale features (N, F). Raises LDLError for another number of features."""
        learned = self.learned.get("mean", self.learned.get("quantiles"))
        if learned is not None and learned.shape[-1] != features.shape[1]:
            raise LDLError(
                f"the data have {features.shape[1]} features, but the checkpoint was trained on {learned.shape[-1]}; "
                "give the data it was trained on"
            )
        numbers = features
        if self.kind == "ranks":
            features = ndtri(self._mean_ranks(features).clip(ndtr(-LIMIT), ndtr(LIMIT)))
        elif self._distribution:
            transformer = QuantileTransformer(output_distribution=self._distribution).set_output(transform="default")
            transformer.quantiles_ = self.learned["quantiles"]
            transformer.references_ = self.learned["references"]
            transformer.n_quantiles_ = len(transformer.references_)
            transformer.n_features_in_ = features.shape[1]
            features = transformer.transform(features)
            if self._distribution == "uniform":
                features = (features - 0.5) * 12**0.5
        elif "mean" in self.learned:
            features = roots(features) if self.kind == "hellinger" else features
            features = (features - self.learned["mean"]) / self.learned["scale"]
        features = features if self.clip is None else features.clip(-self.clip, self.clip)
        return features + offset(numbers, self.learned) if "knots" in self.learned else features

    def _mean_ranks(self, features: np.ndarray) -> np.ndarray:
        """Return the shares of training rows below the features, (N, F); equal numbers get their mean."""
        references, ranks = self.learned["references"], np.empty(features.shape)
        for column, quantiles in enumerate(self.learned["quantiles"].T):
            below = np.interp(-features[:, column], -quantiles[::-1], -references[::-1])
            ranks[:, column] = (np.interp(features[:, column], quantiles, references) - below) / 2
        return ranks

    def apply(self, features: np.ndarray, source: str, numbers: np.ndarray | None = None) -> Tensor:
        """Return scaled features (N, F) in float32; NaN stays NaN.

        Args:
            features: (N, F).
            source: Their origin, for messages.
            numbers: (N,) numbers of the rows in the source; None if they are all of it.

        Raises:
            LDLError: See :meth:`transform`; or a number is too large for float32.
        """
        features = features.astype(np.float64, copy=False)
        scaled = self.transform(features)
        wrong = np.argwhere(~(np.abs(scaled) <= LARGEST_FLOAT32) & ~np.isnan(features))
        if len(wrong):
            index, column = wrong[0]
            row = index if numbers is None else numbers[index]
            raise LDLError(
                f"{source}: row {row}, feature {column} is {features[index, column]:g}, with scaling {self.kind!r} "
                f"{scaled[index, column]:g}; float32 holds at most {LARGEST_FLOAT32:.2g}: correct it, or choose "
                "another data.scaling"
            )
        # In C order, as batches take rows; MATLAB files are in Fortran order.
        return torch.from_numpy(scaled.astype(np.float32, order="C"))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FeatureScaler:
        """Return the scaler of a checkpoint, whose form ``ldl.validation.checkpoint`` has checked."""
        scaler = cls(state["kind"], state["clip"])
        scaler.learned = _arrays(state)
        return scaler

    def state_dict(self) -> dict[str, Any]:
        """Return kind, clip, and the learned arrays as tensors."""
        learned = {name: torch.from_numpy(array) for name, array in self.learned.items()}
        return {"kind": self.kind, "clip": self.clip, **learned}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the learned arrays of another scaler. Raises LDLError if it scaled in another way."""
        for option, trained, current in (("scaling", state["kind"], self.kind), ("clip", state["clip"], self.clip)):
            if trained != current:
                raise LDLError(f"the checkpoint was trained with data.{option} {trained!r}, not {current!r}; set it so")
        learned = _arrays(state)
        for name in learned.keys() | SCALINGS[self.kind].keys():
            saved = learned.get(name, np.array(np.nan))
            if not np.isfinite(saved).all() or (name == "scale" and not (saved > 0).all()):
                raise LDLError(f"the checkpoint's {name} of the features is no scaling; take another checkpoint")
        self.learned = learned


def _arrays(state: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: value.cpu().numpy() for name, value in state.items() if isinstance(value, Tensor)}


def _columns(features: np.ndarray | RowFile, rows: np.ndarray, columns: slice) -> np.ndarray:
    """Return some columns of the training rows, float64."""
    if not isinstance(features, RowFile):
        return np.asarray(features[rows, columns], np.float64)
    return np.concatenate([block[:, columns].astype(np.float64) for _, block in features.blocks(rows)])


def _add(total: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.asarray(np.add.reduce(np.concatenate([total[None], rows])))


def roots(features: np.ndarray) -> np.ndarray:
    """Return square roots. Raises LDLError for negative numbers."""
    if len(negative := np.argwhere(features < 0)):
        row, column = negative[0]
        raise LDLError(
            f"data.scaling 'hellinger' takes square roots, but a row's feature {column} is {features[row, column]:g}; "
            "use 'standard' for features that may be negative"
        )
    return np.sqrt(features)


ENDS = 1e-7
"""Share of ranks at both ends at which scikit-learn cuts off a normal distribution."""
LOWEST, HIGHEST = -5.199337582605575, 5.19933758270342
"""Normal quantiles at these ends: of ``ENDS`` minus the spacing of float64 at 1, and of 1 minus that."""

# Wichura, Algorithm AS 241 (Applied Statistics 1988), coefficients of PPND16 from the highest power to the lowest.
_NEAR = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
_FAR = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)  # fmt: skip


def scale(features: Tensor, kind: str, clip: float | None, learned: dict[str, Tensor]) -> Tensor:
    """Scale features in torch as :meth:`FeatureScaler.transform` does, with NaN instead of an error.

    Args:
        features: (N, F) float64; NaN stays NaN.
        kind: As in ``FeatureScaler``.
        clip: Largest magnitude of scaled features, or None.
        learned: Arrays that the scaler has learned, float64.
    """
    numbers = features
    if kind == "ranks":
        ranks = _mean_ranks(features, learned["quantiles"], learned["references"])
        features = normal_quantile(ranks).clamp(-LIMIT, LIMIT)
    elif kind.startswith("quantile_"):
        ranks = _ranks(features, learned["quantiles"], learned["references"], kind == "quantile_normal")
        features = normal_quantile(ranks) if kind == "quantile_normal" else (ranks - 0.5) * 12**0.5
    elif "mean" in learned:
        features = features.sqrt() if kind == "hellinger" else features
        features = (features - learned["mean"]) / learned["scale"]
    features = features if clip is None else features.clamp(-clip, clip)
    if "knots" not in learned:
        return features
    columns = learned["columns"].long()
    moved = numbers.index_select(1, columns)
    added = offset_of(moved, _count(moved, learned["knots"], True), learned)
    matches = torch.arange(features.shape[1], device=columns.device)[:, None] == columns
    sources = torch.where(matches.any(1), matches.long().argmax(1), len(columns))
    return features + torch.cat([added, torch.zeros_like(numbers[:, :1])], 1).index_select(1, sources)


def normal_quantile(share: Tensor) -> Tensor:
    """Return quantiles of the standard normal distribution, between ``LOWEST`` and ``HIGHEST``."""
    from_half = share - 0.5
    near = from_half * _ratio(0.180625 - from_half.square(), _NEAR)
    # The smaller tail. Near the middle and at the ends, where it is not used, its logarithm must stay finite.
    tail = torch.minimum(share, 1 - share).clamp(ENDS / 10, 0.075)
    far = _ratio((-tail.log()).sqrt() - 1.6, _FAR)
    inside = from_half.abs() <= 0.425
    return torch.where(inside, near, torch.where(from_half < 0, -far, far)).clamp(LOWEST, HIGHEST)


def _ratio(x: Tensor, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Tensor:
    above, below = (torch.full_like(x, terms[0]) for terms in coefficients)
    for up, down in zip(coefficients[0][1:], coefficients[1][1:]):
        above, below = above * x + up, below * x + down
    return above / below


def _ranks(features: Tensor, quantiles: Tensor, references: Tensor, normal: bool) -> Tensor:
    """Return the shares of training rows below the features, (N, F); 0 and 1 at the ends, else ties get the mean."""
    ranks = _mean_ranks(features, quantiles, references)
    margin = ENDS if normal else 0.0
    at_end = features + margin > quantiles[-1] if normal else features >= quantiles[-1]
    at_start = features - margin < quantiles[0] if normal else features <= quantiles[0]
    return torch.where(features.isnan(), features, torch.where(at_start, 0.0, torch.where(at_end, 1.0, ranks)))


def _mean_ranks(features: Tensor, quantiles: Tensor, references: Tensor) -> Tensor:
    """Return the shares of training rows below the features, (N, F), from quantiles (Q, F); ties get the mean rank."""
    last = len(references) - 1
    after, before = (_count(features, quantiles, equal) for equal in (True, False))
    low, high = (after - 1).clamp(0, last), before.clamp(0, last)
    return (
        _between(features, quantiles, references, low, (low + 1).clamp_max(last))
        + _between(features, quantiles, references, high, (high - 1).clamp_min(0))
    ) / 2


def _count(features: Tensor, quantiles: Tensor, equal: bool) -> Tensor:
    """Count the quantiles below each feature, or also those equal to it, (N, F), by bisection."""
    count = torch.zeros_like(features, dtype=torch.long)
    step = 1 << (len(quantiles).bit_length() - 1)
    while step:
        further = count + step
        at = quantiles.gather(0, (further - 1).clamp_max(len(quantiles) - 1))
        fits = (further <= len(quantiles)) & ((at <= features) if equal else (at < features))
        count = torch.where(fits, further, count)
        step >>= 1
    return count


def _between(features: Tensor, quantiles: Tensor, references: Tensor, near: Tensor, other: Tensor) -> Tensor:
    """Interpolate the references between two quantiles."""
    start, end = quantiles.gather(0, near), quantiles.gather(0, other)
    gap = end - start
    share = torch.where(gap != 0, (features - start) / torch.where(gap != 0, gap, 1.0), 0.0)
    flat = references.to(features)
    return flat[near] + share.clamp(0, 1) * (flat[other] - flat[near])
