"""Looks at every step without waiting for it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.errors import SharedError


class Watch:
    """Whether the last step of this process went well.

    Its flags stay on the device until something is read from there anyway, the size of the next batch, so looking costs
    no synchronisation. A step that went wrong ends the run before the next one, on all processes together.
    """

    def __init__(self) -> None:
        self._noted: list[tuple[Tensor, Callable[[], str]]] = []

    def note(self, good: Tensor, explain: Callable[[], str]) -> None:
        """Remember whether something went well, () bool; ``explain`` says, later and only if it did not, what."""
        self._noted.append((good, explain))

    def clear(self) -> None:
        """Forget what was noted, and the tensors that explaining it would take."""
        self._noted = []

    def wrong(self, device: torch.device) -> Tensor:
        """Whether any of what was noted went wrong, (1,) bool."""
        if not self._noted:
            return torch.zeros(1, dtype=torch.bool, device=device)
        good = [good.reshape(1) for good, _ in self._noted]
        return ~(good[0] if len(good) == 1 else torch.cat(good).all(0, keepdim=True))

    def why(self) -> str:
        """What went wrong first, in words; empty where nothing did."""
        return next((explain() for good, explain in self._noted if not good), "")

    def settle(self, device: torch.device, collective: Collective) -> None:
        """Look now, where no batch follows. Every process calls it. Raises SharedError."""
        wrong = int(collective.sum(self.wrong(device).long()))
        why = self.why() if wrong else ""
        self.clear()
        if wrong:
            raise_together(why, device, collective)


def raise_together(message: str, device: torch.device, collective: Collective) -> None:
    """Raise SharedError with the first message that is not empty. Every process calls it."""
    texts = collective.gather(torch.tensor(list(message.encode()), dtype=torch.uint8, device=device))
    raise SharedError(next(bytes(text.tolist()).decode() for text in texts if len(text)))
