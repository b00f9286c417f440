"""The contract of a head: features in, label distribution out.

A head is a subclass of :class:`Head`; its class name is its name on the command line. To write one:

1. Its options are fields of a class under ``@options`` (:mod:`ldl.options`), or arguments that a plain ``__init__``
   only stores under their own names. Annotate each, give it a default, and describe it under ``Args:`` in the class
   docstring: that text is the command-line help.
2. ``build(in_features, labels)`` creates parameters and buffers. It is called once, when the sizes are
   known; call ``super().build(in_features, labels)`` first.
3. ``forward(features)`` maps ``(..., F)`` to ``(..., C)`` on the simplex, always along the last dimension,
   so that one head serves rows, images and every pixel of a map. With ``takes_bags`` it maps bags of instances,
   ``(..., J, F)``, to ``(..., C)``.
4. ``loss(features, target)`` returns a dict: ``loss`` is minimised, everything else is logged, but for the
   ``memory`` of an :class:`AlternatingHead`. The default is the Kullback-Leibler divergence of ``forward`` from the
   target.
5. ``check_state()`` refuses what was loaded and cannot have been learned: files are not trusted (``ldl.trust``).

What was learned lives in parameters and buffers, so ``state_dict`` is the whole head. There are three
kinds: :class:`Head` learns by gradient alone, :class:`AlternatingHead` alternates gradient and closed-form
steps, :class:`FittedHead` is fitted in one go on extracted features, or, as :class:`ImageHead`, on whole images.
``ldl.testing.check_head`` checks all of this for any head.
"""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from ldl.batch import Batch
from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.evidence import Evidence
from ldl.metrics.functional import kl
from ldl.options import check_options
from ldl.trust.learned import check_parameters


class Head(nn.Module, ABC):
    """Base of all heads.

    Attributes:
        uses_value: Whether ``loss``, or ``fit``, wants the keyword ``value`` besides the distribution: the label
            itself where the data have one, (...,) or (..., 2), else None.
        uses_group: Whether ``fit`` wants the keyword ``group``, (N,) integers from 0, such as the person of a row; None
            where nobody knows them, or the fold does not keep them apart. For heads that set rows aside: those of one
            group stay together.
        takes_bags: Whether an input is a bag of J instances, (..., J, F) instead of (..., F), of which missing ones are
            NaN throughout. Single rows reach such a head as bags of one.
        takes_missing: Whether features may be NaN, where a value is missing.
        exact: Buffers that keep their precision whatever that of the head becomes, such as thresholds: rounded ones
            would send rows elsewhere.
        wide: Buffers of float32 at least, whatever the precision of the head becomes: weights and distributions, whose
            sums have no room in 16 bits.
        no_graph: Why ``ldl export`` cannot record what it computes, as a clause; empty where it can. What is recorded
            takes no Python value of a tensor, and asks :func:`ldl.methods.traced.traced` where it otherwise would.
        in_features: F, set by ``build``.
        labels: The label space, set by ``build``.
    """

    uses_value: ClassVar[bool] = False
    uses_group: ClassVar[bool] = False
    takes_bags: ClassVar[bool] = False
    takes_missing: ClassVar[bool] = False
    exact: ClassVar[tuple[str, ...]] = ()
    wide: ClassVar[tuple[str, ...]] = ()
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
        return {"loss": kl(self(features), target).mean()}

    def point_estimate(self, features: Tensor) -> Tensor | None:
        """A better value than decoding the distribution gives, (...,) or (..., 2), or None (the default)."""
        return None

    def chart_order(self, prediction: Tensor) -> Tensor:
        """Which test instances :meth:`charts` shows: row numbers of ``prediction`` (n, C), the best to show first.

        No more of them than fill a batch are handed to ``charts``. The default is as they come.
        """
        return torch.arange(len(prediction))

    def charts(self, folder: Path, batch: dict[str, Tensor]) -> dict[str, Path]:
        """Draw what only this head knows, after a test or prediction; none by default.

        Args:
            folder: Where PNGs go.
            batch: Some test instances, as the framework's batches are: ``index`` (B,), ``features`` as ``forward``
                takes them and ``prediction`` (B, C); what the data serve, such as ``input``, ``target``, ``value`` and
                ``group``; where the data know what a model is to find by itself, ``truth`` (B, ...); where instances
                of a bag have places in a picture, ``boxes`` (J, 4): top, left, bottom and right, in pixels.

        Returns:
            The paths by the names of the charts.
        """
        return {}

    def evidence(self, features: Tensor) -> Evidence | None:
        """What the prediction of one instance (F,) rests on, training rows or leaves; None (the default): unknown."""
        return None

    def check_state(self) -> None:
        """Raise LDLError where parameters or buffers are not what this head learns; called after every loading.

        A file may hold anything of any size: what indexes must be in range, what is a distribution on the simplex,
        before compiled code relies on it. The default wants parameters that are finite.
        """
        check_parameters(self)

    def predict(self, features: Tensor) -> tuple[Tensor, Tensor | None]:
        """``forward`` and :meth:`point_estimate` together, for heads that find both by the same work."""
        return self(features), self.point_estimate(features)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        before = {name: getattr(self, name) for name in (*self.exact, *self.wide) if name in self._buffers}
        super()._apply(fn, recurse)
        for name, buffer in before.items():
            after = getattr(self, name)
            if name in self.exact or after.dtype.itemsize < 4:
                setattr(self, name, buffer.to(after.device))
        return self


