"""``check_head`` checks a head against the contract of :mod:`ldl.head`, for authors of heads."""

from __future__ import annotations

import copy
import inspect
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import AlternatingHead, FittedHead, Head, ImageHead, compute_loss, memory_rows
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.metrics.functional import kl
from ldl.spec import from_spec, to_spec
from ldl.validation.contract import check_built, check_losses, lost_in_checkpoint

FEATURES = 6
ROWS = 48
INSTANCES = 3
"""Instances of the largest bag, for heads that take bags."""
LABEL_SPACES = (
    LabelSpace.nominal(["happy", "sad", "angry"]),
    LabelSpace.nominal(["no", "yes"]),
    LabelSpace.ordinal([10, 20, 30, 40, 50, 60], "years"),
    LabelSpace.grid([-30, 0, 30], [-60, 0, 60], "degrees"),
)


def check_head(make: Callable[[], Head]) -> None:
    """Check that a head keeps the contract, in a few seconds.

    The check builds the head for nominal, ordinal and 2-D labels, trains it briefly on a small random problem, calls,
    saves and loads it. A head may raise ``LDLError`` for some kinds of labels, but not for all. Heads that take bags
    get bags, an ``ImageHead`` gets images of several sizes.

    Args:
        make: Class of the head, or a function that makes a head with other arguments.

    Raises:
        AssertionError: The head breaks the contract; the message names the broken rule.

    Examples:
        >>> from ldl.heads import Softmax
        >>> check_head(Softmax)
    """
    _check_arguments(make())
    accepted = []
    for labels in LABEL_SPACES:
        torch.manual_seed(0)
        head = make()
        try:
            head.build(3 if isinstance(head, ImageHead) else FEATURES, labels)
        except LDLError:
            continue
        accepted.append(labels.kind)
        if isinstance(head, ImageHead):
            _check_images(head, make, labels)
            continue
        rows = _problem(labels, head.takes_bags)
        _check_built(head, labels)
        _check_learning(head, rows)
        _check_output(head, rows.features, labels)
        _check_better_than_constant(head, rows.features, rows.target)
        _check_saving(head, rows.features, make)
    _must(
        bool(accepted),
        make(),
        "raises LDLError for every label space; build must accept nominal, ordinal or grid labels",
    )


def _check_arguments(head: Head) -> None:
    cls = type(head)
    documented = "\n".join(base.__doc__ or "" for base in cls.__mro__)
    for name, parameter in inspect.signature(cls).parameters.items():
        where = f"__init__ argument {name!r}"
        _must(parameter.kind is parameter.POSITIONAL_OR_KEYWORD, head, f"{where} must be an ordinary argument")
        _must(parameter.annotation is not parameter.empty, head, f"{where} needs a type annotation")
        _must(parameter.default is not parameter.empty, head, f"{where} needs a default")
        _must(f"{name}:" in documented, head, f"{where} must be described under 'Args:' in the class docstring")
        _must(hasattr(head, name), head, f"{where} must be stored as self.{name}")
    _must(not head.is_built, head, "is built by __init__; create parameters in build()")
    rebuilt = to_spec(from_spec(to_spec(head), Head))  # type: ignore[type-abstract]
    _must(rebuilt == to_spec(head), head, "cannot be rebuilt from its arguments; __init__ must only store them")


