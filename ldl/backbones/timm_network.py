"""Base of backbones with a timm network: creating the network, finding its weights, scaling of pixels."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import torch
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor

from ldl.backbones.base import Backbone
from ldl.errors import LDLError, did_you_mean
from ldl.options import buffer, option, options
from ldl.validation.files import check_file, data_folder, read_text


def local_weights(name: str) -> Path | None:
    """Return the weights file of a timm model in ``LDL_WEIGHTS``, or in ``weights`` beside the data folder, or None."""
    chosen = Path(os.path.expanduser(os.environ.get("LDL_WEIGHTS") or "weights"))
    for folder in (chosen, data_folder().parent / "weights"):
        for file in sorted(folder.glob("*.safetensors")):
            if name in (file.stem, file.name.partition(".")[0]):
                return check_file(file, "weights file", "give another LDL_WEIGHTS")
    return None


HUB = re.compile(r"hf[-_]hub:")
"""Beginning of the name of a model that a repository of the hub describes."""
FIXED = ("pretrained", "in_chans", "num_classes", "drop_rate", "checkpoint_path", "features_only")
"""Arguments of timm's models that are invalid in ``options``, because ldl sets them."""
PASSED = frozenset((
    "act_layer", "aa_layer", "always_partition", "attn_drop_rate", "aux_logits", "avg_down", "base_width", "bn_eps",
    "bn_momentum", "cardinality", "channels", "class_token", "conv_bias", "conv_mlp", "depth", "depths", "dims",
    "drop_block_rate", "drop_path_rate", "dynamic_img_pad", "dynamic_img_size", "embed_dim", "embed_dims", "fc_norm",
    "final_norm", "global_pool", "growth_rate", "head_dim", "head_hidden_size", "head_init_scale", "img_size",
    "init_values", "kernel_sizes", "layer_scale_init_value", "layers", "ls_init_value", "memory_efficient",
    "mlp_ratio", "mlp_ratios", "no_embed_class", "norm_eps", "norm_layer", "num_heads", "output_stride", "pad_type",
    "patch_drop_rate", "patch_size", "pos_drop_rate", "pos_embed", "pre_norm", "proj_bias", "proj_drop_rate",
    "qk_norm", "qkv_bias", "reg_tokens", "replace_stem_pool", "scale_attn_norm", "scale_mlp_norm", "stem_size",
    "stem_type", "stem_width", "strict_img_size", "use_fc_norm", "use_grn", "use_rope", "weight_init", "window_size",
    "zero_init_last",
))  # fmt: skip
"""Arguments of timm's models that are valid in ``options``: they shape a network, and reach no file or network."""
LAYERS, MOST_LAYERS, LARGEST_OPTION = ("depth", "depths", "layers"), 256, 16384
"""Arguments that count layers, the largest sum of their numbers, and that of the numbers of another argument."""
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
            ``dynamic_img_size: true`` of a vision transformer. Only arguments that shape the network are passed on.
        enlarge: Enlarge images by this factor before the network, which makes its maps finer by the same factor; the
            time grows with the square of the factor.
    """

    network: Any = buffer()
    mean: Tensor = buffer()
    std: Tensor = buffer()

    name: str = "resnet18"
    pretrained: bool | Literal["auto"] = option(default=False, may_change=True, role="start")
    options: dict[str, Any] | None = None
    enlarge: float = option(default=1.0, least=1, most=16)

    def check_images(self, input_shape: tuple[int, ...]) -> None:
        """Raise LDLError also for a model that timm does not have."""
        import timm  # here and below, because the import takes as long as all of ldl

        super().check_images(input_shape)
        for name in (self.options or {}).keys() & set(FIXED):
            raise LDLError(f"{type(self).__name__}.options has {name}, which ldl sets itself; leave it out there")
        _check_arguments(f"timm cannot make {self.name}: {type(self).__name__}.options", self.options or {})
        if not HUB.match(self.model) and not timm.is_model(self.model):
            near = did_you_mean(self.model, timm.list_models())
            raise LDLError(f"timm has no model {self.name!r}{near}; see timm.list_models()")

    @property
    def model(self) -> str:
        """The name as timm lists it, for one of timm's own models on the hub."""
        return re.sub(r"^((hf[-_]hub:)?timm/)", "", self.name)

    def _create(self, description: str, from_hub: bool, online: bool, **options: Any) -> Any:
        """Create a network, with pretrained weights if ``from_hub``; the hub is contacted only if ``online``."""
        import timm

        from_hub = from_hub and not (self.pretrained == "auto" and self.name in not_on_hub)
        model = self.model
        if HUB.match(model) and not online:
            options |= {"num_classes": 1}  # the repository may claim any number, and ldl removes them
            model = _described_in_cache(model, options)
        try:
            network = timm.create_model(model, **{**(self.options or {}), "pretrained": from_hub, **options})
            self.pretrained_from = "timm's hub, or its cache" if from_hub else ""
            return network
        except Exception as error:  # errors of torch, safetensors and timm have no common base
            if from_hub and self.pretrained == "auto":
                rank_zero_warn(f"no pretrained weights of {self.name} available: all its layers are random")
                not_on_hub.add(self.name)
                return self._create(description, False, online, **options)
            raise LDLError(f"timm cannot make {description}: {' '.join(str(error).split())[:300]}") from error

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


