"""Base of backbones with a timm network: creating the network, finding its weights, scaling of pixels."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor

from ldl.backbones.base import Backbone
from ldl.errors import LDLError, did_you_mean
from ldl.options import buffer, option, options
from ldl.validation.files import data_folder


def local_weights(name: str) -> Path | None:
    """Return the weights file of a timm model in ``LDL_WEIGHTS``, or in ``weights`` beside the data folder, or None."""
    own = Path(os.path.expanduser(os.environ.get("LDL_WEIGHTS") or "weights"))
    files = (
        file for folder in (own, data_folder().parent / "weights") for file in sorted(folder.glob("*.safetensors"))
    )
    return next((file for file in files if name in (file.stem, file.name.partition(".")[0])), None)


FIXED = ("pretrained", "in_chans", "num_classes", "drop_rate", "checkpoint_path", "features_only")
"""Arguments of timm's models that are invalid in ``options``, because ldl sets them."""
not_on_hub: set[str] = set()
"""Models that the hub did not provide to this process, so that folds do not wait for it again."""


@options
class TimmNetwork(Backbone):
    """Base of backbones with a timm network.

    Args:
        name: Model name, as ``timm.list_models()`` has it, also after ``timm/`` or ``hf_hub:timm/``; or
            ``hf_hub:OWNER/MODEL``, which timm's hub describes.
        pretrained: Load timm's pretrained weights: a file ``NAME*.safetensors`` in the environment's ``LDL_WEIGHTS``,
            or in ``weights`` beside the data folder, else from timm's hub. ``auto`` continues without them, with a
            warning, if neither is available.
        options: Further arguments of the model, as ``timm.create_model`` takes them, such as ``img_size: 112`` or
            ``dynamic_img_size: true`` of a vision transformer.
        enlarge: Enlarge images by this factor before the network, which makes its maps finer by the same factor; the
            time grows with the square of the factor.
    """

    network: Any = buffer()
    mean: Tensor = buffer()
    std: Tensor = buffer()

    name: str = "resnet18"
    pretrained: bool | Literal["auto"] = option(default=False, may_change=True)
    options: dict[str, Any] | None = None
    enlarge: float = option(default=1.0, least=1, most=16)

    def check_images(self, input_shape: tuple[int, ...]) -> None:
        """Raise LDLError also for a model that timm does not have."""
        import timm  # here and below, because the import takes as long as all of ldl

        super().check_images(input_shape)
        for given in (self.options or {}).keys() & set(FIXED):
            raise LDLError(f"{type(self).__name__}.options has {given}, which ldl sets itself; leave it out there")
        if not re.match(r"hf[-_]hub:", self.model) and not timm.is_model(self.model):
            near = did_you_mean(self.model, timm.list_models())
            raise LDLError(f"timm has no model {self.name!r}{near}; see timm.list_models()")

    @property
    def model(self) -> str:
        """The name as timm lists it, for one of timm's own models on the hub."""
        return re.sub(r"^((hf[-_]hub:)?timm/)", "", self.name)

    def _create(self, what: str, from_hub: bool, **options: Any) -> Any:
        import timm

        from_hub = from_hub and not (self.pretrained == "auto" and self.name in not_on_hub)
        try:
            network = timm.create_model(self.model, **{**(self.options or {}), "pretrained": from_hub, **options})
            self.pretrained_from = "timm's hub, or its cache" if from_hub else ""
            return network
        except Exception as error:  # errors of torch, safetensors and timm have no common base
            if from_hub and self.pretrained == "auto":
                rank_zero_warn(f"no pretrained weights of {self.name} available: all its layers are random")
                not_on_hub.add(self.name)
                return self._create(what, False, **options)
            raise LDLError(f"timm cannot make {what}: {' '.join(str(error).split())[:300]}") from error

    @property
    def memory_format(self) -> torch.memory_format:
        """Memory format of maps: channels last, unless the network is to be re-parameterised after training.

        On a CPU, training such a network with channels last ends the process in torch 2.14.
        """
        branches = any(hasattr(module, "reparameterize") for module in self.network.modules())
        return torch.contiguous_format if branches else torch.channels_last

    def _register_pixel_scale(self, mean: Sequence[float], std: Sequence[float], channels: int) -> None:
        """Create the buffers ``mean`` and ``std`` (channels, 1, 1) for pixels of 0 to 255."""
        for name, values in (("mean", mean), ("std", std)):
            value = torch.tensor(values)
            # The channels of the training of the network, or their mean for another number of channels.
            value = value if len(value) == channels else value.mean().expand(channels)
            self.register_buffer(name, 255 * value.reshape(-1, 1, 1), persistent=False)