def _problem(labels: LabelSpace, bags: bool) -> Rows:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(ROWS, *([INSTANCES] if bags else []), FEATURES, generator=generator)
    scores = features @ torch.randn(FEATURES, len(labels), generator=generator)
    if bags:
        missing = torch.arange(INSTANCES) > torch.arange(ROWS)[:, None] % INSTANCES
        features[missing] = torch.nan
        scores = scores.masked_fill(missing[..., None], -torch.inf).amax(1)
    target = torch.softmax(scores, -1)
    value = labels.decode(target) if labels.has_values else None
    return Rows(features, target, value, group=torch.arange(ROWS) // 4)


def _check_built(head: Head, labels: LabelSpace) -> None:
    with _as_assertion():
        check_built(head, FEATURES, labels)
    with suppress(LDLError):
        head.build(FEATURES, labels)
        _must(False, head, "builds twice; call super().build first, which raises LDLError for a built head")


def _check_learning(head: Head, rows: Rows) -> None:
    head.train()
    if isinstance(head, FittedHead):
        head.fit(rows, Collective())
        return
    features, target = rows.features, rows.target
    losses = compute_loss(head, rows)
    with _as_assertion():
        check_losses(head, losses)
    memory = losses.pop("memory", features) if isinstance(head, AlternatingHead) else features
    for tensor in memory.values() if isinstance(memory, dict) else [memory]:
        good = len(tensor) == ROWS and not tensor.requires_grad
        _must(good, head, f"loss 'memory' must be detached tensors of {ROWS} rows, as the features are")
    for name, value in losses.items():
        _must(bool(value.isfinite()), head, f"loss {name!r} must be finite, is {value}")
    parameters = [parameter for parameter in head.parameters() if parameter.requires_grad]
    _must(bool(parameters), head, "has no parameters to learn; a head without gradients is a FittedHead")
    optimizer = torch.optim.Adam(parameters, lr=0.03)
    before = _mean_loss(head, rows)
    for _ in range(60):
        optimizer.zero_grad()
        losses = compute_loss(head, rows)
        losses["loss"].backward()
        optimizer.step()
        if isinstance(head, AlternatingHead):
            head.observe(losses.get("memory", features), target)
            if head.update_due:
                head.update(Collective())
                _must(not head.update_due, head, "is due for an update right after one")
    if isinstance(head, AlternatingHead):
        head.observe(memory_rows(losses.get("memory", features), slice(0)), target[:0])
        head.update(Collective())
    after = _mean_loss(head, rows)
    _must(after < before, head, f"does not learn: its loss went from {before:.4f} to {after:.4f} in 60 steps")


@torch.no_grad()
def _check_forward(head: Head, inputs: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return the output with and without autocast, and check that both are distributions of this shape."""
    output = head.eval()(inputs)
    _must(output.shape == shape, head, f"forward gives {tuple(output.shape)} for inputs {tuple(inputs.shape)}")
    _must(torch.equal(output, head(inputs)), head, "gives another output for the same input in eval mode")
    with torch.autocast("cpu", torch.bfloat16):
        mixed = head(inputs)
    for prediction, when in ((output, ""), (mixed, " under autocast")):
        dtype, sums = prediction.dtype, prediction.sum(-1)
        _must(dtype == torch.float32, head, f"gives {dtype}{when}; distributions must stay float32")
        good = bool((prediction >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), atol=1e-4)
        ends = f"smallest entry {prediction.min():.3g}, sums {sums.min():.5f} to {sums.max():.5f}"
        _must(good, head, f"leaves the simplex{when}: {ends}")
    return output, mixed


@torch.no_grad()
def _check_output(head: Head, features: Tensor, labels: LabelSpace) -> None:
    output, _ = _check_forward(head, features, (ROWS, len(labels)))
    grid = head(features.reshape(4, 3, 4, *features.shape[1:]))
    _must(grid.shape == (4, 3, 4, len(labels)), head, "must act on the last dimension of (..., F)")
    _must(torch.allclose(grid.reshape(ROWS, -1), output, atol=1e-5), head, "treats (..., F) unlike rows")
    alone = head(features[:1])
    _must(torch.allclose(alone, output[:1], atol=1e-5), head, "treats one row unlike many: rows must not mix")
    _must(head(features[:0]).shape == (0, len(labels)), head, "must take an empty batch")
    value = head.point_estimate(features)
    if value is not None:
        shape = (ROWS,) if labels.ndim == 1 else (ROWS, labels.ndim)
        _must(value.shape == shape, head, f"point_estimate gives {tuple(value.shape)}, not {shape}")
    both = head.predict(features)
    same = (both[1] is None) if value is None else (both[1] is not None and torch.equal(both[1], value))
    _must(torch.equal(both[0], output) and same, head, "predict must give what forward and point_estimate give")
    if (evidence := head.evidence(features[0])) is not None:
        count = len(evidence.names)
        shapes = [tuple(tensor.shape) for tensor in evidence[1:]]
        _must(shapes == [(count,), (count, len(labels))], head, f"evidence of {count} parts has shapes {shapes}")
    dtype = copy.deepcopy(head).double()(features.double()).dtype
    _must(dtype == torch.float64, head, f"gives {dtype} after .double(); keep the features' precision")


@torch.no_grad()
def _check_better_than_constant(head: Head, features: Tensor, target: Tensor) -> None:
    """Check that the head beats a constant prediction, in KL divergence or in the absolute error of values."""
    output = head(features)
    uniform = kl(torch.full_like(target, 1 / target.shape[-1]), target).mean()
    better = bool(kl(output, target).mean() < uniform)
    if head.labels.has_values:
        value, true = head.labels.decode(output), head.labels.decode(target)
        better |= bool((value - true).abs().mean() < (true - true.median(0).values).abs().mean())
    _must(better, head, "beats no constant prediction on its training rows, neither in KL nor in the point prediction")


@torch.no_grad()
def _check_saving(head: Head, inputs: Tensor, make: Callable[[], Head]) -> None:
    file = io.BytesIO()
    torch.save(head.state_dict(), file)
    file.seek(0)
    torch.manual_seed(2)
    other = make()
    other.build(head.in_features, head.labels)
    try:
        other.load_state_dict(torch.load(file, weights_only=True))
        same = torch.equal(other.eval()(inputs), head(inputs))
    except Exception:  # a head without part of its state may raise anything
        same = False
    lost = "" if same else lost_in_checkpoint(head, inputs, make) or "its predictions differ slightly"
    _must(same, head, f"is lost with its checkpoint: {lost}")
    if isinstance(head, AlternatingHead) and isinstance(other, AlternatingHead):
        state = head.memory_state(Collective())
        other.load_memory_state(state, Collective())
        again = other.memory_state(Collective())
        equal = state.keys() == again.keys() and all(torch.equal(state[name], again[name]) for name in state)
        _must(equal, head, "does not restore its replay buffer from memory_state")


def _check_images(head: ImageHead, make: Callable[[], Head], labels: LabelSpace) -> None:
    batches = [_striped_image(labels, number, (64 + 8 * number, 96 - 4 * number)) for number in range(3)]
    columns = {"input", "target", *head.wants}
    head.fit_images([{name: batch[name] for name in columns} for batch in batches], Collective())
    trials = [batch["input"] for batch in batches] + [batches[0]["input"][..., :33, :47]]
    with torch.no_grad():
        for images in trials:
            output, mixed = _check_forward(head, images, (1, *images.shape[2:], len(labels)))
            _must(torch.equal(output, mixed), head, "gives another output under autocast")
            _check_saving(head, images, make)
        first, last = (images[..., :40, :40] for images in (trials[0], trials[2]))
        alone = torch.cat([head(first), head(last)])
        _must(torch.equal(head(torch.cat([first, last])), alone), head, "treats one image unlike many")
        _must(head(first[:0]).shape == (0, 40, 40, len(labels)), head, "must take an empty batch")


def _striped_image(labels: LabelSpace, number: int, size: tuple[int, int]) -> dict[str, Tensor]:
    """Return an image of stripes, with the first label on the lines between them, from two annotators who agree."""
    across = torch.arange(size[1]).expand(size)
    segments = across // 12 + 1
    edge = torch.zeros(size, dtype=torch.bool)
    edge[:, 1:] = segments[:, 1:] != segments[:, :-1]
    label = torch.where(edge, segments % (len(labels) - 1) + 1, 0) % len(labels)
    colours = torch.randint(0, 256, (3, 20), generator=torch.Generator().manual_seed(number), dtype=torch.uint8)
    return {
        "input": colours[:, segments][None],
        "target": torch.nn.functional.one_hot(label, len(labels)).float()[None],
        "boundaries": edge.expand(1, 2, *size).clone(),
        "segments": segments.int().expand(1, 2, *size).clone(),
    }


@torch.no_grad()
def _mean_loss(head: Head, rows: Rows) -> float:
    loss = compute_loss(head.eval(), rows)["loss"]
    head.train()
    return float(loss)


@contextmanager
def _as_assertion() -> Iterator[None]:
    try:
        yield
    except LDLError as error:
        raise AssertionError(str(error)) from error


def _must(condition: bool, head: Head, message: str) -> None:
    if not condition:
        raise AssertionError(f"{type(head).__name__} {message}")
