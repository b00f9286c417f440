"""What ``--quick`` makes of a method of the tabular benchmark: the same method, at sizes that take seconds."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

from benchmarks.tables.methods import Method, find_class

LARGEST = {"epochs": 2, "folds": 2, "rounds": 5, "trees": 5, "n_estimators": 5, "iterations": 10, "max_iter": 10}
"""Of arguments of any class, where they are whole numbers."""


def quickened(method: Method) -> Method:
    """The method with the first setting of its grid alone, and small, the heads in it, too; for any set."""
    training = {**method.training, "epochs": LARGEST["epochs"]} if method.training else {}
    grid = {name: values[:1] for name, values in method.grid.items()}
    spec = _small({"class_path": method.class_path, "init_args": method.init_args})
    fitting = {name: LARGEST[name] for name in _defaults(method.class_path, "fit") if name in LARGEST}
    return replace(
        method, init_args=spec["init_args"], grid=grid, tuning={}, training=training, fitting=fitting, sets=None
    )


def _small(spec: Any) -> Any:
    if isinstance(spec, list):
        return [_small(part) for part in spec]
    if not isinstance(spec, dict) or "class_path" not in spec:
        return spec
    arguments = {name: _small(value) for name, value in spec.get("init_args", {}).items()}
    sizes = {**_defaults(spec["class_path"]), **arguments}
    arguments |= {name: min(sizes[name], most) for name, most in LARGEST.items() if isinstance(sizes.get(name), int)}
    return {**spec, "init_args": arguments}


def _defaults(class_path: str, function: str = "__init__") -> dict[str, Any]:
    try:
        known = inspect.signature(getattr(find_class(class_path), function)).parameters
    except (ImportError, AttributeError):  # its cells will say so
        return {}
    return {name: parameter.default for name, parameter in known.items()}
