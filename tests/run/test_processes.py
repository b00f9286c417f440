"""Which process a machine's is, before there is a trainer."""

from __future__ import annotations

import pytest
from pytorch_lightning.utilities import rank_zero_only

from ldl.collective import process_rank
from ldl.command.command_line import parse_anew


@pytest.mark.parametrize(
    ("nodes", "environment", "rank"),
    [
        (2, {"NODE_RANK": "1"}, 1),
        (2, {"NODE_RANK": "0"}, 0),
        (2, {"NODE_RANK": "1", "SLURM_PROCID": "0"}, 0),
        # Some clusters number machines that work by themselves.
        (1, {"NODE_RANK": "1"}, 0),
    ],
)
def test_a_machine_that_is_started_by_hand_is_not_the_first(
    nodes: int, environment: dict[str, str], rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_zero_only, "rank", 0)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    parse_anew(["--model.head", "Softmax", "--data", "RotatedDigits", "--trainer.num_nodes", str(nodes)])
    assert process_rank() == rank
