"""Label spaces: encoding, decoding, storage, and what they refuse."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_lightning.plugins.precision import HalfPrecision
from scipy.stats import norm
from torch import Tensor

from ldl.errors import LDLError
from ldl.labels import MOST_LABELS, Decoder, Encoder, LabelSpace

AGES = LabelSpace.ordinal(range(0, 21), "years")
UNEVEN = LabelSpace.ordinal([-3.0, 0.0, 0.5, 4.0])
POSE = LabelSpace.grid([-30, 0, 30], [-20, -10, 0, 10], "degrees")
SOME = LabelSpace.grid(
    [-90, 0, 90], [-20, 0, 20], "degrees", ("pitch", "yaw"), [(90, 0), *((0, y) for y in (-20, 0, 20)), (-90, 0)]
)
HEADS = LabelSpace.grid(
    [-90, -60, -30, -15, 0, 15, 30, 60, 90],
    range(-90, 91, 15),
    only=[(-90, 0), (90, 0), *((p, y) for p in (-60, -30, -15, 0, 15, 30, 60) for y in range(-90, 91, 15))],
)
"""Uneven, and without some of its points, as those of Pointing'04."""
DAYS = LabelSpace.ordinal(range(2459000, 2459050), "days")
MOODS = LabelSpace.nominal(["happy", "sad", "surprised"])


def test_points_run_row_by_row() -> None:
    assert AGES.points.shape == (21, 1)
    assert POSE.points.shape == (12, 2)
    assert POSE.points[:5].tolist() == [[-30, -20], [-30, -10], [-30, 0], [-30, 10], [0, -20]]
    assert POSE.names[4] == "0,-20"
    assert (len(POSE), POSE.ndim, AGES.ndim, MOODS.ndim) == (12, 2, 1, 0)
    assert POSE.has_values and AGES.has_values and not MOODS.has_values


@pytest.mark.parametrize("sigma", [0.3, 2.0])
def test_far_from_the_ends_a_label_gets_the_density_of_a_gaussian(sigma: float) -> None:
    density = norm.pdf(np.arange(21.0), 10, sigma)
    encoded = AGES.encode(torch.tensor(10.0, dtype=torch.float64), sigma)
    assert encoded.shape == (21,)
    np.testing.assert_allclose(encoded.numpy(), density / density.sum(), rtol=1e-9, atol=1e-300)


def reference(axis: Sequence[float], value: float, sigma: float, encoder: Encoder) -> np.ndarray:
    """The distribution around a value, label by label in float64."""

    def around(center: float) -> np.ndarray:
        shape = norm.pdf if encoder == "gaussian" else lambda distance: max(0.0, 1 - abs(distance))
        room = min(center - axis[0], axis[-1] - center)
        mass = np.array([shape((x - center) / sigma) / shape(0) * (abs(x - center) <= room + 1e-3) for x in axis])
        below, above = ((mass * away)[away > 0].sum() for away in (center - np.array(axis), np.array(axis) - center))
        for side, moment in ((-1, below), (1, above)):
            mass[np.sign(np.array(axis) - center) == side] *= min(below, above) / moment if moment else 0
        own = axis.index(center)
        mass[own] = max(1.0, abs(mass[:own].sum() - mass[own + 1 :].sum()) + 0.5)
        return mass / mass.sum()

    low = max(x for x in axis if x <= value)
    if low == value:
        return around(value)
    high = min(x for x in axis if x > value)
    return ((high - value) * around(low) + (value - low) * around(high)) / (high - low)


@pytest.mark.parametrize("encoder", get_args(Encoder))
@pytest.mark.parametrize("labels", [AGES, UNEVEN], ids=["ages", "uneven"])
@pytest.mark.parametrize("sigma", [0.3, 2.0, 50.0])
def test_encoding_against_a_loop(labels: LabelSpace, sigma: float, encoder: Encoder) -> None:
    axis = labels.axes[0]
    values = [*axis, 0.25, 0.49, 3.7]
    encoded = labels.encode(torch.tensor(values, dtype=torch.float64), sigma, encoder)
    expected = [reference(axis, value, sigma, encoder) for value in values]
    np.testing.assert_allclose(encoded.numpy(), expected, rtol=1e-5, atol=1e-12)


