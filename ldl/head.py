"""The contract of a head: features in, label distribution out.

A head is a subclass of :class:`Head`. Its class name is its name on the command line. To write a head:

1. Declare its options as fields of a class under ``@options`` (:mod:`ldl.options`), or as arguments that a plain
   ``__init__`` only stores under their own names. Annotate each option, give it a default, and describe it under
   ``Args:`` in the class docstring. That text is the command-line help.
2. ``build(in_features, labels)`` creates parameters and buffers. ldl calls it once, when the sizes are known. Call
   ``super().build(in_features, labels)`` first.
3. ``forward(features)`` maps ``(..., F)`` to ``(..., C)`` on the simplex, always along the last dimension,
   so that one head serves rows, images and every pixel of a map. With ``takes_bags`` it maps bags of instances,
   ``(..., J, F)``, to ``(..., C)``.
4. ``loss(features, target)`` returns a dict. ldl minimises ``loss`` and logs the other entries, except the
   ``memory`` of an :class:`AlternatingHead`. The default is the Kullback-Leibler divergence of ``forward`` from the
   target. ``loss`` also takes ``value`` and ``weight`` if the class sets ``uses_value`` and ``uses_weight``; with
   weights it is the weighted mean over rows (``ldl.metrics.functional.mean_of``).
5. ``log_outputs(features)`` returns the logarithms of distributions for models of raters, by default of ``forward``.
6. ``describe_buffers()`` gives the shape and the numbers of each buffer, so that loading a damaged file raises
   LDLError. Override ``check_state()`` for what a rule cannot say.

The state of a head is in its parameters and buffers, so ``state_dict`` is the whole head. There are three kinds:
:class:`Head` learns by gradient, :class:`AlternatingHead` alternates gradient and closed-form steps, and
:class:`FittedHead` is fitted once on :class:`ldl.methods.rows.Rows` of extracted features, or, as an
:class:`ImageHead`, on whole images. Use ``ldl.testing.check_head`` to check a head against this contract.
"""

from __future__ import annotations

import copy
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from ldl.batch import EVALUATED_ROWS, Batch
from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.evidence import Evidence
from ldl.methods.rows import Rows, adapt_fit, check_weight
from ldl.metrics.functional import kl, mean_of
from ldl.moved import old_names
from ldl.options import check_options
from ldl.validation.tensors import check_buffers, check_parameters


