"""Patches that leaves keep, and their weights, against plain references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from fakes import edge_images
from fakes.process_pairs import First, Second
from threadpoolctl import threadpool_limits

from ldl.collective import Collective
from ldl.edges import StructuredEdges
from ldl.edges.bsds500 import BSDS500
from ldl.edges.structured import neighbours
from ldl.edges.structured.channels import CHANNELS, LABEL, PATCH, SIDE, blur
from ldl.edges.structured.forest import EdgeForest, forest_of
from ldl.edges.structured.growing import PatchTree
from ldl.edges.structured.neighbours import PatchNeighbours, describe_all, keep, label_codes, learn_descriptor
from ldl.edges.structured.patches import Patches, Scene, make_scene
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.methods.dsna.weights import NeighbourWeighting, neighbour_weights

CPU = torch.device("cpu")
MAPS = np.random.default_rng(0).random((26, 18, 19)).astype(np.float32)
RULES = NeighbourWeighting(*(getattr(StructuredEdges(), name) for name in NeighbourWeighting._fields))


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> list[Scene]:
    folder = edge_images.bsds(tmp_path_factory.mktemp("edges"), {"train": 3, "val": 1}, (96, 120))
    data = BSDS500(path=str(folder), crop=PATCH)
    data.setup()
    read = [data.read(row) for row in data.split.train]
    return [make_scene(image, truth.boundaries, truth.segments) for image, truth in read]


def head(**options: Any) -> StructuredEdges:
    made = StructuredEdges(**{"trees": 4, "votes": 2, "patches": 300, "seed": 0, **options})
    made.build(3, LabelSpace.nominal(["no edge", "edge"]))
    return made


def fitted(scenes: list[Scene], **options: Any) -> StructuredEdges:
    made = head(**options)
    made.fit_scenes(scenes, Collective())
    return made


def with_forest(forest: EdgeForest, **options: Any) -> StructuredEdges:
    made = head(**options)
    made.load_state_dict({name: torch.from_numpy(array) for name, array in forest.arrays().items()})
    return made


@pytest.fixture(scope="module")
def grown(scenes: list[Scene]) -> StructuredEdges:
    return fitted(scenes, patches=400, kept=6, components=12, dsna=True)


@pytest.fixture(scope="module")
def forest(grown: StructuredEdges) -> EdgeForest:
    return grown.forest


def picture(size: int = 70) -> torch.Tensor:
    random = np.random.default_rng(3)
    blocks = random.integers(0, 256, (size // 10, size // 10, 3), dtype=np.uint8).repeat(10, 0).repeat(10, 1)
    return torch.from_numpy(blocks).permute(2, 0, 1)[None]


def edges(head: StructuredEdges) -> np.ndarray:
    return head(picture())[0, ..., 1].numpy()


@pytest.mark.slow
def test_descriptors_are_the_principal_components_of_channel_values(scenes: list[Scene]) -> None:
    values = np.concatenate(
        [
            scene.maps[:CHANNELS, y : y + SIDE, x : x + SIDE].reshape(1, CHANNELS, -1)
            for scene in scenes
            for y in range(0, scene.maps.shape[1] - SIDE + 1, 2)
            for x in range(0, scene.maps.shape[2] - SIDE + 1, 2)
        ]
    )
    centred = values - values.mean(0)
    scaled = (centred / np.sqrt(np.square(centred).mean((0, 2)))[:, None]).reshape(len(values), -1)
    left, sizes, _ = np.linalg.svd(scaled, full_matrices=False)
    wanted = left[:, :10] * sizes[:10]
    kernel, bias = learn_descriptor(scenes, 10, 0, CPU, Collective())
    described = torch.cat([describe_all(scene.maps, kernel, bias)[::2, ::2].reshape(-1, 10) for scene in scenes])
    assert float(described.square().sum(1).mean()) == pytest.approx(1, rel=0.1)
    # Compare distances, because signs and order of components are arbitrary.
    pairs = np.random.default_rng(0).integers(0, len(values), (2, 200))
    ours = np.linalg.norm(described[pairs[0]] - described[pairs[1]], axis=1)
    theirs = np.linalg.norm(wanted[pairs[0]] - wanted[pairs[1]], axis=1) / np.sqrt(np.square(wanted).sum(1).mean())
    assert np.corrcoef(ours, theirs)[0, 1] > 0.99
    np.testing.assert_allclose(ours.mean(), theirs.mean(), rtol=0.05)


def test_processes_compare_by_the_components_of_the_first(scenes: list[Scene], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "DESCRIPTOR_SAMPLE", 200)
    first = First()
    wanted = learn_descriptor(scenes, 4, 0, CPU, first)
    # On another machine the last bits differ; here the seed differs.
    received = learn_descriptor(scenes, 4, 1, CPU, Second(first.said))
    assert [np.array_equal(*pair) for pair in zip(received, wanted)] == [True, True]


def test_threads_change_no_bit_of_a_forest(scenes: list[Scene], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "DESCRIPTOR_SAMPLE", 2000)
    states = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            states.append(fitted(scenes, kept=6, components=12, trees=2, threads=threads).state_dict())
    assert [name for name in states[0] if not torch.equal(states[0][name], states[1][name])] == []


def test_leaves_keep_their_own_patches_and_no_more_than_wanted(scenes: list[Scene]) -> None:
    random = np.random.default_rng(0)
    start, rows = np.array([0, 3, 13, 20]), random.permutation(20).astype(np.int32)
    none = np.zeros(0, np.int32)
    tree = PatchTree(none, none, none, none, none, start, rows)
    limits = [np.array(scene.maps.shape[1:]) - SIDE + 1 for scene in scenes]
    numbers = random.integers(0, len(scenes), 20)
    places = np.stack([[number, *random.integers(0, limits[number])] for number in numbers]).astype(np.int32)
    half = np.repeat([0, 1], 128).astype(np.uint8)
    segments = np.stack([np.roll(half, 16 * shift) for shift in range(20)])
    descriptor = learn_descriptor(scenes, 8, 0, CPU, Collective())
    patches = Patches(np.zeros((0, 20), np.uint8), segments, places)
    sizes, _, points = keep(scenes, patches, tree, descriptor, 5, random)
    assert sizes.tolist() == [3, 5, 5]
    ends = sizes.cumsum()
    described = [describe_all(scene.maps, *descriptor).numpy() for scene in scenes]
    for leaf in range(3):
        members = {
            row: described[places[row, 0]][tuple(places[row, 1:])] for row in rows[start[leaf] : start[leaf + 1]]
        }
        kept_rows = []
        for at in range(ends[leaf] - sizes[leaf], ends[leaf]):
            row = min(members, key=lambda row: np.abs(members[row] - points[at]).max())
            np.testing.assert_allclose(points[at], members[row], atol=1e-4)
            kept_rows.append(row)
        assert len(set(kept_rows)) == len(kept_rows)


@pytest.mark.slow
def test_labels_are_the_leading_components_of_blurred_edges(forest: EdgeForest) -> None:
    assert forest.kept is not None
    segments = forest.kept.segments[:300].reshape(-1, LABEL, LABEL)
    edges = np.zeros(segments.shape, np.float32)
    # An edge is on both sides of a boundary.
    for axis in (1, 2):
        ahead, behind = (np.take(segments, range(*ends), axis) for ends in ((1, LABEL), (0, LABEL - 1)))
        differ = ahead != behind
        edges += np.pad(differ, [(0, 0)] + [(1, 0) if a == axis else (0, 0) for a in (1, 2)])
        edges += np.pad(differ, [(0, 0)] + [(0, 1) if a == axis else (0, 0) for a in (1, 2)])
    blurred = blur((edges > 0).astype(np.float32), 2).reshape(len(segments), -1)
    left, sizes, _ = np.linalg.svd(blurred - blurred.mean(0), full_matrices=False)
    wanted = left[:, :8] * sizes[:8]
    codes = label_codes(forest.kept.segments[:300]).numpy()
    assert codes.shape == (len(segments), 8)
    assert np.square(codes).sum(1).mean() == pytest.approx(1, rel=1e-4)
    np.testing.assert_allclose(codes @ codes.T, wanted @ wanted.T / np.square(wanted).sum(1).mean(), atol=2e-3)


def test_weights_are_those_of_dsna(forest: EdgeForest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "PATCHES_AT_ONCE", 5)
    kept = forest.kept
    assert kept is not None
    settings = StructuredEdges(clusters=2, rounds=2, tolerance=1e-6)
    rules = NeighbourWeighting(*(getattr(settings, name) for name in NeighbourWeighting._fields))
    weighted = PatchNeighbours(kept, rules, threads=2)
    random = np.random.default_rng(0)
    maps = random.random((26, 18, 19)).astype(np.float32)
    leaves = random.integers(0, len(forest.segments), (3, 4, 2)).astype(np.int32)
    voters, weights = weighted.weigh(leaves, maps)
    queries = describe_all(maps, kept.kernel, kept.bias)
    for row, column in np.ndindex(3, 4):
        near = np.concatenate([np.arange(kept.start[leaf], kept.start[leaf + 1]) for leaf in leaves[row, column]])
        used = weights[row, column] != 0
        if not kept.segments[near].any():
            assert not used.any()
            continue
        assert set(voters[row, column][used]) <= set(near.tolist())
        assert weights[row, column].sum() == pytest.approx(1, abs=1e-4)
        points, codes = torch.from_numpy(kept.points[near])[None], label_codes(kept.segments)[near][None]
        real = torch.ones(1, len(near), dtype=torch.bool)
        alone, _ = neighbour_weights(points, codes, real, queries[row, column][None], None, rules, True, 1e-3)
        wanted = dict.fromkeys(near.tolist(), 0.0)
        for patch, weight in zip(near.tolist(), alone[0].tolist()):
            wanted[patch] += weight
        for patch in wanted:
            share = weights[row, column][(voters[row, column] == patch) & used].sum()
            assert share == pytest.approx(wanted[patch], abs=2e-3)


@pytest.mark.slow
def test_options_may_change_after_a_prediction(forest: EdgeForest) -> None:
    kept, changed = {"kept": 6, "components": 12}, {"mirror": True, "dsna": True, "blend": 0.5}
    made, before = with_forest(forest, **kept), edges(with_forest(forest, **kept))
    np.testing.assert_array_equal(edges(made), before)
    for name, value in changed.items():
        setattr(made, name, value)
    after = edges(made)
    assert not np.array_equal(after, before)
    np.testing.assert_array_equal(after, edges(with_forest(forest, **kept, **changed)))


def test_a_blend_has_its_share_of_both_votes(forest: EdgeForest) -> None:
    options = {"patches": 400, "kept": 6, "components": 12, "gain": 0.2}
    equal, dsna, mixed = (edges(with_forest(forest, **options, dsna=True, blend=blend)) for blend in (0, 1, 0.3))
    # Negative votes are cut off, which the others may make up for.
    inside = dsna > 0
    assert inside.mean() > 0.3 and np.abs(equal - dsna).max() > 0.01
    np.testing.assert_allclose(mixed[inside], (0.3 * dsna + 0.7 * equal)[inside], atol=1e-5)
    # One patch a leaf, however many the others keep, has as much as its tree.
    kept = forest.kept
    assert kept is not None
    near, weights = PatchNeighbours(kept, RULES, blend=0).weigh(np.arange(4, dtype=np.int32).reshape(1, 1, 4), MAPS)
    sizes = np.diff(kept.start[:5])
    if kept.segments[: kept.start[4]].any():
        np.testing.assert_allclose(weights[0, 0, : sizes.sum()], np.repeat(1 / (4 * sizes), sizes), rtol=1e-6)
        np.testing.assert_array_equal(near[0, 0, : sizes.sum()], np.arange(kept.start[4]))


def test_edges_are_in_range_and_a_loaded_head_finds_the_same(grown: StructuredEdges) -> None:
    options = {"patches": 400, "kept": 6, "components": 12, "dsna": True}
    other = head(**options)
    # As safetensors needs it.
    assert all(tensor.is_contiguous() for tensor in grown.state_dict().values())
    assert edges(other).max() == 0
    other.load_state_dict(grown.state_dict())
    one, two = edges(grown), edges(other)
    np.testing.assert_array_equal(one, two)
    assert one.shape == (70, 70)
    assert 0 <= one.min() < one.max() <= 1
    again = forest_of(grown.forest.arrays())
    np.testing.assert_array_equal(edges(with_forest(again, **options)), one)


def test_precision_and_threads_of_the_run_change_no_bit(grown: StructuredEdges) -> None:
    other = head(patches=400, kept=6, components=12, dsna=True, threads=3)
    other.load_state_dict(grown.state_dict())
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    # As Lightning does for --trainer.precision 64-true.
    torch.set_default_dtype(torch.float64)
    detected = edges(other.double())
    torch.set_default_dtype(torch.float32)
    assert torch.get_num_threads() == 2 and detected.dtype == np.float32
    torch.set_num_threads(before)
    np.testing.assert_array_equal(detected, edges(grown))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"votes": 9}, "StructuredEdges.votes 9 must be in 1..4"),
        ({"scales": ()}, r"StructuredEdges.scales \[\] must be one or more numbers"),
        ({"dsna": True}, "set StructuredEdges.kept to their number per leaf"),
    ],
)
def test_options_that_do_not_fit_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        head(**options)