def test_gaussian_with_one_sigma_a_sample() -> None:
    values, sigmas = torch.tensor([[3.0, 10.0], [20.0, 0.0]]), torch.tensor([[0.5, 1.0], [2.0, 4.0]])
    encoded = AGES.encode(values, sigmas)
    assert encoded.shape == (2, 2, 21)
    for i in range(2):
        for j in range(2):
            torch.testing.assert_close(encoded[i, j], AGES.encode(values[i, j], float(sigmas[i, j])))
    torch.testing.assert_close(encoded.sum(-1), torch.ones(2, 2))


@pytest.mark.parametrize("encoder", get_args(Encoder))
def test_a_grid_is_encoded_along_each_axis(encoder: Encoder) -> None:
    value, sigma = (4.0, -12.0), 15.0
    along = [reference(axis, part, sigma, encoder) for axis, part in zip(POSE.axes, value)]
    encoded = POSE.encode(torch.tensor([value], dtype=torch.float64), sigma, encoder)
    np.testing.assert_allclose(encoded[0].numpy(), np.outer(*along).ravel(), rtol=1e-5, atol=1e-12)


def test_whole_numbers_encode_like_floats() -> None:
    whole = torch.tensor([3, 20], dtype=torch.uint8)
    assert torch.equal(AGES.encode(whole, 2), AGES.encode(whole.float(), 2.0))


def test_the_ends_of_the_range_are_inside() -> None:
    labels = LabelSpace.ordinal([0.1, 0.2, 0.3])
    for dtype in (torch.float32, torch.float64):
        ends = torch.tensor([0.1, 0.3], dtype=dtype)
        assert labels.encode(ends, 0.01).argmax(-1).tolist() == [0, 2]


def brute_force(row: list[float], axis: tuple[float, ...], decoder: Decoder) -> float:
    if decoder == "expectation":
        return sum(p * value for p, value in zip(row, axis))
    if decoder == "argmax":
        return axis[row.index(max(row))]
    return next(value for k, value in enumerate(axis) if math.fsum(row[: k + 1]) >= 0.5 - 1e-9)


@pytest.mark.parametrize("decoder", ["expectation", "argmax", "median"])
def test_decoding_against_brute_force(decoder: Decoder) -> None:
    rows = torch.softmax(3 * torch.randn(40, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64), -1)
    expected = [brute_force(row, UNEVEN.axes[0], decoder) for row in rows.tolist()]
    assert UNEVEN.decode(rows.reshape(4, 10, 4), decoder).shape == (4, 10)
    np.testing.assert_allclose(UNEVEN.decode(rows, decoder).numpy(), expected, rtol=1e-6)
    assert UNEVEN.decode(rows[0], decoder).shape == ()


