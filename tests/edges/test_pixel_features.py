"""Features at every pixel: images of any size, any head, averages in evaluation, frozen statistics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ldl.batch import learned_pixels
from ldl.edges import pixel_features
from ldl.edges.crops import learned
from ldl.edges.pixel_features import PixelFeatures
from ldl.errors import LDLError
from ldl.heads import LDLF, Softmax
from ldl.labels import LabelSpace
from ldl.task import Task

LABELS = LabelSpace.nominal(["no edge", "edge"])


SMALL = {"name": "mobilenetv2_050", "pretrained": False, "width": 8}


def built(**options: object) -> PixelFeatures:
    torch.manual_seed(0)
    backbone = PixelFeatures(**{**SMALL, **options})
    assert backbone.build((3, 64, 64)) == 8
    return backbone.eval()


@torch.no_grad()
@pytest.mark.parametrize("scales", [(1.0,), (0.5, 1.0)])
def test_features_change_where_the_image_does(scales: tuple[float, ...]) -> None:
    """Height and width need not be multiples of the coarsest cell."""
    pixel, backbone = (101, 63), built(scales=scales)
    plain = torch.zeros(1, 3, 161, 173)
    spot = plain.clone()
    spot[..., pixel[0] - 3 : pixel[0] + 4, pixel[1] - 3 : pixel[1] + 4] = 3
    change = (backbone(spot) - backbone(plain)).square().sum(-1)[0]
    assert divmod(int(change.argmax()), 173) == pytest.approx(pixel, abs=4)


def test_scales_and_mirror_images_are_averaged_in_evaluation_only() -> None:
    one, two, both = (built(scales=scales) for scales in ((1.0,), (0.5,), (0.5, 1.0)))
    mirrored, image = built(scales=(0.5, 1.0), mirror=True), torch.randn(1, 3, 61, 83)
    plain, average = one(image), both(image)
    assert average.shape == (1, 61, 83, 8)
    torch.testing.assert_close(average, (plain + two(image)) / 2)
    torch.testing.assert_close(mirrored(image), (average + both(image.flip(-1)).flip(-2)) / 2)
    torch.testing.assert_close(built(enlarge=1.5, scales=(0.5, 1.0))(image), built(scales=(0.75, 1.5))(image))
    for backbone in (both, mirrored):
        torch.testing.assert_close(backbone.train()(image), plain)


@pytest.mark.parametrize("options", [{"scales": (0.5, 1.0), "mirror": True}, {"enlarge": 1.5}])
def test_a_margin_is_what_the_image_reflects(options: dict[str, object]) -> None:
    """The margin is used in evaluation and cropped again."""
    image = torch.randint(0, 256, (2, 3, 61, 83), dtype=torch.uint8)
    y, x = (np.abs(np.arange(-9, side + 9)) for side in (61, 83))
    wider = image[:, :, np.minimum(y, 120 - y)][..., np.minimum(x, 164 - x)]
    plain, reflected = built(**options), built(**options, margin=9)
    torch.testing.assert_close(reflected(image), plain(wider)[:, 9:-9, 9:-9])
    torch.testing.assert_close(reflected.train()(image), plain.train()(image))


def test_a_margin_beyond_the_image_is_named() -> None:
    assert built(margin=20)(torch.zeros(1, 3, 21, 50)).shape == (1, 21, 50, 8)
    with pytest.raises(LDLError, match=r"margin 20 must be below .* 50x20 pixels; give --model.backbone.margin 19"):
        built(margin=20)(torch.zeros(1, 3, 20, 50))


def test_only_the_pretrained_network_has_the_rate_of_the_backbone() -> None:
    """The layers that join its maps are new, like the head."""
    task = Task(Softmax(), PixelFeatures(**SMALL, lr=1e-5), lambda groups: torch.optim.SGD(groups, lr=0.1))
    task.build(LABELS, (3, 64, 64))
    rates = {id(p): group["lr"] for group in task.configure_optimizers().param_groups for p in group["params"]}
    assert rates == {id(p): 1e-5 if "network" in name else 0.1 for name, p in task.named_parameters()}


def test_statistics_are_frozen_by_default() -> None:
    image = torch.randn(2, 3, 64, 64)
    for fixed in (True, False):
        backbone = built(freeze_statistics=fixed).train()
        before = backbone.network.bn1.running_mean.clone()
        backbone(image)
        assert torch.equal(backbone.network.bn1.running_mean, before) == fixed


@pytest.mark.parametrize("head", [Softmax(), LDLF(trees=2, depth=3, outputs=4, batches=2, buffer_rows=100)])
def test_any_head_learns_from_chosen_pixels(head: Softmax | LDLF) -> None:
    """The loss is that of the pixels to keep, whatever the target of the others."""
    task = Task(head, PixelFeatures(**SMALL))
    task.build(LABELS, (3, 64, 64))
    images = torch.randint(0, 256, (2, 3, 40, 40), dtype=torch.uint8)
    share = torch.rand(2, 40, 40)
    keep = torch.rand(2, 40, 40) < 0.3
    losses = []
    for change in (0.0, 0.5):
        edge = torch.where(keep, share, (share + change) % 1)
        batch = {
            "input": images,
            "target": torch.stack([1 - edge, edge], -1),
            "keep": keep,
            "weight": torch.ones(2),
            "index": torch.arange(2),
        }
        task.log = lambda *arguments, **options: None  # there is no trainer
        output = task.training_step(batch, 0)
        remembered = (2, 4) if isinstance(head, LDLF) else (8,)
        assert output["memory"].shape == (int(keep.sum()), *remembered)
        assert output["target"].shape == (int(keep.sum()), 2)
        losses.append(output["loss"])
        output["loss"].backward()
    assert losses[0] == losses[1]
    assert task(images).shape == (2, 40, 40, 2)
    torch.testing.assert_close(task(images).sum(-1), torch.ones(2, 40, 40))


@pytest.mark.parametrize("head", [Softmax(), LDLF(trees=2, depth=3, outputs=4, batches=2, buffer_rows=100)])
def test_a_batch_without_a_pixel_to_learn_from_changes_nothing(head: Softmax | LDLF) -> None:
    """For example crops without an edge or ground pixel of the target ``consensus``."""
    task = Task(head, PixelFeatures(**SMALL))
    task.build(LABELS, (3, 64, 64))
    task.log = lambda *arguments, **options: None  # there is no trainer
    share, keep = np.full((2, 32, 32), 0.3, np.float32), np.zeros((2, 32, 32), bool)
    for image in range(2):
        share[image], keep[image] = learned(share[image], "consensus", 2.0, np.random.default_rng(0))
    assert not keep.any()
    batch = {
        "input": torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8),
        "target": torch.from_numpy(np.stack([1 - share, share], -1)),
        "keep": torch.from_numpy(keep),
        "weight": torch.ones(2),
        "index": torch.arange(2),
    }
    output = task.training_step(batch, 0)
    assert output["loss"] == 0 and len(output["memory"]) == len(output["target"]) == 0
    output["loss"].backward()
    assert all(not p.grad.any() for p in task.parameters() if p.grad is not None)


def test_pretrained_weights_are_taken_from_a_file(ldl_data: Path) -> None:
    if not list((ldl_data.parent / "weights").glob("mobilenetv2_100*")):
        pytest.skip("no weights of mobilenetv2_100 beside LDL_DATA")
    import safetensors.torch

    file = next((ldl_data.parent / "weights").glob("mobilenetv2_100*"))
    backbone = PixelFeatures(pretrained=True)
    backbone.build((3, 64, 64))
    saved = safetensors.torch.load_file(file)
    for name, value in backbone.network.state_dict().items():
        if not name.endswith("num_batches_tracked"):
            torch.testing.assert_close(value, saved[name])


@pytest.mark.parametrize(
    ("options", "shape", "message"),
    [
        ({"side_outputs": 5}, (3, 64, 64), "PixelFeatures.side_outputs 5 must be in 0..4: mobilenetv2_050 has 5 maps"),
        ({"fold": True, "freeze_statistics": False}, (3, 64, 64), "PixelFeatures.fold folds frozen statistics"),
        *(
            ({"name": name}, (3, 64, 64), f"^PixelFeatures.name '{name}' takes no images of any size.*; take a conv")
            for name in ("vit_tiny_patch16_224",)
        ),
        ({"scales": (0.0,)}, (3, 64, 64), r"PixelFeatures.scales \(0.0,\) must be in 0.05..20"),
    ],
)
def test_bad_options_are_named(options: dict, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        PixelFeatures(**{**SMALL, **options}).build(shape)


def test_folded_statistics_change_neither_maps_nor_gradients() -> None:
    plain, folded = (built(name="test_resnet", fold=fold).double() for fold in (False, True))
    torch.manual_seed(1)
    for one in plain.modules():
        if isinstance(one, torch.nn.BatchNorm2d):
            for tensor in (one.running_mean, one.running_var, one.weight, one.bias):
                tensor.data.copy_(torch.rand_like(tensor) + 0.5)
    folded.load_state_dict(plain.state_dict())
    image = torch.randn(2, 3, 64, 96, dtype=torch.float64)
    for backbone in (plain.train(), folded.train()):
        backbone(image).square().mean().backward()
    torch.testing.assert_close(folded(image), plain(image))
    gradients = [{n: p.grad for n, p in one.named_parameters() if p.grad is not None} for one in (plain, folded)]
    torch.testing.assert_close(*gradients)


def test_side_outputs_are_learned_from_as_the_finest_map_is() -> None:
    backbone, head = built(side_outputs=2).train(), Softmax()
    head.build(8, LABELS)
    images, share, keep = torch.randn(2, 3, 64, 64), torch.rand(2, 64, 64), torch.rand(2, 64, 64) < 0.3
    batch = {"target": torch.stack([1 - share, share], -1), "keep": keep, "kept": keep.flatten().nonzero().flatten()}
    maps = backbone(images)
    assert maps.shape == (2, 3, 64, 64, 8) and backbone.eval()(images).shape == (2, 64, 64, 8)
    torch.testing.assert_close(maps[:, 0], backbone(images))
    losses = [head.loss(maps[:, output][keep], batch["target"][keep])["loss"] for output in range(3)]
    torch.testing.assert_close(
        head.loss(*learned_pixels(maps, batch["target"], batch))["loss"], torch.stack(losses).mean()
    )
    assert len({loss.item() for loss in losses}) == 3


def test_sizes_in_a_graph_are_those_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph of a network at several sizes takes long to record; its arithmetic is that of whole numbers."""
    for scale in (0.25, 0.5, 0.75, 1.25, 1.5, 2.0):
        monkeypatch.setattr(pixel_features, "traced", lambda: False)
        expected = [pixel_features._scaled(length, scale) for length in range(1, 200)]
        monkeypatch.setattr(pixel_features, "traced", lambda: True)
        assert [pixel_features._scaled(length, scale) for length in range(1, 200)] == expected
