"""Label spaces: names, values and unit of the labels of a distribution, with encoding and decoding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from ldl.errors import LDLError
from ldl.moved import old_names

Decoder = Literal["expectation", "argmax", "median"]
Encoder = Literal["gaussian", "triangle"]
LabelKind = Literal["nominal", "ordinal", "grid"]
LABEL_PREFIX = "label:"
"""Prefix of the names of columns that hold labels."""
KL_FLOOR = 1e-12
"""Least predicted probability of a label in a logarithm."""
MOST_POINTS = 10**6
"""Largest number of points of a grid in a file."""

MOST_LABELS = 100_000
"""Largest number of labels: every row and every leaf has one entry per label."""

NARROWINGS = 64
"""Largest number of halvings of the reach of a distribution next to points that are no labels."""

LARGEST_VALUE = 1e15
"""Largest value: float32 ends at 3e38, and values are squared and summed."""


@dataclass(frozen=True)
class LabelSpace:
    """The C labels that a distribution is spread over.

    Make one with :meth:`nominal`, :meth:`ordinal` or :meth:`grid`.

    Attributes:
        kind: ``nominal`` (names only), ``ordinal`` (a value on a line) or ``grid`` (a point in the plane).
        names: One name per label.
        axes: Values along each axis: no axis for nominal labels, one for ordinal labels, two for a grid, whose labels
            run row by row (the second axis fastest).
        unit: Unit of the values, for tables and charts.
        axis_names: Names of the axes of a grid in tables, such as pitch and yaw; empty for numbers.
        cells: Points of the grid that are labels, as rising numbers in row by row order; None for all.

    Examples:
        >>> import torch
        >>> from ldl import LabelSpace
        >>> ages = LabelSpace.ordinal(range(0, 101), "years")
        >>> distribution = ages.encode(torch.tensor([30.0]), sigma=2.0)
        >>> distribution.shape, ages.decode(distribution)
        (torch.Size([1, 101]), tensor([30.]))
        >>> LabelSpace.nominal(["happy", "sad"]).names
        ('happy', 'sad')
    """

    kind: LabelKind
    names: tuple[str, ...]
    axes: tuple[tuple[float, ...], ...] = ()
    unit: str = ""
    axis_names: tuple[str, ...] = ()
    cells: tuple[int, ...] | None = None

    @classmethod
    def nominal(cls, names: Sequence[str]) -> LabelSpace:
        """Return labels without an order, such as emotions. Raises LDLError for no, too many or repeated names."""
        check_count(len(names))
        if not (texts := tuple(str(name) for name in names)) or len(set(texts)) != len(texts):
            raise LDLError(f"label names must be unique and at least one, got {list(names)!r}")
        return cls("nominal", texts)

    @classmethod
    def ordinal(cls, values: Sequence[float], unit: str = "") -> LabelSpace:
        """Return labels on a line, such as ages. Raises LDLError unless ``values`` rise strictly."""
        axis = _rising(values)
        return cls("ordinal", _named([(value,) for value in axis]), (axis,), unit)

    @classmethod
    def grid(
        cls,
        first: Sequence[float],
        second: Sequence[float],
        unit: str = "",
        axis_names: Sequence[str] = (),
        only: Sequence[tuple[float, float]] | None = None,
    ) -> LabelSpace:
        """Return labels on a plane, such as (pitch, yaw): all or some pairs of two rising axes.

        Args:
            first: Values of the first axis.
            second: Values of the second axis.
            unit: Unit of both.
            axis_names: Two different names, or none.
            only: The pairs that are labels, in any order; None takes all.

        Raises:
            LDLError: An axis does not rise strictly, a pair is not on the axes or repeated, there are no pairs, or
                there are not two names.
        """
        axes = (_rising(first), _rising(second))
        check_count(len(axes[0]) * len(axes[1]))
        pairs = [(a, b) for a in axes[0] for b in axes[1]]
        if axis_names and len(set(axis_names)) != 2:
            raise LDLError(f"a grid has two axes, so axis_names must be two different names, got {list(axis_names)!r}")
        cells = None
        if only is not None:
            wanted = {(float(a), float(b)) for a, b in only}
            if unknown := sorted(wanted - set(pairs)):
                raise LDLError(f"the pair {unknown[0]} is not on the axes of the grid; remove it from only")
            if not wanted or len(wanted) != len(only):
                raise LDLError(f"only must name pairs of the grid once each and at least one, got {len(only)}")
            cells = tuple(number for number, pair in enumerate(pairs) if pair in wanted)
            pairs = [pairs[number] for number in cells]
        return cls("grid", _named(pairs), axes, unit, tuple(axis_names), cells)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def has_values(self) -> bool:
        """Whether labels have values, which can be encoded and decoded."""
        return bool(self.axes)

    @property
    def ndim(self) -> int:
        """Number of axes: 0 nominal, 1 ordinal, 2 grid."""
        return len(self.axes)

    @property
    def points(self) -> Tensor:
        """Values of the labels, (C, ndim), at least float32."""
        self._need_values("points")
        dtype = torch.promote_types(torch.get_default_dtype(), torch.float32)  # 16 bits would round them
        points = torch.cartesian_prod(*(torch.tensor(axis, dtype=dtype) for axis in self.axes)).reshape(-1, self.ndim)
        return points if self.cells is None else points[list(self.cells)]

    def encode(self, value: Tensor, sigma: Tensor | float, encoder: Encoder = "gaussian") -> Tensor:
        """Encode values as distributions that every decoder decodes to the same values.

        The distribution of a label is a Gaussian or a triangle. Near the ends of the labels it is cut at the same
        distance on both sides, and the side with the larger first moment is scaled down, so that the label stays mean,
        median and mode. The first and the last label get all mass. A value between two labels gets the mixture of their
        distributions with the value as its mean; ``median`` and ``argmax`` decode it to one of the two. On a grid this
        holds along each axis.

        Args:
            value: (...,) for ordinal labels, (..., 2) for a grid, inside the range of the labels.
            sigma: Standard deviation of the Gaussian, or half the base of the triangle, in the labels'
                unit: one positive number, or one per sample, (...,).
            encoder: Shape of the distribution along an axis.

        Returns:
            (..., C), on the simplex. If labels are evenly spaced and their ends are far, this is the Gaussian or
            triangle itself. If it reaches no other label, all mass is on one label.

        Raises:
            LDLError: The labels are nominal, a value is NaN, out of range or between points that are no labels, or
                sigma is not positive.
        """
        self._need_values("encode")
        value = torch.as_tensor(value)
        if not value.is_floating_point():
            value = value.float()
        sigma = torch.as_tensor(sigma, dtype=value.dtype, device=value.device)
        if not bool((sigma > 0).all()):
            raise LDLError(f"sigma must be positive, got {sigma[~(sigma > 0)].flatten()[0].item():g}")
        if encoder not in get_args(Encoder):
            raise LDLError(f"unknown encoder {encoder!r}; one of {get_args(Encoder)}")
        coordinates = value.unsqueeze(-1) if self.ndim == 1 else value
        self._check_range(coordinates)
        rows = torch.cat([coordinates, sigma.expand(coordinates.shape[:-1]).unsqueeze(-1)], -1)
        # Many rows share few values, such as whole years.
        distinct, places = rows.reshape(-1, self.ndim + 1).unique(dim=0, return_inverse=True)
        encoded = self._spread(distinct[:, :-1], distinct[:, -1], encoder)
        return encoded[places].reshape(*coordinates.shape[:-1], len(self))

    def _spread(self, value: Tensor, sigma: Tensor, encoder: Encoder) -> Tensor:
        """Distributions (N, C) of values (N, ndim) with widths (N,)."""
        reach = torch.ones_like(sigma)
        mass = self._table(value, sigma, reach, encoder)
        if self.cells is None:
            return mass
        cells = torch.tensor(self.cells, device=mass.device)
        for _ in range(NARROWINGS):
            beside = mass.index_fill(-1, cells, 0).sum(-1) > 1e-9
            if not bool(beside.any()):
                return mass[:, cells] / mass[:, cells].sum(-1, keepdim=True)
            reach = torch.where(beside, reach / 2, reach)
            mass = self._table(value, sigma, reach, encoder)
        bad = ", ".join(f"{number:g}" for number in value[beside][0].tolist())
        raise LDLError(f"value ({bad}) lies between points of which some are no labels; move it to a label")

    def _table(self, value: Tensor, sigma: Tensor, reach: Tensor, encoder: Encoder) -> Tensor:
        """Distributions (N, points of all axes) of values (N, ndim); ``reach`` (N,) is as in ``spread``."""
        along = [
            spread(torch.tensor(axis, dtype=value.dtype, device=value.device), value[:, number], sigma, reach, encoder)
            for number, axis in enumerate(self.axes)
        ]
        return along[0] if self.ndim == 1 else (along[0].unsqueeze(-1) * along[1].unsqueeze(-2)).flatten(1)

    def kernel(self, width: float) -> Tensor:
        """Return Gaussian weights (C, C) of all labels around each label, for smoothing; rows sum to 1."""
        self._need_values("kernel")
        squared = (self.points.unsqueeze(1) - self.points).square().sum(-1)
        return torch.softmax(-squared / (2 * width**2), dim=-1)

    def decode(self, distribution: Tensor, decoder: Decoder = "expectation") -> Tensor:
        """Decode distributions to values.

        Args:
            distribution: (..., C), on the simplex.
            decoder: ``expectation``; ``argmax`` (value of the likeliest label); ``median`` (the lowest value
                with at least half the mass at or below it: the Bayes decision for the absolute error;
                on a grid the median of each axis' marginal).

        Returns:
            (...,) for ordinal labels, (..., 2) for a grid, in the labels' unit.
        """
        self._need_values("decode")
        points = self.points.to(distribution)
        if decoder == "expectation":
            value = (distribution.unsqueeze(-1) * points).sum(-2)  # a matrix product would be rounded by autocast
        elif decoder == "argmax":
            value = points[distribution.argmax(-1)]
        elif decoder == "median":
            return self.quantile(distribution, 0.5)
        else:
            raise LDLError(f"unknown decoder {decoder!r}; one of {get_args(Decoder)}")
        return value.squeeze(-1) if self.ndim == 1 else value

    def quantile(self, distribution: Tensor, probability: float) -> Tensor:
        """Return the lowest values with at least ``probability``, in 0..1, of the mass at or below them.

        Args:
            distribution: (..., C), on the simplex.
            probability: Share of the mass; 0.5 is the median.

        Returns:
            (...,) for ordinal labels, (..., 2) for the marginals of a grid, in the labels' unit.
        """
        self._need_values("quantile")
        value = torch.stack([self._marginal_quantile(distribution, axis, probability) for axis in range(self.ndim)], -1)
        return value.squeeze(-1) if self.ndim == 1 else value

    def deviation(self, distribution: Tensor) -> Tensor:
        """Return standard deviations of distributions (..., C): (...,), or along each axis (..., 2)."""
        self._need_values("deviation")
        points = self.points.to(distribution)
        from_mean = points - (distribution.unsqueeze(-1) * points).sum(-2, keepdim=True)
        value = (distribution.unsqueeze(-1) * from_mean.square()).sum(-2).sqrt()
        return value.squeeze(-1) if self.ndim == 1 else value

    def _marginal_quantile(self, distribution: Tensor, axis: int, probability: float) -> Tensor:
        shape = [len(values) for values in self.axes]
        if self.cells is not None:
            whole = distribution.new_zeros(*distribution.shape[:-1], math.prod(shape))
            whole[..., list(self.cells)] = distribution
            distribution = whole
        table = distribution.reshape(*distribution.shape[:-1], *shape)
        others = [dim - self.ndim for dim in range(self.ndim) if dim != axis]
        marginal = table.sum(others) if others else table
        # Rounding may leave the sum of an exact half slightly below it.
        enough = probability * marginal.sum(-1, keepdim=True) * (1 - 1e-6)
        index = (marginal.cumsum(-1) < enough).sum(-1).clamp_max(shape[axis] - 1)
        return torch.tensor(self.axes[axis], dtype=distribution.dtype, device=distribution.device)[index]

    def _check_range(self, coordinates: Tensor) -> None:
        for number, axis in enumerate(self.axes):
            along = coordinates[..., number]
            outside = ~((along >= axis[0]) & (along <= axis[-1]))
            if bool(outside.any()):
                bad = along[outside].flatten()[0].item()
                raise LDLError(
                    f"value {bad:g} is outside the labels {axis[0]:g} to {axis[-1]:g} {self.unit}".rstrip()
                    + "; widen the label space or drop the sample"
                )

    def _need_values(self, action: str) -> None:
        if not self.has_values:
            raise LDLError(f"{action} needs labels with values, but these are nominal: {', '.join(self.names[:5])}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings for checkpoints; :meth:`from_dict` is the inverse."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> LabelSpace:
        """Rebuild a label space from :meth:`to_dict`. Raises LDLError for any other content."""
        try:
            names, axes, cells = state["names"], state["axes"], state.get("cells")
            if state["kind"] == "nominal":
                made = cls.nominal(names)
            elif state["kind"] == "ordinal":
                (axis,) = axes
                made = cls.ordinal(axis, state["unit"])
                if len(set(names)) == len(names) == len(made):
                    made = replace(made, names=tuple(names))
            else:
                made = cls._grid_of(axes, cells, state["unit"], state.get("axis_names", ()))
            if len(set(names)) < len(names) == len(made):
                state = {**state, "names": made.names}  # older versions named all values with six digits
            texts = isinstance(made.unit, str) and all(isinstance(name, str) for name in made.names + made.axis_names)
            if texts and made == cls(**{name: _tuples(value) for name, value in state.items()}):
                return made
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise LDLError(f"these are no labels: {' '.join(str(error).split())[:160]}") from None
        raise LDLError("these are no labels: their names do not fit their axes, or are no texts")

    @classmethod
    def _grid_of(cls, axes: list[list[float]], cells: list[int] | None, unit: str, names: Sequence[str]) -> LabelSpace:
        first, second = axes
        size = len(first) * len(second)
        if size > MOST_POINTS or any(not 0 <= cell < size for cell in cells or ()):
            raise LDLError(f"a grid of {size} points is too large, or has cells outside of it")
        only = None if cells is None else [(first[cell // len(second)], second[cell % len(second)]) for cell in cells]
        return cls.grid(first, second, unit, names, only)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def spread(axis: Tensor, value: Tensor, sigma: Tensor, reach: Tensor, encoder: Encoder) -> Tensor:
    """Spread values over the labels of one axis; see :meth:`LabelSpace.encode`.

    Args:
        axis: (A,) rising values of the labels.
        value: (N,) in their range.
        sigma: (N,) widths.
        reach: (N,) distance at which the distributions are cut, as a share, up to 1, of the distance to the nearer end.
        encoder: Shape.

    Returns:
        (N, A), on the simplex, with the values as means.
    """
    if len(axis) == 1:
        return torch.ones_like(value)[:, None]
    below = (torch.searchsorted(axis, value.contiguous(), right=True) - 1).clamp(0, len(axis) - 2)
    share = ((value - axis[below]) / (axis[below + 1] - axis[below])).unsqueeze(-1)
    low, high = (_around(axis, label, sigma, reach, encoder) for label in (below, below + 1))
    return (1 - share) * low + share * high


def _around(axis: Tensor, label: Tensor, sigma: Tensor, reach: Tensor, encoder: Encoder) -> Tensor:
    """Return distributions (N, A) with the labels ``label`` (N,) as mean, median and mode."""
    away, center = axis - axis[label].unsqueeze(-1), axis[label]
    scaled = away / sigma.unsqueeze(-1)
    mass = torch.exp(-scaled.square() / 2) if encoder == "gaussian" else (1 - scaled.abs()).clamp_min(0)
    room = reach * torch.minimum(center - axis[0], axis[-1] - center)
    mass = torch.where(away.abs() <= room.unsqueeze(-1) * (1 + 1e-3), mass, 0).clamp_max(1 - 1e-6)  # or labels tie
    sides = torch.stack([mass * (away < 0), mass * (away > 0)])
    moments = (sides * away.abs()).sum(-1, keepdim=True)
    sides = sides * (moments.amin(0) / moments.clamp_min(torch.finfo(axis.dtype).tiny))
    masses = sides.sum(-1, keepdim=True)
    # With uneven labels one side may have more mass at the same moment; the label's own mass keeps the median.
    central = ((masses[0] - masses[1]).abs() + 0.5).clamp_min(1)
    return (sides.sum(0) + central * (away == 0)) / (masses.sum(0) + central)


def check_count(count: float, fix: str = "give fewer") -> None:
    """Raise LDLError for more than ``MOST_LABELS`` labels; ``fix`` is the advice in the message."""
    if not count <= MOST_LABELS:
        raise LDLError(f"there would be {count:,.6g} labels, more than {MOST_LABELS:,}; {fix}")


def _named(points: Sequence[tuple[float, ...]]) -> tuple[str, ...]:
    """Return names with six digits per number, or more if points share names; 17 digits always suffice."""
    texts = (tuple(",".join(f"{value:.{digits}g}" for value in point) for point in points) for digits in range(6, 18))
    return next(names for names in texts if len(set(names)) == len(names))


def _rising(values: Sequence[float]) -> tuple[float, ...]:
    check_count(len(values))
    axis = tuple(float(value) for value in values)
    if not axis or not all(map(math.isfinite, axis)) or any(not low < high for low, high in zip(axis, axis[1:])):
        raise LDLError(f"label values must be finite, rise strictly and be at least one, got {list(values)[:8]!r}")
    if max(map(abs, axis)) > LARGEST_VALUE or bool((np.diff(np.asarray(axis, np.float32)) <= 0).any()):
        raise LDLError(
            f"label values must be at most {LARGEST_VALUE:g} and differ in float32, which has seven digits, got "
            f"{list(values)[:8]!r}; use a smaller range, or another unit"
        )
    return axis


__getattr__ = old_names(__name__)
