"""Inference: a trained model on new instances, from a checkpoint alone."""

from ldl.inference.predictions import Predictions
from ldl.inference.predictor import Predictor

__all__ = ["Predictions", "Predictor"]
