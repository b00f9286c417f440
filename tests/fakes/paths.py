"""Where things lie in the checkout."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
BENCHMARKS = ROOT / "benchmarks"


def load_script(path: Path) -> Any:
    """Return the module in a file that is in no package. Dataclasses in it look it up by its name."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
