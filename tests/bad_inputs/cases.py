"""All cases, by class."""

from __future__ import annotations

from bad_inputs import options, pictures, tables, values, yaml_files
from bad_inputs.harness import Case

CLASSES: dict[str, dict[str, Case]] = {
    "options": options.cases(),
    "tables": tables.cases(),
    "values": values.cases(),
    "configurations": yaml_files.cases(),
    "pictures and edges": pictures.cases(),
}
