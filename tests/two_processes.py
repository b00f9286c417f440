"""What the second of two processes hears from the first, in one process and one after the other."""

from __future__ import annotations

from torch import Tensor

from ldl.collective import Collective


class First(Collective):
    """The first of two processes, which does not wait for the other: it hears itself alone."""

    world_size = 2

    def __init__(self) -> None:
        self.said: list[Tensor] = []

    def gather(self, tensor: Tensor) -> list[Tensor]:
        return [self.broadcast(tensor)]

    def broadcast(self, tensor: Tensor, source: int = 0) -> Tensor:
        self.said.append(tensor)
        return tensor


class Second(Collective):
    """The second, which hears what the first has said."""

    rank, world_size = 1, 2

    def __init__(self, said: list[Tensor]) -> None:
        self.said = iter(said)

    def gather(self, tensor: Tensor) -> list[Tensor]:
        return [next(self.said), tensor]

    def broadcast(self, tensor: Tensor, source: int = 0) -> Tensor:
        return next(self.said)
