"""Looks at every step without waiting for it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.errors import SharedError


class Flag:
    """Whether something went well, () bool, on its way to the host; ``explain`` says, if it did not, what."""

    def __init__(self, good: Tensor, explain: Callable[[], str]) -> None:
        self.explain = explain
        self._good = good.detach().to("cpu", non_blocking=True)
        self._copied = None if good.device.type == "cpu" else torch.Event(good.device)
        if self._copied is not None:
            self._copied.record()

    @property
    def is_late(self) -> bool:
        """Whether it comes from another device than the CPU."""
        return self._copied is not None

    def wait(self) -> bool:
        """Whether it did, once that has arrived."""
        if self._copied is not None:
            self._copied.synchronize()
        return bool(self._good)


class Watch:
    """Whether the last steps of this process went well.

    A step on the CPU that went wrong ends the run before the next one, on all processes together. The flag of another
    device is read one batch later: while the host asks for it, the device has the step after it to do, and never waits.
    """

    def __init__(self) -> None:
        self._noted: list[Flag] = []
        self._due: list[Flag] = []

    def note(self, good: Tensor, explain: Callable[[], str]) -> None:
        """Remember whether something went well, () bool; ``explain`` says, later and only if it did not, what."""
        self._noted.append(Flag(good, explain))

    def look(self, at_all: bool = False) -> Flag | None:
        """What went wrong first, or None, of what is to be read before the next batch, or ``at_all``.

        What was looked at is forgotten, with the tensors that explaining it would take.
        """
        late = [] if at_all else [flag for flag in self._noted if flag.is_late]
        due = [*self._due, *(flag for flag in self._noted if at_all or not flag.is_late)]
        self._due, self._noted = late, []
        return next((flag for flag in due if not flag.wait()), None)

    def settle(self, device: torch.device, collective: Collective) -> None:
        """Look at all now, where no batch follows. Every process calls it. Raises SharedError."""
        bad = self.look(at_all=True)
        if collective.sum_numbers([bad is not None])[0]:
            raise_together(bad.explain() if bad else "", device, collective)


def raise_together(message: str, device: torch.device, collective: Collective) -> None:
    """Raise SharedError with the first message that is not empty. Every process calls it."""
    texts = collective.gather(torch.tensor(list(message.encode()), dtype=torch.uint8, device=device))
    raise SharedError(next(bytes(text.tolist()).decode() for text in texts if len(text)))