class Head(nn.Module, ABC):
    """Base of all heads.

    Attributes:
        uses_value: Whether ``loss`` takes the keyword ``value``: the label itself, (...,) or (..., 2), or None if the
            data have none.
        uses_weight: Whether ``loss`` takes the keyword ``weight``, (B,) positive weights of the rows, or ``fit`` uses
            the weights of its rows. A row of weight 2 counts as two rows. Data with weights are an error for other
            heads.
        takes_bags: Whether an input is a bag of J instances, (..., J, F) instead of (..., F). Missing instances are NaN
            throughout. Single rows become bags of one instance.
        takes_missing: Whether features may be NaN to mark a missing value.
        exact: Buffers that keep their precision whatever the precision of the head, such as thresholds: a rounded
            threshold would send rows to another leaf.
        float32_buffers: Buffers that keep at least float32: sums of weights and distributions do not fit 16 bits.
        rows_at_once: Rows of a table that ``Predictor`` passes to ``forward`` at once. Forests take more, since each of
            their trees is then in the cache for many rows.
        no_graph: Why ``ldl export`` cannot record the head, as a clause; empty if it can. While
            :func:`ldl.methods.torch_utils.traced`, ``forward`` must not read Python values of tensors.
        in_features: Number of features F, set by ``build``.
        labels: The label space, set by ``build``.

    Examples:
        >>> import torch
        >>> from ldl import Head, LabelSpace
        >>> class Linear(Head):
        ...     def build(self, in_features, labels):
        ...         super().build(in_features, labels)
        ...         self.layer = torch.nn.Linear(in_features, len(labels))
        ...     def forward(self, features):
        ...         return torch.softmax(self.layer(features), -1)
        >>> head = Linear()
        >>> head.build(3, LabelSpace.nominal(["no", "yes"]))
        >>> head(torch.zeros(5, 3)).shape
        torch.Size([5, 2])
    """

    uses_value: ClassVar[bool] = False
    uses_weight: ClassVar[bool] = False
    takes_bags: ClassVar[bool] = False
    takes_missing: ClassVar[bool] = False
    exact: ClassVar[tuple[str, ...]] = ()
    float32_buffers: ClassVar[tuple[str, ...]] = ()
    rows_at_once: ClassVar[int] = EVALUATED_ROWS
    no_graph: ClassVar[str] = ""
    in_features: int
    labels: LabelSpace

    def __init__(self) -> None:
        super().__init__()
        self.register_load_state_dict_post_hook(_check_loaded)

    @property
    def is_built(self) -> bool:
        """Whether ``build`` was called."""
        return "labels" in self.__dict__

    def extra_repr(self) -> str:
        """Return the options that differ from their defaults, for ``repr``; nested heads show their own."""
        shown = []
        for name, parameter in inspect.signature(type(self)).parameters.items():
            default = parameter.default
            value = getattr(self, name, default)
            if value is not default and value != default and not isinstance(value, nn.Module):
                shown.append(f"{name}={value!r}")
        return ", ".join(shown)

    @abstractmethod
    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create parameters and buffers for ``in_features`` inputs and ``len(labels)`` outputs."""
        check_options(self)
        if self.is_built:
            raise LDLError(f"{type(self).__name__} is built already; make a new head instead")
        self.in_features = in_features
        self.labels = labels

    @abstractmethod
    def forward(self, features: Tensor) -> Tensor:
        """Map features (..., F) to distributions (..., C)."""

    def loss(self, features: Tensor, target: Tensor, **extra: Any) -> dict[str, Tensor]:
        """Mean KL divergence of the prediction from ``target`` (..., C), over all leading dimensions."""
        return {"loss": mean_of(kl(self(features), target), extra.get("weight"))}

    def log_outputs(self, features: Tensor) -> dict[str, Tensor]:
        """Return what a model of raters (:mod:`ldl.raters`) learns from, in place of :meth:`loss`.

        A head whose loss is the mean of the losses of several distributions, such as trees, returns each of them. The
        default returns the logarithms of ``forward``.

        Args:
            features: (..., F).

        Returns:
            ``log_p`` (..., T, C), the logarithms of T distributions, at least float32. An :class:`AlternatingHead` adds
            the ``memory`` of its ``loss``, unless it is the features.

        Raises:
            LDLError: An option of the head changes its loss in a way that single votes do not allow.
        """
        p = self(features)
        return {"log_p": p.clamp_min(torch.finfo(p.dtype).tiny).log().unsqueeze(-2)}

    def point_estimate(self, features: Tensor) -> Tensor | None:
        """Return a better estimate than decoding the distribution, (...,) or (..., 2), or None (the default)."""
        return None

    def chart_order(self, prediction: Tensor) -> Tensor:
        """Return the order in which :meth:`charts` shows test instances: row numbers of ``prediction`` (n, C).

        ``charts`` gets at most a batch of instances. The default keeps their order.
        """
        return torch.arange(len(prediction))

    def charts(self, folder: Path, batch: dict[str, Tensor]) -> dict[str, Path]:
        """Draw charts that are specific to this head, after a test or prediction; none by default.

        Args:
            folder: Folder for PNG files.
            batch: Test instances: ``index`` (B,), ``features`` in the form that ``forward`` takes, ``prediction``
                (B, C), and the columns of the data, such as ``input``, ``target``, ``value`` and ``group``. Data with
                a truth that a model should find on its own add ``truth`` (B, ...). Bags whose instances have places in
                an image add ``boxes`` (J, 4): top, left, bottom and right, in pixels.

        Returns:
            The paths by the names of the charts.
        """
        return {}

    def evidence(self, features: Tensor) -> Evidence | None:
        """Return the training rows or leaves behind the prediction of one instance (F,), or None (the default)."""
        return None

    def describe_buffers(self) -> dict[str, str]:
        """Return the rule of each buffer by name, such as ``{"points": "N F: finite"}``; none by default.

        C is the number of labels, and F the number of features; see :func:`ldl.validation.tensors.check_buffers`.
        """
        return {}

    def check_state(self) -> None:
        """Raise LDLError for parameters or buffers that this head cannot have learned; called after every loading.

        A file may hold anything of any size. Before compiled code relies on them, indices must be in range and
        distributions on the simplex. The default checks that parameters are finite, and :meth:`describe_buffers`.
        """
        check_parameters(self)
        check_buffers(self, self.describe_buffers(), C=len(self.labels), F=self.in_features)

    def predict(self, features: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return ``forward`` and :meth:`point_estimate`; heads may compute both at once."""
        return self(features), self.point_estimate(features)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        before = {name: getattr(self, name) for name in (*self.exact, *self.float32_buffers) if name in self._buffers}
        super()._apply(fn, recurse)
        for name, buffer in before.items():
            after = getattr(self, name)
            if name in self.exact or after.dtype.itemsize < 4:
                setattr(self, name, buffer.to(after.device))
        return self


