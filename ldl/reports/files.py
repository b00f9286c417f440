"""Writing results: JSON without NaN and never half, CSV with seven digits."""

from __future__ import annotations

import csv
import json
import math
import os
from pathlib import Path
from typing import Any


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write through a temporary file, so that there is never half a result; NaN and infinities become null."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(_finite(content), indent=2, allow_nan=False) + "\n")
    os.replace(temporary, path)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_csv(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    """Write a CSV file; numbers keep seven digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([f"{item:.7g}" if isinstance(item, float) else item for item in row] for row in rows)
