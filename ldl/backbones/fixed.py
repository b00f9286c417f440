"""What fixed layers of a backbone make of the inputs of data, served in place of these."""

from __future__ import annotations

import pytorch_lightning as pl

from ldl.backbones.base import Backbone
from ldl.backbones.reuse import reuse_features
from ldl.backbones.views import keep_views
from ldl.data.base import LDLDataModule


def serve_fixed(backbone: Backbone, trainer: pl.Trainer) -> None:
    """Let a trainer's data serve features, or maps of views, of the weights that the backbone has now.

    Those that are there already are kept. Prediction, which sees every instance once, computes none where there are
    none. Raises LDLError: the fixed layers cannot be cut off.
    """
    data, device = getattr(trainer, "datamodule", None), trainer.strategy.root_device
    if not isinstance(data, LDLDataModule):
        return
    predicts = trainer.state.fn == "predict"
    if not predicts or data.features_key is not None:
        reuse_features(backbone, data, device)
    data.views = None if predicts else keep_views(backbone, data, device)
