"""The metadata of an exported file: labels, inputs, licences."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import onnx
import pytest
from fakes.tasks import AGES, WIDTH

from ldl.backbones.base import Identity
from ldl.deploy.export_metadata import of_weights
from ldl.labels import LabelSpace

NAMES = [f"feature {number}" for number in range(WIDTH)]


@pytest.mark.slow
def test_the_file_says_what_it_is(model: Path) -> None:
    loaded = onnx.load(model)
    metadata = {entry.key: entry.value for entry in loaded.metadata_props}
    assert LabelSpace.from_dict(json.loads(metadata["labels"])) == AGES and metadata["unit"] == "years"
    assert json.loads(metadata["input"]) == {"type": "float64", "shape": [-1, WIDTH]}
    assert json.loads(metadata["preprocessing"])["features"] == NAMES
    assert metadata["intervals"].startswith("conformal, of rows like the 30 validation rows")
    assert json.loads(metadata["outputs"]) == [output.name for output in loaded.graph.output]
    assert metadata["license_data"].startswith("SJAFFE: academic use") and metadata["license_code"].startswith("MIT")
    assert metadata["license_weights"].startswith("none")
    assert loaded.producer_name == "ldl" and loaded.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_licences_of_a_model_without_networks_import_no_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run writes a card with them, and timm takes seconds."""
    monkeypatch.setitem(sys.modules, "timm", None)
    assert of_weights(Identity()).startswith("none but those of the data")