class AlternatingHead(Head):
    """A head that alternates gradient steps with a closed-form update on recent samples (``LeafUpdate``).

    After the gradient step, :meth:`observe` gets the entry ``memory`` of ``loss``, a detached tensor or dict of tensors
    with the leading dimensions of the features; without this entry it gets the features.

    The replay buffer of recent samples is plain tensors of the head, not torch buffers, because
    DistributedDataParallel would overwrite these with those of rank 0. ``LeafUpdate`` saves it in the checkpoint.

    Examples:
        >>> import torch
        >>> from ldl import LabelSpace
        >>> from ldl.collective import Collective
        >>> from ldl.heads import LDLF
        >>> head = LDLF(batches=1)
        >>> head.build(3, LabelSpace.nominal(["no", "yes"]))
        >>> features, target = torch.rand(8, 3), torch.full((8, 2), 0.5)
        >>> head.observe(head.loss(features, target)["memory"], target)
        >>> head.update(Collective())  # solves the leaves in closed form
        >>> head.leaves.shape
        torch.Size([5, 64, 2])
    """

    @abstractmethod
    def observe(self, memory: Any, target: Tensor) -> None:
        """Add a batch, ``memory`` (B, ...) and (B, C), to the replay buffer. B may be 0 on some ranks.

        The rows of ``target`` are distributions times the weights of the rows.
        """

    def expect(self, epoch: float, run: float) -> None:
        """Receive the number of batches of an epoch and of the run (inf if unlimited). Does nothing by default."""

    @property
    @abstractmethod
    def update_due(self) -> bool:
        """Whether ``update`` should run now. It may depend only on the number of batches: all ranks must agree."""

    @abstractmethod
    def update(self, collective: Collective) -> None:
        """Take a closed-form step on the replay buffers of all ranks. Every rank calls it."""

    def forget(self) -> None:
        """Empty the replay buffer before a new fit. Does nothing by default."""

    @abstractmethod
    def memory_state(self, collective: Collective) -> dict[str, Tensor]:
        """Return the replay buffers of all ranks, for a checkpoint. Every rank calls it."""

    @abstractmethod
    def load_memory_state(self, state: dict[str, Tensor], collective: Collective) -> None:
        """Load this rank's share of :meth:`memory_state`, saved by any number of ranks."""


