"""A network cut in two: the layers that never change, and those after them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ldl.errors import LDLError


class _Reached(Exception):
    """What the last fixed layer has made."""


class Split:
    """Computes the fixed layers of a network alone, or from what they have made, all the others.

    Nothing of the network is copied: the layers on the one side stand still while those on the other run.

    Args:
        network: The network.
        fixed: Its fixed modules, those of :func:`whole`.
        example: Inputs to try it on.

    Raises:
        LDLError: other layers run before or beside the fixed ones, so that it cannot be cut there.
    """

    def __init__(self, network: nn.Module, fixed: Sequence[nn.Module], example: Tensor) -> None:
        self.network = network
        order = _in_order(network, fixed, example)
        self.skipped, self.last = order[:-1], order[-1]
        with evaluating(network), torch.no_grad():
            try:
                same = torch.allclose(self.upper(self.lower(example)), network(example), rtol=1e-4, atol=1e-5)
            except Exception:  # those of a network that is fed with what it does not expect have no common base
                same = False
        if not same:
            raise LDLError(
                f"Timm.views: {type(network).__name__} cannot be cut after its fixed layers; take another "
                "freeze_groups, or leave views 0"
            )

    @torch.no_grad()
    def lower(self, inputs: Tensor) -> Tensor:
        """Inputs of the network to maps (B, ...) of its last fixed layer."""

        def stop(module: nn.Module, given: Any, made: Tensor) -> None:
            raise _Reached(made)

        handle = self.last.register_forward_hook(stop)
        try:
            self.network(inputs)
        except _Reached as reached:
            return reached.args[0]
        finally:
            handle.remove()
        raise AssertionError("the last fixed layer was not reached")

    def upper(self, maps: Tensor) -> Any:
        """Maps of :meth:`lower` to outputs of the network."""
        stand_ins = {module: _same for module in self.skipped} | {self.last: lambda *given: maps}
        with _replaced(stand_ins):
            # The fixed layers hand it on as it is, and what stands between them finds nothing to do.
            return self.network(maps[:0])


@contextmanager
def _replaced(forwards: dict[nn.Module, Callable[..., Tensor]]) -> Iterator[None]:
    """Other forward functions of modules, for a while."""
    for module, forward in forwards.items():
        module.__dict__["forward"] = forward
    try:
        yield
    finally:
        for module in forwards:
            del module.__dict__["forward"]


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """All of it in evaluation, for a while; then each module is as it was, of which fixed ones always evaluate."""
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def _same(given: Tensor, *others: Any) -> Tensor:
    return given


def whole(network: nn.Module, held: set[nn.Parameter]) -> list[nn.Module]:
    """The largest modules of which all parameters are among those held."""
    found: list[nn.Module] = []

    def visit(module: nn.Module) -> None:
        own = list(module.parameters())
        if own and held.issuperset(own):
            found.append(module)
        else:
            for child in module.children():
                visit(child)

    visit(network)
    return found


def _in_order(network: nn.Module, modules: Sequence[nn.Module], example: Tensor) -> list[nn.Module]:
    """The modules in the order in which the network runs them."""
    order: list[nn.Module] = []

    def note(module: nn.Module, given: Any, made: Any) -> None:
        order.append(module)

    handles = [module.register_forward_hook(note) for module in modules]
    with evaluating(network), torch.no_grad():
        network(example)
    for handle in handles:
        handle.remove()
    return order
