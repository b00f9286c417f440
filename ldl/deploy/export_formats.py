"""The formats of exported models: how to write them, and how to run them."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ldl.deploy.export_columns import prepend
from ldl.deploy.export_graph import Deployed
from ldl.errors import LDLError

Run = Callable[[Any], list[np.ndarray]]
"""Inputs of a batch, an array or ``export_columns.Columns``, to the outputs of a :class:`Deployed`."""

NOTES = "ldl.json"
"""File with the metadata inside torch's formats."""
INSTANCES, SIZES = ["batch", "instances"], ["batch", "height", "width"]
"""Names of the dynamic dimensions of bags, and of images of any size."""


class Format(NamedTuple):
    """How to write a model to bytes, with metadata, how to run these bytes, and the usual file suffix."""

    write: Callable[[Deployed, Tensor, dict[str, str]], bytes]
    load: Callable[[bytes], Run]
    suffix: str


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


def write_torchscript(model: Deployed, example: Tensor, metadata: dict[str, str]) -> bytes:
    """Return a TorchScript archive, by ``torch.jit.trace``."""
    traced = torch.jit.trace(model, (example,), check_trace=False)
    file = io.BytesIO()
    torch.jit.save(traced, file, _extra_files={NOTES: json.dumps(metadata)})
    return file.getvalue()


def write_exported(model: Deployed, example: Tensor, metadata: dict[str, str]) -> bytes:
    """Return an archive of ``torch.export``."""
    sizes = dict.fromkeys(_sizes(model), torch.export.Dim.DYNAMIC)
    program = torch.export.export(model, (example,), dynamic_shapes=(sizes,))
    file = io.BytesIO()
    torch.export.save(program, file, extra_files={NOTES: json.dumps(metadata)})
    return file.getvalue()


FORMATS = {
    "onnx": Format(write_onnx, load_onnx, ".onnx"),
    "torchscript": Format(write_torchscript, lambda data: _by_torch(torch.jit.load(io.BytesIO(data))), ".pt"),
    "exported": Format(write_exported, lambda data: _by_torch(torch.export.load(io.BytesIO(data)).module()), ".pt2"),
}


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


def _by_torch(model: Any) -> Run:
    def run(inputs: np.ndarray) -> list[np.ndarray]:
        with torch.no_grad():
            return [found.numpy() for found in model(torch.from_numpy(inputs))]

    return run


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