class FittedHead(Head):
    """A head without gradients that ``FitHead`` fits once, on the features of the whole training set.

    Attributes:
        shows_progress: Whether ``fit`` may draw a progress bar; ``FitHead`` sets it.
        resizes: Whether buffers take the shapes of a checkpoint.

    Examples:
        >>> import torch
        >>> from ldl import LabelSpace
        >>> from ldl.collective import Collective
        >>> from ldl.heads import MeanPredictor
        >>> from ldl.methods.rows import Rows
        >>> head = MeanPredictor()
        >>> head.build(3, LabelSpace.nominal(["no", "yes"]))
        >>> head.fit(Rows(torch.zeros(2, 3), torch.tensor([[1.0, 0.0], [0.5, 0.5]])), Collective())
        >>> head(torch.zeros(1, 3))
        tensor([[0.7500, 0.2500]])
    """

    resizes: ClassVar[bool] = True
    shows_progress: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "fit" in vars(cls):
            cls.fit = adapt_fit(cls)  # type: ignore[method-assign]

    @abstractmethod
    def fit(self, rows: Rows, collective: Collective) -> None:
        """Fit on all rows.

        Every rank calls it with the same rows in the same order. Ranks may share the work through ``collective``, and
        must end with equal buffers.
        """

    def summary(self) -> dict[str, float]:
        """Return results of ``fit`` to log; none by default."""
        return {}

    def complete_state(self, state: dict[str, Any], prefix: str) -> None:
        """Add to a saved state what checkpoints of older versions lack, before every loading; nothing by default."""

    def register_buffers(self, **tensors: Tensor) -> None:
        """Register, or replace, several buffers by name."""
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        self.complete_state(state_dict, prefix)
        # The shapes of fitted buffers are known only after a fit, so the shapes of the checkpoint apply.
        for name, buffer in list(self.named_buffers(recurse=False, remove_duplicate=False)):
            saved = state_dict.get(prefix + name)
            if saved is not None and saved.shape != buffer.shape:
                same_kind = saved.is_floating_point() == buffer.is_floating_point() and not saved.is_complex()
                dtype = saved.dtype if same_kind else buffer.dtype
                setattr(self, name, torch.empty_like(saved, dtype=dtype, device=buffer.device))
        super()._load_from_state_dict(state_dict, prefix, *args)


class ImageHead(FittedHead):
    """A head that is fitted on the pixels of whole images, with the backbone ``WholeImages``.

    Attributes:
        wants: Columns of training batches besides ``input`` and ``target``, such as the ``boundaries`` and
            ``segments`` (1, A, H, W) of A annotators.
    """

    wants: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def fit_images(self, batches: Iterable[Batch], collective: Collective) -> None:
        """Fit on batches of images, ``input`` (B, 3, H, W) uint8 and ``target`` (B, H, W, C); sizes differ.

        Every rank calls it with all batches in the same order. Ranks may share the work through ``collective``, and
        must end with equal buffers.
        """

    @abstractmethod
    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, 3, H, W) uint8 to distributions (B, H, W, C)."""

    def fit(self, rows: Rows, collective: Collective) -> None:
        """Fit on images of one size: features (N, 3, H, W) uint8 and targets (N, H, W, C)."""
        self.fit_images([{"input": rows.features, "target": rows.target}], collective)


def check_memory(head: Head, in_features: int, labels: LabelSpace) -> None:
    """Raise LDLError for a head that does not fit into the machine's memory, before it is built."""
    trial = copy.deepcopy(head)
    try:
        with torch.random.fork_rng([]), torch.device("meta"):
            trial.build(in_features, labels)
    except Exception:
        return  # ``build`` raises its own error
    size, available = sum(tensor.nbytes for tensor in [*trial.parameters(), *trial.buffers()]), machine_memory()
    if size > available:
        raise LDLError(
            f"{type(head).__name__} with these options has {size / 1e9:,.0f} GB of weights, and the machine has "
            f"{available / 1e9:,.0f} GB of memory; use fewer or smaller trees and layers"
        )


def machine_memory() -> int:
    """Return the bytes of memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _check_loaded(head: Head, keys: Any) -> None:
    if head.is_built:
        head.check_state()


def memory_rows(memory: Any, rows: slice) -> Any:
    """Return some rows of the entry ``memory`` of a loss."""
    return {name: tensor[rows] for name, tensor in memory.items()} if isinstance(memory, dict) else memory[rows]


def compute_loss(head: Head, rows: Rows) -> dict[str, Tensor]:
    """Return ``loss`` of a head on rows, or maps (B, ..., F), with the columns that it takes.

    Raises:
        LDLError: There are weights, and the head does not use any.
    """
    columns = {"value": rows.value} if head.uses_value else {}
    if rows.weight is not None:
        check_weight(head, rows.weight)
        columns["weight"] = rows.weight
    return head.loss(rows.features, rows.target, **columns)


__getattr__ = old_names("ldl.head")
