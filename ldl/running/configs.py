"""Configurations by name or path, looked at before they are read."""

from __future__ import annotations

import os
from pathlib import Path

from ldl.running.yaml_files import check_config
from ldl.start.configs import locate_config


def find_config(given: str) -> str:
    """The file of a configuration, as :func:`ldl.start.configs.locate_config` finds it.

    Raises:
        LDLError: there is no such file, or it is no configuration.
    """
    if os.path.exists(given):
        check_config(Path(given))
    return locate_config(given)