@pytest.mark.parametrize(
    ("row", "median"),
    [
        ([0.5, 0.0, 0.5, 0.0], -3.0),  # a tie goes to the lower value
        ([0.25, 0.25, 0.25, 0.25], 0.0),
        ([0.1, 0.2, 0.2, 0.5], 0.5),  # .1 + .2 + .2 rounds to less than .5 in some orders
        ([0.0, 0.0, 0.0, 1.0], 4.0),
        ([1.0, 0.0, 0.0, 0.0], -3.0),
        ([0.49, 0.0, 0.0, 0.51], 4.0),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_median_of_ties_and_ends(row: list[float], median: float, dtype: torch.dtype) -> None:
    assert UNEVEN.decode(torch.tensor(row, dtype=dtype), "median").item() == median


def test_median_survives_rounding_over_many_labels() -> None:
    wide = LabelSpace.ordinal(range(1000))
    assert wide.decode(torch.full((1000,), 1e-3), "median").item() == 499
    # A sum that rounds to a little under 1 still has a median.
    assert wide.decode(torch.eye(1000)[999] * (1 - 1e-5), "median").item() == 999


def test_grid_decoding() -> None:
    table = torch.tensor([[0.1, 0.0, 0.0, 0.2], [0.3, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.4]], dtype=torch.float64)
    row = table.flatten()
    assert POSE.decode(row, "argmax").tolist() == [30, 10]
    # Marginals: pitch .3 .3 .4; yaw .4 0 0 .6.
    assert POSE.decode(row, "median").tolist() == [0, 10]
    np.testing.assert_allclose(POSE.decode(row).numpy(), [0.1 * 30, -20 * 0.4 + 10 * 0.6], atol=1e-9)
    assert POSE.decode(row.expand(2, 5, 12), "median").shape == (2, 5, 2)


steps = st.lists(st.sampled_from([0.1, 0.5, 1.0, 3.0, 40.0]), min_size=0, max_size=12)
axes = st.builds(
    lambda first, steps: [first + sum(steps[:k]) for k in range(len(steps) + 1)], st.integers(-50, 50), steps
)
sigmas = st.floats(1e-3, 1e3)


@given(axes, st.lists(st.floats(0, 1), max_size=5), sigmas, st.sampled_from(get_args(Encoder)))
@settings(deadline=None, max_examples=150, derandomize=True)
def test_decoding_undoes_encoding(axis: list[float], shares: list[float], sigma: float, encoder: Encoder) -> None:
    labels, span = LabelSpace.ordinal(axis), axis[-1] - axis[0]
    between = [min(axis[0] + share * span, axis[-1]) for share in shares]
    values = torch.tensor([*axis, *between], dtype=torch.float64)
    encoded = labels.encode(values, sigma, encoder)
    assert bool((encoded >= 0).all())
    torch.testing.assert_close(encoded.sum(-1), torch.ones(len(values)).double())
    points = torch.tensor(axis, dtype=torch.float64)
    torch.testing.assert_close(encoded @ points, values, atol=1e-9 * (1 + span), rtol=1e-12)
    torch.testing.assert_close(labels.decode(encoded), values, atol=1e-5 * (1 + span), rtol=1e-6)
    for decoder in ("argmax", "median"):
        decoded = labels.decode(encoded, decoder)
        torch.testing.assert_close(decoded[: len(axis)], values[: len(axis)], atol=1e-6 * (1 + span), rtol=1e-6)
        apart = (decoded[:, None] - points).abs().argmin(1) - (points <= values[:, None]).sum(1) + 1
        assert apart.min() >= 0 and apart.max() <= 1, "one of the two labels around the value"


@pytest.mark.parametrize("decoder", get_args(Decoder))
@pytest.mark.parametrize("encoder", get_args(Encoder))
@pytest.mark.parametrize("sigma", [0.1, 8.0, 15.0, 40.0, 1000.0])
def test_decoding_undoes_encoding_on_grids(sigma: float, encoder: Encoder, decoder: Decoder) -> None:
    for labels in (POSE, SOME, HEADS):
        encoded = labels.encode(labels.points, sigma, encoder)
        torch.testing.assert_close(encoded.sum(-1), torch.ones(len(labels)))
        torch.testing.assert_close(labels.decode(encoded, decoder), labels.points, atol=1e-4, rtol=0)
    between = torch.tensor([[10.0, 5.0], [-29.0, -14.0]])
    torch.testing.assert_close(POSE.decode(POSE.encode(between, sigma, encoder)), between, atol=1e-4, rtol=1e-5)


def test_around_missing_points_a_grid_is_encoded_more_narrowly() -> None:
    beside, alone, far = HEADS.encode(torch.tensor([[60.0, 15.0], [90.0, 0.0], [0.0, 0.0]]), 15.0)
    assert alone.max() == 1
    assert 1 < int((beside > 1e-4).sum()) < int((far > 1e-4).sum())
    with pytest.raises(LDLError, match=r"value \(80, 15\) lies between points of which some are no labels"):
        HEADS.encode(torch.tensor([[0.0, 0.0], [80.0, 15.0]]), 15.0)


def test_kernel_is_a_truncated_renormalised_gaussian() -> None:
    for labels in (AGES, UNEVEN):
        axis = np.array(labels.axes[0])
        density = norm.pdf(axis[:, None], axis, 2.0)
        np.testing.assert_allclose(labels.kernel(2.0).numpy(), density / density.sum(0)[:, None], rtol=1e-5)


def test_networks_of_16_bits_do_not_round_values() -> None:
    labels = LabelSpace.ordinal([1997, 1998, 1999])
    with HalfPrecision("bf16-true").forward_context():
        assert labels.points.flatten().tolist() == [1997, 1998, 1999]
        assert [float(labels.decode(torch.eye(3).float(), "median")[row]) for row in range(3)] == [1997, 1998, 1999]


def test_some_points_of_a_grid() -> None:
    assert SOME.names == ("-90,0", "0,-20", "0,0", "0,20", "90,0")
    assert SOME.points.tolist() == [[-90, 0], [0, -20], [0, 0], [0, 20], [90, 0]]
    assert (len(SOME), SOME.ndim, SOME.axis_names) == (5, 2, ("pitch", "yaw"))
    row = torch.tensor([0.2, 0.28, 0.1, 0.1, 0.32])
    assert SOME.decode(row, "argmax").tolist() == [90, 0]
    # Marginals: pitch .2 .48 .32; yaw .28 .62 .1.
    assert SOME.decode(row.expand(2, 5), "median").tolist() == [[0, 0], [0, 0]]
    np.testing.assert_allclose(SOME.decode(row).numpy(), [0.12 * 90, -0.18 * 20], atol=1e-5)


def test_a_checkpoint_from_before_cells_is_read() -> None:
    state = POSE.to_dict()
    del state["cells"], state["axis_names"]
    assert LabelSpace.from_dict(state) == POSE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"only": [(0, 5)]}, r"the pair \(0.0, 5.0\) is not on the axes"),
        ({"only": []}, "once each and at least one, got 0"),
        ({"only": [(0, 0), (0.0, 0.0)]}, "once each and at least one, got 2"),
        ({"axis_names": ["pitch"]}, "two different names"),
        ({"axis_names": ["yaw", "yaw"]}, "two different names"),
    ],
)
def test_bad_grids_are_refused(options: dict, message: str) -> None:
    with pytest.raises(LDLError, match=message):
        LabelSpace.grid([0, 1], [0, 1], **options)


