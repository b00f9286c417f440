"""ONNX files: a graph of rows for any number of them, packages that are missing, and no lasting silence."""

from __future__ import annotations

import logging
import sys

import numpy as np
import pytest
import torch
from fakes.tasks import AGES, rows, small_task

from ldl.deploy.export_graph import Deployed
from ldl.deploy.export_onnx import load_onnx, quietly, write_onnx
from ldl.errors import LDLError
from ldl.heads import MeanPredictor


@pytest.mark.slow
def test_a_graph_takes_any_number_of_rows() -> None:
    model = Deployed(small_task(MeanPredictor(), AGES)).eval()
    with quietly():
        run = load_onnx(write_onnx(model, torch.from_numpy(rows(7)), {"versions": '{"ldl": "1"}'}), threads=1)
    for count in (1, 5):
        distribution = run(rows(count))[0]
        np.testing.assert_allclose(distribution, model(torch.from_numpy(rows(count)))[0], atol=1e-6)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(LDLError, match=r"^ONNX files need onnxruntime, which is not installed; pip install 'ldl\[onnx"):
        load_onnx(b"")


def test_logging_is_as_before() -> None:
    level = logging.root.manager.disable
    with pytest.raises(ZeroDivisionError), quietly():
        assert logging.root.manager.disable == logging.WARNING
        raise ZeroDivisionError
    assert logging.root.manager.disable == level
