"""Checkpoints that anybody could have made: whatever they hold, the message is one line."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoints.make import FOLDER
from torch.utils._python_dispatch import TorchDispatchMode

from ldl.checkpoint import read_checkpoint
from ldl.errors import LDLError
from ldl.task import Task

Change = Callable[[dict[str, Any]], object]


def put(value: Any, *path: str) -> Change:
    """Another value for an entry."""

    def change(checkpoint: dict[str, Any]) -> None:
        for name in path[:-1]:
            checkpoint = checkpoint[name]
        checkpoint[path[-1]] = value

    return change


def drop(*path: str) -> Change:
    def change(checkpoint: dict[str, Any]) -> None:
        for name in path[:-1]:
            checkpoint = checkpoint[name]
        del checkpoint[path[-1]]

    return change


def argument(name: str, value: Any, part: str = "head") -> Change:
    return put(value, "ldl", part, "init_args", name)


def label(name: str, value: Any) -> Change:
    return put(value, "ldl", "labels", name)


def endless(value: Any = 0) -> Any:
    """A list of lists of the same lists: 60 objects that unfold to 2^60."""
    for _ in range(60):
        value = [value, value]
    return value


def calibration(**changes: Any) -> Change:
    """A calibration of two rows, with other entries."""
    scores, weights = torch.tensor([0.2, 0.7]).double(), torch.ones(2).double()
    return put([{"score": scores, "weight": weights, "units": 2} | changes], "calibration")


CASES: list[tuple[str, str, Change, str]] = [
    # name, checkpoint, change, what the message says
    ("nothing", "ldlf", dict.clear, "no entry 'ldl'"),
    ("ldl is a list", "ldlf", put([], "ldl"), "ldl is a list, not a dict"),
    ("no head", "ldlf", drop("ldl", "head"), "no entry ldl.head"),
    ("no weights", "ldlf", drop("state_dict"), "no entry state_dict"),
    ("unknown decoder", "ldlf", put("mode", "ldl", "decoder"), "decoder .mode. must be one of"),
    ("temperature of text", "ldlf", put("hot", "ldl", "temperature"), "ldl.temperature is hot, not a number above 0"),
    ("temperature of NaN", "ldlf", put(float("nan"), "ldl", "temperature"), "ldl.temperature is nan, not"),
    ("input_shape of text", "ldlf", put(["6"], "ldl", "input_shape"), "ldl.input_shape is"),
    ("concentration below 0", "ldlf", put(-1.0, "ldl", "concentration"), "ldl.concentration is -1.0, not a number"),
    ("votes of a model below 0", "ldlf", put(-1.0, "ldl", "model_votes"), "ldl.model_votes is -1.0, not a number"),
    ("no temperature", "ldlf", put(None, "ldl", "temperature"), "ldl.temperature is None, not a number above"),
    ("another input_shape", "ldlf", put([7], "ldl", "input_shape"), r"head.split.0.weight has shape \(5, 6\), but"),
    ("global_step of text", "ldlf", put("many", "global_step"), "global_step is many, not a number of steps"),
    ("class path of a number", "ldlf", put(7, "ldl", "head", "class_path"), "ldl.head.class_path is 7, not a str"),
    ("relative class path", "ldlf", put(".heads.LDLF", "ldl", "head", "class_path"), "not the full path"),
    ("class of something else", "ldlf", put("os.system", "ldl", "head", "class_path"), "os.system, which is no Head"),
    ("no such class", "ldlf", put("ldl.heads.ldlf.LDL", "ldl", "head", "class_path"), "which is not imported"),
    ("arguments are a list", "ldlf", put([], "ldl", "head", "init_args"), "init_args is a list"),
    ("depth of text", "ldlf", argument("depth", "3"), "LDLF.depth '3' must be int"),
    ("unknown argument", "ldlf", argument("dept", 3), "do not fit"),
    ("a tensor for an argument", "ldlf", argument("depth", torch.ones(1)), "holds a Tensor"),
    ("trees without end", "ldlf", argument("trees", 10**9), "LDLF.trees 1000000000 must be in"),
    ("rectangles without end", "haar", argument("pool", 10**9, "backbone"), "Haar.pool 1000000000 must be in"),
    ("another network", "timm", argument("name", "resnet10t", "backbone"), "has more than the model: backbone.network"),
    ("no such network", "timm", argument("name", "resnet1e9", "backbone"), "timm has no model"),
    ("a folder of the file's choice", "timm", argument("options", {"cache_dir": "PWNED"}, "backbone"), "has 'cache_d"),
    ("weights of the file's choice", "timm", argument("options", {
        "pretrained_cfg_overlay": {"url": "http://localhost:9"},
    }, "backbone"), "has 'pretrained_cfg_overlay'.*; ldl passes on aa_layer, "),
    ("options with a dict", "timm", argument("options", {"act_layer": {"a": 1}}, "backbone"), "act_layer is {'a': 1}"),
    ("options with a path", "timm", argument("options", {"act_layer": "/etc"}, "backbone"), "act_layer is /etc; a num"),
    ("layers without end", "timm", argument("options", {"layers": [10**9]}, "backbone"), r"layers is \[1000000000\]"),
    ("networks of the hub", "timm", argument("name", "hf-hub:evil/net", "backbone"), "run: hf download evil/net con"),
    ("networks of the hub, hidden", "pixel_features", argument("name", "timm/hf_hub:evil/net@main", "backbone"),
     "contacts no server"),
    ("no repository of the hub", "timm", argument("name", "hf-hub:../../etc", "backbone"), "contacts no server"),
    ("a folder as network", "timm", argument("name", "local-dir:/tmp", "backbone"), "timm has no model"),
    ("optimisers without end", "softmax", put([{"state": {0: torch.ones(1).expand(2**40)}}], "optimizer_states"),
     "its tensors claim 4398046511"),
    ("lists without end", "ldlf", argument("hidden", endless()), "holds too many values"),
    ("another number of labels", "softmax", label("names", ["10", "20"]), "these are no labels"),
    ("labels without kind", "softmax", drop("ldl", "labels", "kind"), "these are no labels: 'kind'"),
    ("axes that fall", "softmax", label("axes", [[40.0, 30.0, 20.0, 10.0]]), "these are no labels"),
    ("a grid without end", "softmax", put({
        "kind": "grid", "names": ["a"], "axes": [list(range(10**4))] * 2, "unit": "", "axis_names": [], "cells": [1],
    }, "ldl", "labels"), "a grid of 100000000 points is too large"),
    ("weights missing", "softmax", drop("state_dict", "head.logits.0.bias"), "lacks head.logits.0.bias"),
    ("weights too many", "softmax", put(torch.ones(1), "state_dict", "more"), "has more than the model: more"),
    ("weights of another shape", "softmax", put(torch.ones(2), "state_dict", "head.logits.0.bias"), "has shape"),
    ("weights that are text", "softmax", put("a", "state_dict", "head.logits.0.bias"), "is no tensor"),
    ("weights that are complex", "maxent", put(torch.ones(4) * 1j, "state_dict", "head.bias"), "complex64 numbers"),
    ("weights without end", "aaknn", put(torch.ones(1).expand(2**40, 6), "state_dict", "head.points"), "claim"),
    ("sparse weights", "aaknn", put(torch.eye(6).to_sparse(), "state_dict", "head.points"), "is no tensor"),
    ("a calibration of text", "softmax", put("good", "calibration"), "its calibration must be a list of 1"),
    ("a calibration with more", "softmax", calibration(more=1), "must have score, weight and units, and nothing else"),
    ("scores that fall", "softmax", calibration(score=torch.tensor([0.7, 0.2]).double()), "at least 0 and rise"),
    ("scores below 0", "softmax", calibration(score=torch.tensor([-0.7, 0.2]).double()), "at least 0 and rise"),
    ("scores that are NaN", "softmax", calibration(score=torch.full((2,), torch.nan).double()), "that is not finite"),
    ("scores without end", "softmax", calibration(score=torch.zeros(1).double().expand(2**40)), "has 1099511627776 e"),
    ("fewer scores than weights", "softmax", calibration(score=torch.ones(1).double()), "has 1 scores and 2 weights"),
    ("units that are not there", "softmax", calibration(units=3), "weight must be above 0 and sum to its 3 units"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "words"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_changed_checkpoint_is_refused(name: str, change: Change, words: str, tmp_path: Path) -> None:
    checkpoint = torch.load(FOLDER / f"{name}.ckpt", weights_only=True)
    change(checkpoint)
    torch.save(checkpoint, file := tmp_path / f"{name}.ckpt")
    with pytest.raises(LDLError, match=words) as refused:
        Task.load_from_checkpoint(file)
    assert str(file) in str(refused.value) or name in ("softmax", "ldlf")
    assert len(str(refused.value)) < 700


GIANTS: list[tuple[str, str, Change, str]] = [
    ("a network", "timm", argument("name", "vit_giant_patch14_dinov2", "backbone"), "vit_giant_patch14_dinov2 doe"),
    ("another network", "timm", argument("name", "convnext_xxlarge", "backbone"), "its state_dict lacks backbone"),
    ("images of a network", "timm", put([3, 4_000, 4_000], "ldl", "input_shape"), ""),
    ("maps", "pixel_features", put([3, 4_000, 4_000], "ldl", "input_shape"), ""),
    ("images", "timm", put([3, 20_000, 20_000], "ldl", "input_shape"), "input_shape is [3, 20000, 20000], not the"),
    ("layers", "softmax", argument("hidden", [30_000, 30_000]), "its state_dict lacks head"),
    ("rows", "ldlf", put([2**26], "ldl", "input_shape"), "but the model's has (5, 67108864)"),
    ("weights", "maxent", put([2**26], "ldl", "input_shape"), "the model takes 1073741844 bytes, and its state_dict"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "words"), [pytest.param(*case[1:], id=case[0]) for case in GIANTS])
def test_shapes_are_compared_before_memory_is_taken(name: str, change: Change, words: str, tmp_path: Path) -> None:
    """What a model would take is counted where torch allocates it; the weights in the files have a few kilobytes."""
    checkpoint = torch.load(FOLDER / f"{name}.ckpt", weights_only=True)
    change(checkpoint)
    torch.save(checkpoint, file := tmp_path / "a.ckpt")
    with Largest() as largest:
        try:
            Task.load_from_checkpoint(file)
            message = ""
        except LDLError as error:
            message = str(error)
    assert words in message and bool(words) == bool(message)
    assert largest.bytes < 10**7


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            '{"architecture": "test_resnet", "num_classes": 1000000000, "pretrained_cfg": {}, '
            '"model_args": {"in_chans": 9}}',
            "",
        ),
        ('{"architecture": "test_resnet", "model_args": {"cache_dir": "PWNED"}}', "model_args has 'cache_dir'"),
        ('{"architecture": "test_resnet", "model_args": 3}', "describes no model of timm"),
        ("[]", "describes no model of timm"),
        (None, "its cache has no copy, and loading a checkpoint contacts no server"),
    ],
)
@pytest.mark.parametrize("name", ["timm", "pixel_features"])
def test_a_network_of_the_hub_is_made_from_its_cache(
    name: str, content: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("socket.socket.connect", lambda *arguments: pytest.fail("it contacted a server"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    checkpoint = torch.load(FOLDER / f"{name}.ckpt", weights_only=True)
    described = checkpoint["ldl"]["backbone"]["init_args"]
    if content is not None:
        repository = tmp_path / "hub" / "models--me--net"
        files = {"refs/main": "abc", "snapshots/abc/config.json": content.replace("test_resnet", described["name"])}
        for place, text in files.items():
            (repository / place).parent.mkdir(parents=True)
            (repository / place).write_text(text)
    described["name"] = "hf-hub:me/net"
    torch.save(checkpoint, file := tmp_path / "a.ckpt")
    if words:
        with pytest.raises(LDLError, match=words):
            Task.load_from_checkpoint(file)
    else:
        before, after = (Task.load_from_checkpoint(each).state_dict() for each in (FOLDER / f"{name}.ckpt", file))
        torch.testing.assert_close(after, before)
    assert not Path("PWNED").exists()


class Largest(TorchDispatchMode):
    """The largest tensor on the CPU that an operation returns."""

    bytes = 0

    def __torch_dispatch__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = call(*args, **(kwargs or {}))
        for tensor in found if isinstance(found, list | tuple) else [found]:
            if isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu":
                self.bytes = max(self.bytes, tensor.numel() * tensor.element_size())
        return found


class Evil:
    """Unpickling it runs a command."""

    def __reduce__(self) -> Any:
        import os

        return os.mkdir, ("PWNED",)


@pytest.mark.parametrize("content", ["nothing", "cut", "text", "pickle", "packed", "evil"])
def test_other_files_are_refused(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file, whole = tmp_path / "a.ckpt", (FOLDER / "softmax.ckpt").read_bytes()
    if content == "packed":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("archive/data/0", bytes(10**7))
    elif content == "evil":
        torch.save({"ldl": Evil()}, file)
    else:
        given = {"nothing": b"", "cut": whole[: len(whole) // 2], "text": b"weights", "pickle": pickle.dumps(Evil())}
        file.write_bytes(given[content])
    with pytest.raises(LDLError, match="give another file" if content == "packed" else "cannot be read as a"):
        read_checkpoint(file)
    assert not Path("PWNED").exists()


def test_a_checkpoint_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "downloaded_head.py").write_text("raise SystemError('it ran')")
    monkeypatch.syspath_prepend(str(tmp_path))
    checkpoint = torch.load(FOLDER / "softmax.ckpt", weights_only=True)
    checkpoint["ldl"]["head"]["class_path"] = "downloaded_head.Head"
    torch.save(checkpoint, tmp_path / "a.ckpt")
    with pytest.raises(LDLError, match="needs downloaded_head.Head, which is not imported; import its module first"):
        Task.load_from_checkpoint(tmp_path / "a.ckpt")
