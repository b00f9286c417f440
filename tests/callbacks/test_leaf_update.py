"""The recent samples of an alternating head: where a fit takes them from."""

from __future__ import annotations

from typing import Any

from checkpoints.make import Problem, sgd, train

from ldl.callbacks import LeafUpdate
from ldl.heads import LDLF
from ldl.task import Task


def test_saved_samples_go_to_the_device_that_trains() -> None:
    task, callback = Task(LDLF(trees=2, depth=2, batches=3), None, sgd), LeafUpdate()
    trainer = train(task, Problem("rows"), 1)
    checkpoint: dict[str, Any] = {}
    callback.on_save_checkpoint(trainer, task, checkpoint)
    callback.on_load_checkpoint(trainer, task, checkpoint)
    callback.on_fit_start(trainer, task.to("meta"))
    assert {part.device.type for batch in task.head._ring for part in batch} == {"meta"}


def test_a_second_fit_begins_without_samples() -> None:
    task, data = Task(LDLF(trees=2, depth=2, batches=3), None, sgd), Problem("rows")
    held = []
    for _ in range(2):
        train(task, data, 1)
        held.append((len(task.head._ring), task.head._observed))
    assert held == [(3, 1), (3, 1)]
