"""The formats of exported models: how each is written, and how it is run again."""

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

from ldl.errors import LDLError
from ldl.export.deployed import Deployed

Run = Callable[[np.ndarray], list[np.ndarray]]
"""Inputs of a batch to the outputs of a :class:`Deployed`."""

NOTES = "ldl.json"
"""File inside of torch's formats that holds the metadata."""
INSTANCES, SIZES = ["batch", "instances"], ["batch", "height", "width"]
"""Names of the dimensions of bags, and of pictures of any size, that are not the same for all inputs."""
MOST_ONNX = 2**31 - 1
"""Bytes of an ONNX file; protocol buffers can be no larger."""


class Format(NamedTuple):
    """How a model is written, to bytes, with metadata; how these are run; and how such files are usually called."""

    write: Callable[[Deployed, Tensor, dict[str, str]], bytes]
    load: Callable[[bytes], Run]
    suffix: str


def write_onnx(model: Deployed, example: Tensor, metadata: dict[str, str]) -> bytes:
    """An ONNX graph of any batch. Raises LDLError: onnx or onnxscript is not installed, or the file is too large."""
    _need_onnx("onnx", "onnxscript")
    program = torch.onnx.export(
        model, (example,), dynamo=True, dynamic_shapes=(_sizes(model),), input_names=["input"],
        output_names=model.outputs, verbose=False,
    )  # fmt: skip
    assert program is not None
    graph = program.model
    graph.producer_name, graph.producer_version = "ldl", json.loads(metadata["versions"])["ldl"]
    graph.metadata_props.update(metadata)
    size = sum(part.nbytes for part in model.state_dict().values())
    if size > MOST_ONNX:
        raise LDLError(f"the model has {size / 1e9:.1f} GB of weights, and an ONNX file holds 2; use --to exported")
    return program.model_proto.SerializeToString()


def load_onnx(data: bytes, threads: int = 0) -> Run:
    """Run an ONNX file by onnxruntime, with its own number of threads for 0. Raises LDLError: it is not installed."""
    _need_onnx("onnxruntime")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, threads
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, {"input": inputs})


def write_torchscript(model: Deployed, example: Tensor, metadata: dict[str, str]) -> bytes:
    """A TorchScript archive, by ``torch.jit.trace``."""
    traced = torch.jit.trace(model, (example,), check_trace=False)
    file = io.BytesIO()
    torch.jit.save(traced, file, _extra_files={NOTES: json.dumps(metadata)})
    return file.getvalue()


def write_exported(model: Deployed, example: Tensor, metadata: dict[str, str]) -> bytes:
    """An archive of ``torch.export``."""
    sizes = dict.fromkeys(_sizes(model), torch.export.Dim.DYNAMIC)
    program = torch.export.export(model, (example,), dynamic_shapes=(sizes,))
    file = io.BytesIO()
    torch.export.save(program, file, extra_files={NOTES: json.dumps(metadata)})
    return file.getvalue()


def _load_torchscript(data: bytes) -> Run:
    return _by_torch(torch.jit.load(io.BytesIO(data)))


def _load_exported(data: bytes) -> Run:
    return _by_torch(torch.export.load(io.BytesIO(data)).module())


FORMATS = {
    "onnx": Format(write_onnx, load_onnx, ".onnx"),
    "torchscript": Format(write_torchscript, _load_torchscript, ".pt"),
    "exported": Format(write_exported, _load_exported, ".pt2"),
}


@contextmanager
def quietly() -> Iterator[None]:
    """Leave out what torch says of its own work: deprecations, and operators of packages that nobody asked for."""
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
    """The names of the dimensions of any size: the batch, of bags the instances, of some pictures height and width."""
    shape = model.input_shape
    names = INSTANCES if len(shape) == 2 else SIZES if model.takes_pictures and -1 in shape else INSTANCES[:1]
    return dict(enumerate(names))


def _need_onnx(*packages: str) -> None:
    for package in packages:
        try:
            __import__(package)
        except ModuleNotFoundError as error:
            raise LDLError(f"ONNX files need {error.name}, which is not installed; pip install 'ldl[onnx]'") from None