def test_names_have_as_many_digits_as_tell_them_apart() -> None:
    assert DAYS.names == tuple(map(str, range(2459000, 2459050)))
    assert LabelSpace.ordinal([0, 0.1234567, 2459000]).names == ("0", "0.123457", "2.459e+06")
    assert LabelSpace.grid([1000000, 1000001], [0, 0.12345678]).names[::3] == ("1000000,0", "1000001,0.1234568")
    # The nearest in float32 are 16777216 and 16777218.
    assert len(set(LabelSpace.ordinal([16777217 - 2**-20, 16777217 + 2**-20]).names)) == 2


def test_names_that_repeated_are_made_anew() -> None:
    state = DAYS.to_dict() | {"names": [f"{value:g}" for value in DAYS.axes[0]]}
    assert LabelSpace.from_dict(state) == DAYS


@pytest.mark.parametrize(
    "labels", [AGES, UNEVEN, DAYS, POSE, SOME, MOODS], ids=["ages", "uneven", "days", "pose", "some", "moods"]
)
def test_dict_round_trip_through_json(labels: LabelSpace) -> None:
    again = LabelSpace.from_dict(json.loads(json.dumps(labels.to_dict())))
    assert again == labels
    assert hash(again) == hash(labels)


def test_ordinal_labels_may_have_names() -> None:
    labels = LabelSpace("ordinal", ("low", "high"), ((0.0, 1.0),))
    assert LabelSpace.from_dict(json.loads(json.dumps(labels.to_dict()))) == labels
    for names in (["low"], ["low", "low", "high"], ["low", 1]):
        with pytest.raises(LDLError, match="these are no labels"):
            LabelSpace.from_dict(labels.to_dict() | {"names": names})


