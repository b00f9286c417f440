"""Two measures of your own: a row each, and they are logged, written into results.json and printed."""

from torch import Tensor

from ldl.metrics import Metric, register


def agreement(prediction: Tensor, target: Tensor) -> Tensor:
    """Whether the likeliest label is the true one, of distributions (..., C): 0 or 1 for every row."""
    return (prediction.argmax(-1) == target.argmax(-1)).double()


def log_error(prediction: Tensor, truth: Tensor) -> Tensor:
    """|log(1 + predicted value) - log(1 + true value)|: an error of old age counts less than one of youth."""
    return ((1 + prediction.clamp_min(0)).log() - (1 + truth.clamp_min(0)).log()).abs()


MEASURES = (Metric("agreement", agreement, higher_is_better=True), Metric("log_error", log_error, of="value"))
for measure in MEASURES:
    register(measure)