class AlternatingHead(Head):
    """A head that alternates gradient steps with a closed-form update on recent samples (``LeafUpdate``).

    What ``loss`` returns as ``memory``, a tensor or a dict of tensors, detached and with the leading dimensions of the
    features, goes to :meth:`observe` after the gradient step; without it the features do.

    The recent samples are plain tensors of the head, not buffers (DistributedDataParallel would overwrite
    them with those of rank 0); ``LeafUpdate`` puts them into the checkpoint.
    """

    @abstractmethod
    def observe(self, memory: Any, target: Tensor) -> None:
        """Remember one batch, ``memory`` (B, ...) and (B, C), after its gradient step. B may be 0 on some ranks."""

    @property
    @abstractmethod
    def update_due(self) -> bool:
        """Whether ``update`` should run now. Depends on the number of batches only: all ranks must agree."""

    @abstractmethod
    def update(self, collective: Collective) -> None:
        """Closed-form step on the remembered samples of all ranks. Every rank calls it."""

    def forget(self) -> None:
        """Drop the remembered samples: a fit begins, maybe on other rows. Does nothing by default."""

    @abstractmethod
    def memory_state(self, collective: Collective) -> dict[str, Tensor]:
        """The remembered samples of all ranks, for a checkpoint. Every rank calls it."""

    @abstractmethod
    def load_memory_state(self, state: dict[str, Tensor], collective: Collective) -> None:
        """Take this rank's share of :meth:`memory_state`, whatever number of ranks saved it."""


class FittedHead(Head):
    """A head without gradients, fitted once on the features of the whole training set (``FitHead``).

    Attributes:
        shows_progress: Whether ``fit`` may draw a progress bar; ``FitHead`` sets it as the trainer's bars are.
        resizes: Buffers take the shapes that are loaded.
    """

    resizes: ClassVar[bool] = True
    shows_progress: bool = False

    @abstractmethod
    def fit(self, features: Tensor, target: Tensor, collective: Collective) -> None:
        """Fit on all rows, (N, F) and (N, C).

        Every rank gets the same rows in the same order and calls it; ranks may share the work through
        ``collective``, and must end with equal buffers.
        """

    def summary(self) -> dict[str, float]:
        """Figures that ``fit`` measured and that are worth logging; none by default."""
        return {}

    def register_buffers(self, **tensors: Tensor) -> None:
        """Register, or replace, several buffers by name."""
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # The shapes of fitted buffers are known only after fitting: take those of the checkpoint.
        for name, buffer in list(self.named_buffers(recurse=False, remove_duplicate=False)):
            saved = state_dict.get(prefix + name)
            if saved is not None and saved.shape != buffer.shape:
                same_kind = saved.is_floating_point() == buffer.is_floating_point() and not saved.is_complex()
                dtype = saved.dtype if same_kind else buffer.dtype
                setattr(self, name, torch.empty_like(saved, dtype=dtype, device=buffer.device))
        super()._load_from_state_dict(state_dict, prefix, *args)


class ImageHead(FittedHead):
    """A head that is fitted on whole images, and looks at their pixels itself (with the backbone ``WholeImages``).

    Attributes:
        wants: What batches of training must have besides ``input`` and ``target``, such as the ``boundaries`` and
            ``segments`` (1, A, H, W) that A annotators drew.
    """

    wants: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def fit_images(self, batches: Iterable[Batch], collective: Collective) -> None:
        """Fit on batches of images, ``input`` (B, 3, H, W) uint8 and ``target`` (B, H, W, C); sizes differ.

        Every rank gets all batches in the same order and calls it; ranks may share the work through ``collective``,
        and must end with equal buffers.
        """

    @abstractmethod
    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, 3, H, W) uint8 to distributions (B, H, W, C)."""

    def fit(self, features: Tensor, target: Tensor, collective: Collective, **wanted: Tensor) -> None:
        """Fit on images of one size, (N, 3, H, W) and (N, H, W, C), and what the head wants besides."""
        self.fit_images([{"input": features, "target": target, **wanted}], collective)


def check_memory(head: Head, in_features: int, labels: LabelSpace) -> None:
    """Raise LDLError for a head that would not fit into the machine's memory, before it is made."""
    trial = copy.deepcopy(head)
    try:
        with torch.random.fork_rng([]), torch.device("meta"):
            trial.build(in_features, labels)
    except Exception:
        return  # ``build`` says itself what is wrong
    size, there = sum(part.nbytes for part in [*trial.parameters(), *trial.buffers()]), machine_memory()
    if size > there:
        raise LDLError(
            f"{type(head).__name__} with these options has {size / 1e9:,.0f} GB of weights, and the machine has "
            f"{there / 1e9:,.0f} GB of memory; ask for fewer or smaller trees and layers"
        )


def machine_memory() -> int:
    """Bytes of memory that the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _check_loaded(head: Head, keys: Any) -> None:
    if head.is_built:
        head.check_state()


def memory_rows(memory: Any, rows: slice) -> Any:
    """Some rows of what a loss gave as ``memory``."""
    return {name: part[rows] for name, part in memory.items()} if isinstance(memory, dict) else memory[rows]


def wanted_columns(head: Head) -> list[str]:
    """The columns of a batch that a head wants as keywords besides its features and its target."""
    return [name for name, wants in (("value", head.uses_value), ("group", head.uses_group)) if wants]


def wanted_of(head: Head, columns: Mapping[str, Tensor | None]) -> dict[str, Tensor | None]:
    """The columns that :func:`wanted_columns` names, as keywords for ``fit`` or ``loss``; None for an unknown one."""
    return {name: columns.get(name) for name in wanted_columns(head)}