@pytest.mark.parametrize("values", [[], [1, 1], [2, 1], [0, float("nan")], [float("nan")], [0, float("inf")]])
def test_values_must_be_finite_and_rise(values: list[float]) -> None:
    with pytest.raises(LDLError, match="rise strictly"):
        LabelSpace.ordinal(values)
    with pytest.raises(LDLError, match="rise strictly"):
        LabelSpace.grid([0, 1], values)


@pytest.mark.parametrize("names", [[], ["a", "a"]])
def test_names_must_be_unique(names: list[str]) -> None:
    with pytest.raises(LDLError, match="unique"):
        LabelSpace.nominal(names)


@pytest.mark.parametrize("names", [range(3), np.arange(3), np.array(["0", "1", "2"])], ids=["range", "array", "texts"])
def test_names_are_texts(names: Any) -> None:
    labels = LabelSpace.nominal(names)
    assert labels.names == ("0", "1", "2") and all(type(name) is str for name in labels.names)
    assert LabelSpace.from_dict(labels.to_dict()) == labels
    with pytest.raises(LDLError, match="unique"):
        LabelSpace.nominal([1, "1"])  # type: ignore[list-item]


@pytest.mark.parametrize("value", [-0.1, 20.5, float("nan"), float("inf")])
def test_values_outside_the_range_are_refused(value: float) -> None:
    with pytest.raises(LDLError, match="outside the labels 0 to 20 years; widen"):
        AGES.encode(torch.tensor([3.0, value]), 2.0)
    with pytest.raises(LDLError, match="outside the labels -20 to 10 degrees"):
        POSE.encode(torch.tensor([[0.0, 30.0]]), 2.0)


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), torch.tensor([1.0, 0.0])])
def test_sigma_must_be_positive(sigma: float | Tensor) -> None:
    with pytest.raises(LDLError, match="sigma must be positive, got"):
        AGES.encode(torch.tensor([3.0, 4.0]), sigma)


def test_unknown_encoders_and_decoders_are_refused() -> None:
    with pytest.raises(LDLError, match="unknown encoder 'box'.*gaussian"):
        AGES.encode(torch.tensor(3.0), 1.0, "box")  # type: ignore[arg-type]
    with pytest.raises(LDLError, match="unknown decoder 'mode'.*median"):
        AGES.decode(torch.full((21,), 1 / 21), "mode")  # type: ignore[arg-type]


def test_nominal_labels_have_no_values() -> None:
    with pytest.raises(LDLError, match="points needs labels with values.*nominal: happy, sad, surprised"):
        MOODS.points  # noqa: B018
    with pytest.raises(LDLError, match="encode needs"):
        MOODS.encode(torch.tensor(0.0), 1.0)
    with pytest.raises(LDLError, match="decode needs"):
        MOODS.decode(torch.ones(3) / 3)


def test_numbers_of_labels_are_bounded() -> None:
    for make in (
        lambda: LabelSpace.nominal([str(number) for number in range(MOST_LABELS + 1)]),
        lambda: LabelSpace.ordinal(range(10**12)),  # nobody waits until these are written out
        lambda: LabelSpace.grid(range(1000), range(101)),
    ):
        with pytest.raises(LDLError, match=r"there would be .* labels, more than 100,000"):
            make()
    assert len(LabelSpace.grid(range(1000), range(100))) == MOST_LABELS


@pytest.mark.parametrize("values", [[0, 1, 1e16], [1e300, 2e300], [1e9, 1e9 + 1], [-1e20]])
def test_values_that_float32_cannot_tell_apart_are_refused(values: list[float]) -> None:
    with pytest.raises(LDLError, match="label values must be at most 1e\\+15 and differ in float32"):
        LabelSpace.ordinal(values)
