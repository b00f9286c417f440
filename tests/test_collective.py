"""The collective over two gloo processes, and LDLF's ring handed from two processes to one and back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from ldl.batch import global_rows
from ldl.collective import Collective, TorchCollective, interleave
from ldl.errors import SharedError
from ldl.heads import LDLF
from ldl.labels import LabelSpace
from ldl.validation.finite import DeferredChecks

TOLERANCE = 1e-5


def _ring(head: LDLF, rank: int, world_size: int) -> list[tuple[Tensor, Tensor]]:
    """Fill the ring with this rank's share of three batches, the last of which leaves rank 1 of 2 without rows."""
    rng = torch.Generator().manual_seed(1)
    whole = []
    for rows in (5, 4, 1):
        features, target = torch.randn(rows, 3, generator=rng), torch.rand(rows, 4, generator=rng)
        head.observe(features[rank::world_size], target[rank::world_size])
        whole.append((features, target))
    return whole


def _head() -> LDLF:
    torch.manual_seed(0)
    head = LDLF(trees=2, depth=3, outputs=4, batches=7, routing="current")
    head.build(3, LabelSpace.nominal(list("abcd")))
    return head


def _assert_same_memory(one: dict[str, Tensor], two: dict[str, Tensor]) -> None:
    assert list(one) == list(two)
    for name, tensor in one.items():
        assert torch.equal(tensor, two[name]), name


def _check_collective(rank: int, rendezvous: str, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=2)
    collective = TorchCollective()
    assert (collective.rank, collective.world_size) == (rank, 2)
    mine = torch.tensor([1.0, 2.0]) * (rank + 1)
    assert collective.sum(mine).tolist() == [3.0, 6.0]
    assert mine.tolist() == [rank + 1.0, 2 * (rank + 1.0)]
    assert collective.broadcast(mine, source=1).tolist() == [2.0, 4.0]
    rows = torch.arange(14.0).reshape(7, 2)
    for count in (7, 2, 1, 0):
        parts = collective.gather(rows[:count][rank::2])
        assert [len(part) for part in parts] == [-(-count // 2), count // 2]
        assert torch.equal(interleave(parts), rows[:count])
    assert collective.gather(torch.zeros(rank, 3, dtype=torch.long))[1].dtype == torch.long

    # From two processes to one, and from one to two.
    head = _head()
    _ring(head, rank, 2)
    together = head.memory_state(collective)
    alone = torch.load(Path(folder) / "alone.pt", weights_only=True)
    _assert_same_memory(alone, together)
    other = _head()
    other.load_memory_state(alone, collective)
    for (kept, target), (kept_here, target_here) in zip(other._ring, head._ring, strict=True):
        assert torch.equal(kept, kept_here) and torch.equal(target, target_here)
    head.update(collective)
    other.update(collective)
    assert torch.equal(head.leaves, other.leaves)
    if rank == 0:
        torch.save({"leaves": head.leaves, "memory": together}, Path(folder) / "together.pt")
    _check_watch(rank, collective)
    # Beside a group of devices, numbers of the host go another way.
    dist.get_backend = lambda *group: "nccl"
    assert [collective.sum_numbers([rank, 2, True]) for _ in range(2)] == [[1, 4, 2]] * 2
    dist.destroy_process_group()


def _check_watch(rank: int, collective: Collective) -> None:
    """What went wrong in one share ends both processes, with its words, where a batch is counted or a model saved."""
    watch, here = DeferredChecks(), torch.device("cpu")
    batch = {"weight": torch.ones(3)}
    for wrong_rank in (0, 1):
        watch.note(torch.tensor(True), lambda: "nothing")
        assert global_rows(batch, here, collective, watch) == 6
        watch.check_finite(here, collective)
        for look in (lambda: global_rows(batch, here, collective, watch), lambda: watch.check_finite(here, collective)):
            watch.note(torch.tensor(True), lambda: "nothing")
            watch.note(torch.tensor(rank != wrong_rank), lambda: f"step of process {rank}")
            with pytest.raises(SharedError, match=f"^step of process {wrong_rank}$"):
                look()


def test_collective_and_ring_in_two_processes(tmp_path: Path) -> None:
    head = _head()
    whole = _ring(head, 0, 1)
    alone = head.memory_state(Collective())
    assert alone["rows"].tolist() == [5, 4, 1] and int(alone["observed"]) == 3
    assert torch.equal(alone["target"], torch.cat([target for _, target in whole]))
    torch.save(alone, tmp_path / "alone.pt")
    args = (str(tmp_path / "rendezvous"), str(tmp_path))
    torch.multiprocessing.start_processes(_check_collective, args, nprocs=2, start_method="fork")
    together = torch.load(tmp_path / "together.pt", weights_only=True)
    resumed = _head()
    resumed.load_memory_state(together["memory"], Collective())
    _assert_same_memory(alone, resumed.memory_state(Collective()))
    head.update(Collective())
    resumed.update(Collective())
    assert torch.equal(resumed.leaves, head.leaves)
    torch.testing.assert_close(together["leaves"], head.leaves, rtol=TOLERANCE, atol=TOLERANCE)


def test_interleave_is_the_inverse_of_dealing() -> None:
    for count in range(8):
        rows = torch.arange(count)
        for world_size in (1, 2, 3, 5):
            assert torch.equal(interleave([rows[rank::world_size] for rank in range(world_size)]), rows)
