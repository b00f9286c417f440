"""Write a deployed task as an ONNX file, and run such a file."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ldl.deploy.export_columns import prepend
from ldl.deploy.export_graph import Deployed
from ldl.errors import LDLError

Run = Callable[[Any], list[np.ndarray]]
"""Inputs of a batch, an array or ``export_columns.ColumnArrays``, to the outputs of a :class:`Deployed`."""

INSTANCES, SIZES = ["batch", "instances"], ["batch", "height", "width"]
"""Names of the dynamic dimensions of bags, and of images of any size."""


def write_onnx(model: Deployed, example: Tensor, metadata: dict[str, str]) -> bytes:
    """Return an ONNX graph for any batch size. Raises LDLError for a missing package."""
    _need_onnx("onnx", "onnxscript")
    program = torch.onnx.export(
        model, (example,), dynamo=True, dynamic_shapes=(_sizes(model),), input_names=["input"],
        output_names=model.outputs, verbose=False,
    )  # fmt: skip
    assert program is not None
    graph = program.model
    graph.producer_name, graph.producer_version = "ldl", json.loads(metadata["versions"])["ldl"]
    graph.metadata_props.update(metadata)
    proto = program.model_proto
    whole = proto if model.encoding is None else prepend(proto, model.encoding)
    return bytes(whole.SerializeToString())


def load_onnx(data: bytes, threads: int = 0) -> Run:
    """Return a function that runs an ONNX file by onnxruntime; 0 ``threads`` is its default. Raises LDLError."""
    _need_onnx("onnxruntime")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, threads
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs if isinstance(inputs, dict) else {"input": inputs})


@contextmanager
def quietly() -> Iterator[None]:
    """Silence torch's warnings about deprecations and missing operators."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _sizes(model: Deployed) -> dict[int, Any]:
    """Return the names of the dynamic dimensions: batch, instances of bags, height and width of some images."""
    shape = model.input_shape
    names = INSTANCES if len(shape) == 2 else SIZES if model.takes_pictures and -1 in shape else INSTANCES[:1]
    return dict(enumerate(names))


def _need_onnx(*packages: str) -> None:
    for package in packages:
        try:
            __import__(package)
        except ModuleNotFoundError as error:
            raise LDLError(f"ONNX files need {error.name}, which is not installed; pip install 'ldl[onnx]'") from None
