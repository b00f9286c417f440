"""The classes that a configuration may name, and what finding them imports."""

from __future__ import annotations

import subprocess
import sys

from fakes.paths import ROOT

from ldl.command.classes import find_class, harmless_paths
from ldl.heads import StructRF


def test_the_command_line_imports_no_transforms_of_images() -> None:
    code = "import sys, ldl.run.main; print('albumentations' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True).strip() == "False"


def test_a_configuration_beside_a_checkpoint_may_name_transforms() -> None:
    paths = harmless_paths()
    assert any(path.endswith(".HorizontalFlip") for path in paths) and "os.system" not in paths
    assert find_class("model.head", "StructRF") is StructRF and find_class("model.head", "StructuredForest") is None
