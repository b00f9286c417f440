"""Where crops and features are kept, which can always be made again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root(given: str | None = None) -> Path:
    """As given, or the environment's ``LDL_CACHE``, or ``~/.cache/ldl``."""
    return Path(given or os.environ.get("LDL_CACHE") or Path.home() / ".cache" / "ldl")
