"""Crisp targets: against loops in float64, by hand, and in a training step."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from fakes import edge_images
from torch import Tensor

from ldl.backbones import Backbone, Identity
from ldl.edges import BSDS500, PixelFeatures, StructuredEdges
from ldl.edges.benchmark.thinning import suppress
from ldl.edges.tracing import trace
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import LDLF, MSLP, Softmax
from ldl.labels import LabelSpace
from ldl.metrics.functional import kl
from ldl.task import Task

LABELS = LabelSpace.nominal(["no edge", "edge"])
SMALL = {"name": "mobilenetv2_050", "pretrained": False, "width": 4}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return edge_images.bsds(tmp_path_factory.mktemp("bsds"))


def fit(task: Task, data: BSDS500) -> None:
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    pl.Trainer(max_epochs=1, accelerator="cpu", enable_model_summary=False, **quiet).fit(task, datamodule=data)


class Given(torch.nn.Module):
    """A head whose prediction is the features."""

    def forward(self, features: Tensor) -> Tensor:
        return features


def votes(share: np.ndarray) -> Tensor:
    return torch.from_numpy(np.stack([1 - share, share], -1))


def reference(prediction: Tensor, target: Tensor, reach: float) -> Tensor:
    """Trace pixel by pixel and ridge by ridge."""
    traced = target.double().clone()
    for image, strength in enumerate(1 - prediction[..., 0].numpy()):
        ridges = np.argwhere(suppress(strength, border=0) > 0)
        for pixel in np.ndindex(*strength.shape):
            squared = ((ridges - pixel) ** 2).sum(1)
            if len(squared) and 0 < squared.min() <= reach**2:
                traced[(image, *pixel)] = torch.tensor([1.0, *[0.0] * (target.shape[-1] - 1)])
    return traced


@pytest.mark.parametrize("reach", [1.5, 3.0])
@pytest.mark.parametrize("labels", [2, 3])
def test_every_pixel_by_itself(reach: float, labels: int) -> None:
    generator = torch.Generator().manual_seed(0)
    prediction, target = (
        torch.rand(2, 13, 17, labels, generator=generator, dtype=torch.float64).pow(4).softmax(-1) for _ in range(2)
    )
    prediction[1, 5:] = torch.eye(labels)[0].double()
    traced = trace(Given(), prediction, target, reach)  # type: ignore[arg-type]
    torch.testing.assert_close(traced, reference(prediction, target, reach))
    assert 0 < (traced != target).any(-1).float().mean() < 1


@pytest.mark.parametrize("head", [Softmax(), LDLF(trees=2, depth=3, outputs=4, batches=2)])
def test_a_step_learns_the_traced_votes(head: Softmax | LDLF) -> None:
    torch.manual_seed(0)
    task = Task(head, PixelFeatures(**SMALL), check_finite=False)
    task.log = lambda *_, **__: None  # type: ignore[method-assign]
    task._trainer = SimpleNamespace(datamodule=BSDS500(crisp=2), callback_metrics={})  # type: ignore[assignment]
    task.build(LABELS, (3, 32, 32))
    if isinstance(head, LDLF):
        # Leaves are uniform, and prediction flat, before their first update.
        head.leaves.copy_(torch.rand_like(head.leaves).mul(9).softmax(-1))
        torch.nn.init.normal_(next(head.split.parameters()), std=9)
    target = votes(np.random.default_rng(0).random((2, 32, 32)).astype(np.float32))
    batch = {
        "input": torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8),
        "target": target,
        "keep": target[..., 1] > 0.3,
        "index": torch.arange(2),
        "weight": torch.tensor([1.0, 0.0]),
    }
    measured = task.training_step(batch, 0)["loss"]
    features = task.features({"input": batch["input"][:1]})
    traced = reference(head(features).detach().float(), target[:1], 2)
    assert not torch.equal(traced, target[:1].double())
    # Padding and left-out pixels do not count; the gradient is that of the head's loss.
    kept = batch["keep"][:1]
    whole = kl(head(features)[kept], traced[kept]).mean() if isinstance(head, Softmax) else None
    expected = head.loss(features[kept], traced[kept].float())["loss"] if whole is None else whole
    torch.testing.assert_close(measured.double(), expected.double())
    parameter = next(task.head.parameters())
    one, other = (torch.autograd.grad(loss, parameter, retain_graph=True)[0] for loss in (measured, expected))
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("head", "backbone", "crisp", "message"),
    [
        (Softmax(), PixelFeatures(**SMALL), 11, "BSDS500.crisp 11 must be in 0..10, pixels"),
        (Softmax(), PixelFeatures(**SMALL), float("nan"), "BSDS500.crisp nan must be"),
        (
            Softmax(),
            Identity(flatten=True),
            2,
            "data.crisp 2 is for heads that learn by gradient .* set it to 0",
        ),
        (MSLP(), PixelFeatures(**SMALL), 2, "data.crisp 2 is for heads that learn by gradient .* set it to 0"),
        (StructuredEdges(), None, 2, "data.crisp 2 is for heads that learn by gradient .* set it to 0"),
    ],
)
def test_settings_that_cannot_be_traced_are_named(
    head: Head, backbone: Backbone | None, crisp: float, message: str, tree: Path
) -> None:
    with pytest.raises(LDLError, match=message):
        fit(Task(head, backbone), BSDS500(path=str(tree), crop=32, crisp=crisp))
