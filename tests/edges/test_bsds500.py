"""BSDS500 on a small tree of its layout: parts, votes, random crops, and errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from fakes import edge_images

from ldl.data.sampler import Draw
from ldl.edges import BSDS500
from ldl.edges.crops import vote_share
from ldl.errors import LDLError


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return edge_images.bsds(tmp_path_factory.mktemp("bsds"))


def opened(tree: Path, **options: object) -> BSDS500:
    data = BSDS500(path=str(tree), **{"crop": 32, **options})
    data.setup()
    return data


def draw(data: BSDS500, row: int = 0, seed: int = 0) -> dict[str, torch.Tensor]:
    return data.dataset(data.split.train, train=True)[Draw(row, 1.0, seed)]


@pytest.mark.parametrize(("protocol", "parts"), [("development", ("train", "val")), ("final", ("train val", "test"))])
def test_parts_of_the_protocols(tree: Path, protocol: str, parts: tuple[str, str]) -> None:
    data = opened(tree, protocol=protocol)
    for rows, part in zip((data.split.train, data.split.test), parts):
        assert {data.names[row].partition("/")[0] for row in rows} == set(part.split())
    # Pictures have no groups that could be shared.
    assert not len(data.split.val) and data.leaky is False and data.leak is None


def test_a_set_without_validation_part(tmp_path: Path) -> None:
    """For example NYUD, which has a training and a test set."""
    tree = edge_images.bsds(tmp_path, {"train": 2, "test": 1}, shape=(60, 80))
    data = opened(tree, protocol="final")
    assert (len(data.split.train), len(data.split.test)) == (2, 1)


def test_the_target_is_the_share_of_annotators(tree: Path) -> None:
    data = opened(tree, tolerance=0)
    test = data.dataset(data.split.test, train=False)
    for row in range(2):
        instance = test[Draw(row, 1.0, 0)]
        truth = data.ground_truth(data.split.test[row])
        assert instance["input"].shape[1:] == truth.boundaries.shape[1:] and instance["input"].dtype == torch.uint8
        np.testing.assert_allclose(instance["target"][..., 1], truth.boundaries.mean(0), rtol=1e-6)
        np.testing.assert_allclose(instance["target"].sum(-1), 1)
        assert "keep" not in instance


def test_images_for_heads_fitted_on_images(tree: Path) -> None:
    """All training images, whole, one per batch, with the requested ground truth."""
    data = opened(tree)
    batches = list(data.image_dataloader(("segments", "boundaries")))
    assert [int(batch["index"]) for batch in batches] == data.split.train.tolist()
    for row, batch in zip(data.split.train, batches):
        picture, truth = data.read(row)
        np.testing.assert_array_equal(batch["input"][0].permute(1, 2, 0), picture)
        np.testing.assert_array_equal(batch["segments"][0], truth.segments)
        np.testing.assert_array_equal(batch["boundaries"][0], truth.boundaries)
        np.testing.assert_allclose(batch["target"][0, ..., 1], vote_share(truth.boundaries, 1.0))
    assert "segments" not in next(iter(data.image_dataloader()))
    with pytest.raises(LDLError, match="BSDS500 has no depth to learn from"):
        data.image_dataloader(("segments", "depth"))


@pytest.mark.parametrize("flips", [True, False])
def test_crops_move_picture_and_votes_together(tree: Path, flips: bool) -> None:
    """The rim lies where brightness changes, for any flip and rotation of the crop."""
    data = opened(tree, flips=flips, tolerance=1)
    seen = set()
    for seed in range(12):
        crop = draw(data, 0, seed)
        assert crop["input"].shape == (3, 32, 32) and crop["target"].shape == (32, 32, 2)
        brightness = crop["input"].float().mean(0)
        change = torch.zeros_like(brightness)
        change[1:-1] = (brightness[2:] - brightness[:-2]).abs()
        change[:, 1:-1] += (brightness[:, 2:] - brightness[:, :-2]).abs()
        voted = crop["target"][..., 1] > 0.5
        if voted.sum() > 10:
            assert change[voted].mean() > 5 * change[crop["target"][..., 1] == 0].mean()
        seen.add(crop["input"].numpy().tobytes())
    assert len(seen) == 12
    torch.testing.assert_close(draw(data, 0, 5), draw(data, 0, 5))


def test_negatives_balance_the_classes(tree: Path) -> None:
    shares = {}
    for negatives in (1.0, 3.0, None):
        data = opened(tree, negatives=negatives)
        kept = empty = 0
        for seed in range(20):
            crop = draw(data, 1, seed)
            edge = crop["target"][..., 1] > 0
            assert crop["keep"][edge].all()
            kept, empty = kept + int(edge.sum()), empty + int(crop["keep"][~edge].sum())
            if negatives is None:
                assert crop["keep"].all()
        shares[negatives] = empty / kept
    assert shares[1.0] == pytest.approx(1, rel=0.2) and shares[3.0] == pytest.approx(3, rel=0.2)


def test_consensus_learns_only_from_clear_pixels(tree: Path) -> None:
    votes = opened(tree, tolerance=0, negatives=None)
    consensus = opened(tree, tolerance=0, negatives=None, target="consensus")
    unclear = 0
    for seed in range(10):
        share, crop = draw(votes, 0, seed)["target"][..., 1], draw(consensus, 0, seed)
        np.testing.assert_array_equal(crop["target"][..., 1], share >= 0.5)
        np.testing.assert_array_equal(crop["keep"], (share == 0) | (share >= 0.5))
        unclear += int((~crop["keep"]).sum())
    assert unclear
    # The test target is always the share of annotators.
    target = consensus.dataset(consensus.split.test, train=False)[Draw(0, 1.0, 0)]["target"][..., 1]
    assert ((target > 0) & (target < 0.5)).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": (1.5, 0.5)}, r"BSDS500.sizes \[1.5, 0.5\] must be two factors, the smaller first"),
        ({"path": "nowhere"}, r"no BSDS500 at .*nowhere: it lies as .*BIDS/BSDS500 \(non-commercial"),
    ],
)
def test_bad_options_are_named(tree: Path, options: dict, message: str) -> None:
    with pytest.raises(LDLError, match=message):
        opened(options.pop("path", tree), **options)


def test_files_that_do_not_fit_are_named(tmp_path: Path) -> None:
    tree = edge_images.bsds(tmp_path)
    with pytest.raises(LDLError, match="1001.jpg has 48x64 pixels, less than data.crop 64"):
        draw(opened(tree, crop=64))
    edge_images.write_truth(tree / "groundTruth/train/1002.mat", [np.eye(5, 6)])
    with pytest.raises(LDLError, match="1002.jpg and its ground truth differ in size, 64x48 and 5x6"):
        draw(opened(tree), 1)
    (tree / "images/val/1005.png").touch()
    with pytest.raises(LDLError, match="part val: the image is there twice: 1005"):
        opened(tree)
    (tree / "images/val/1005.png").unlink()
    (tree / "groundTruth/val/1005.mat").unlink()
    with pytest.raises(LDLError, match="part val: the image has no ground truth: 1005"):
        opened(tree)
    (tree / "images/train/1001.jpg").unlink()
    with pytest.raises(LDLError, match="part train: the ground truth has no image: 1001"):
        opened(tree)


def test_the_release(ldl_data: Path) -> None:
    if not (ldl_data / "BSDS500").is_dir():
        pytest.skip("LDL_DATA has no BSDS500")
    data = BSDS500(root=str(ldl_data), protocol="final")
    data.setup()
    assert (len(data.split.train), len(data.split.test)) == (300, 200)
    assert {len(data.ground_truth(row).boundaries) for row in data.split.test[::20]} <= set(range(4, 10))