def _check_arguments(owner: str, arguments: dict[str, Any]) -> None:
    """Raise LDLError, which begins with ``owner``, unless all arguments may be passed to a model of timm.

    Checkpoints and repositories of the hub name such arguments, of which some would write files or contact a server.
    """
    for name, value in arguments.items():
        if name not in PASSED:
            raise LDLError(
                f"{owner} has {name!r}{did_you_mean(name, PASSED)}; ldl passes on {', '.join(sorted(PASSED))}"
            )
        entries = value if isinstance(value, list | tuple) else [value]
        numbers = [abs(entry) for entry in entries if isinstance(entry, int | float)]
        most = MOST_LAYERS if name in LAYERS else LARGEST_OPTION
        words = [entry for entry in entries if isinstance(entry, str) and re.fullmatch(r"[\w.-]*", entry)]
        accepted = len(numbers) + len(words) + entries.count(None) == len(entries) <= most
        if not (accepted and sum(numbers) <= most):
            raise LDLError(
                f"{owner}.{name} is {str(value)[:80]}; a number, a word, true, false, null, or a list of them is "
                f"passed on, and the sum of numbers is at most {most}"
            )


def _described_in_cache(model: str, overridden: Collection[str]) -> str:
    """Return the folder of the hub's cache that describes a network, as timm names it.

    Args:
        model: Name of the network on the hub.
        overridden: Names of arguments that take precedence over those of the repository.

    Raises:
        LDLError: The cache does not have it, or it passes other arguments to the network than ``options`` may.
    """
    from huggingface_hub import errors, try_to_load_from_cache

    repository, _, revision = HUB.sub("", model).partition("@")
    with suppress(errors.HFValidationError):
        file = try_to_load_from_cache(repository, "config.json", revision=revision or None)
        if isinstance(file, str):
            try:
                arguments = json.loads(read_text(Path(file))).get("model_args") or {}
                _check_arguments(
                    f"{file}: model_args", {name: arguments[name] for name in arguments if name not in overridden}
                )
            except (ValueError, TypeError, AttributeError, RecursionError) as error:
                kind = "" if isinstance(error, LDLError) else f"{file} describes no model of timm: "
                raise LDLError(f"{kind}{error}") from None
            return f"local-dir:{Path(file).parent}"
    raise LDLError(
        f"a repository of the hub describes the network {model}, its cache has no copy, and loading a checkpoint "
        f"contacts no server; if you trust the repository, run: hf download {repository} config.json"
    )
