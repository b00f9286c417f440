"""What backbones made of a timm network share: the network, where its weights are, how it wants its pixels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor

from ldl.backbones.base import Backbone
from ldl.errors import LDLError, did_you_mean
from ldl.options import buffer, option, options


def local_weights(name: str) -> Path | None:
    """The weights file of a timm model in ``LDL_WEIGHTS``, or in ``weights`` beside the data folder, or None."""
    own, data = Path(os.environ.get("LDL_WEIGHTS") or "weights"), Path(os.environ.get("LDL_DATA") or "data")
    files = (file for folder in (own, data.parent / "weights") for file in sorted(folder.glob("*.safetensors")))
    return next((file for file in files if name in (file.stem, file.name.partition(".")[0])), None)


not_on_hub: set[str] = set()
"""Models that the hub did not give to this process: every fold would wait for it anew."""


@options
class TimmNetwork(Backbone):
    """What backbones made of a timm network share.

    Args:
        name: Model name, as ``timm.list_models()`` has it.
        pretrained: Load timm's pretrained weights: a file ``NAME*.safetensors`` in the environment's ``LDL_WEIGHTS``,
            or in ``weights`` beside the data folder, else from timm's hub. ``auto`` goes on without them, and says
            so, where neither can be had.
        enlarge: Enlarge images by this factor before the network, whose maps are then as much finer, at the square of
            the factor in time.
    """

    network: Any = buffer()
    mean: Tensor = buffer()
    std: Tensor = buffer()

    name: str = "resnet18"
    pretrained: bool | Literal["auto"] = option(default=False, may_change=True)
    enlarge: float = option(default=1.0, least=1, most=16)

    def check_images(self, input_shape: tuple[int, ...]) -> None:
        """Raise LDLError also for a model that timm does not have."""
        import timm  # here and below: it takes as long as all of ldl, and tables do without

        super().check_images(input_shape)
        if not timm.is_model(self.name):
            near = did_you_mean(self.name, timm.list_models())
            raise LDLError(f"timm has no model {self.name!r}{near}; see timm.list_models()")

    def _create(self, what: str, from_hub: bool, **options: Any) -> Any:
        import timm

        from_hub = from_hub and not (self.pretrained == "auto" and self.name in not_on_hub)
        try:
            network = timm.create_model(self.name, **{"pretrained": from_hub, **options})
            self.pretrained_from = "timm's hub, or its cache" if from_hub else ""
            return network
        except Exception as error:  # those of torch, safetensors and timm have no common base
            if from_hub and self.pretrained == "auto":
                rank_zero_warn(f"no pretrained weights of {self.name} at hand or on the hub: all its layers are random")
                not_on_hub.add(self.name)
                return self._create(what, False, **options)
            raise LDLError(f"timm cannot make {what}: {' '.join(str(error).split())[:300]}") from error

    def _register_pixel_scale(self, mean: Sequence[float], std: Sequence[float], channels: int) -> None:
        """Make the buffers ``mean`` and ``std`` (channels, 1, 1) of pixels of 0 to 255."""
        for name, values in (("mean", mean), ("std", std)):
            value = torch.tensor(values)
            # As many channels as the network was trained with, or their mean for each of another number.
            value = value if len(value) == channels else value.mean().expand(channels)
            self.register_buffer(name, 255 * value.reshape(-1, 1, 1), persistent=False)
