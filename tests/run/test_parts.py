"""The trainer of a configuration."""

from __future__ import annotations

import pytest

from ldl.command.command_line import parse_anew
from ldl.errors import LDLError
from ldl.run.parts import build_trainer


@pytest.mark.parametrize("devices", [1, 2])
def test_batch_normalisation_is_shared_between_gpus_only(devices: int) -> None:
    """On CPUs, torch would raise an error of several lines in the first training step."""
    options = ["--trainer.accelerator=cpu", "--trainer.sync_batchnorm=true", f"--trainer.devices={devices}"]
    config = parse_anew(["--data=RotatedDigits", "--model.head=MeanPredictor", *options])
    if devices == 1:
        assert build_trainer(config, [], logger=False).world_size == 1
    else:
        with pytest.raises(LDLError, match="trainer.sync_batchnorm needs GPUs, and this run has processes on CPUs"):
            build_trainer(config, [], logger=False)
