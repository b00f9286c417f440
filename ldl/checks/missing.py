"""Whether a head takes data of which features are missing."""

from __future__ import annotations

from ldl.errors import LDLError
from ldl.head import Head


def check_missing(head: Head, missing: bool) -> None:
    """Refuse data of which features are ``missing`` for a head that does not take such."""
    if missing and not head.takes_missing:
        raise LDLError(
            f"{type(head).__name__} takes no missing features, and the data have some; fill them, or take a head that "
            "does, such as BoostedTrees"
        )
