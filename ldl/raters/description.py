"""A table of the raters: what each of them does differently, how much their votes tell, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ldl.annotations.votes import SingleVotes
from ldl.labels import LabelSpace
from ldl.methods.temperature import temper
from ldl.raters.model import Raters
from ldl.raters.posterior import draw_parameters, fisher_information

MOST_ITEMS = 128
"""Training items, evenly spaced, over which the means of a rater's distributions are taken."""
DRAWS = 200
"""Draws from the posterior distribution of a rater's parameters."""
LEVEL = 90
"""Level of the intervals, in per cent."""
MOST_PARAMETERS = 512
"""Most parameters of a rater for intervals, since their information is a matrix of this size for each rater."""
NUMBERS_AT_ONCE = 2**20
"""Probabilities that are computed at a time."""


def tabulate_raters(
    raters: Raters, labels: LabelSpace, p: Tensor, votes: SingleVotes, temperature: float = 1.0
) -> pd.DataFrame:
    """Describe each rater by the distributions that the model gives to their votes on training items.

    The means are taken over at most :data:`MOST_ITEMS` of the items, evenly spaced and the same for all raters, whether
    or not the rater has voted on them. Intervals are quantiles over :data:`DRAWS` draws with a fixed seed, from the
    Laplace approximation of the posterior of the rater's parameters (:mod:`ldl.raters.posterior`), with the
    distributions of the items and the parameters of the mean rater fixed. An interval also contains the estimate. It is
    that of the prior for a rater without training votes.

    Args:
        raters: The trained model of raters.
        labels: The label space.
        p: (N, C) distributions of the head for the training items.
        votes: The training votes, on items numbered as ``p``, by raters numbered as in ``raters``.
        temperature: Temperature of the model's predictions.

    Returns:
        One row per rater of the model, in its order, with the columns

        - ``rater``, the name, and ``votes``, the number of training votes;
        - for ordinal labels ``shift``, the mean over items of the expectation of the rater's distribution minus that of
          the population's, in label units; for others ``bias:LABEL``, the mean difference of probability, by label;
        - ``agreement``, the share of the votes of others on the same items that name the rater's label, NaN without
          any;
        - ``informativeness``, the mutual information of item and vote under the model in nats: the mean over items of
          the Kullback-Leibler divergence of the rater's distribution from its mean over the items.

        Beside a quantity of the model stand the ends of its interval, such as ``shift_lower_90`` and
        ``bias_lower_90:LABEL``. They are NaN for models with more than :data:`MOST_PARAMETERS` parameters a rater.
    """
    # Derivatives need tensors from outside of the inference mode of a test, which leaves a mode with gradients.
    with torch.inference_mode(False), torch.no_grad():
        p = p.clone().to(raters.mean)
        items = torch.from_numpy(np.unique(np.linspace(0, len(p) - 1, MOST_ITEMS).round().astype(int)))
        population = temper(raters.population(p[items]), temperature).mean(0).double().cpu()
        log_p = p.double().cpu().clamp_min(torch.finfo(torch.float32).tiny).log()
        measure = _Measure(raters, labels, log_p[items].float(), population, temperature)
        every = torch.arange(len(raters.names), device=p.device)
        theta = raters.parameters_of(every)[:, raters.chosen].double().cpu()
        estimate = torch.stack([measure(each[None])[0] for each in theta])
        low, high = torch.full_like(estimate, torch.nan), torch.full_like(estimate, torch.nan)
        if theta.shape[1] <= MOST_PARAMETERS:
            intervals = [measure.interval(each, log_p[rows]) for each, rows in zip(theta, _rows_of_raters(votes))]
            low, high = (torch.stack(ends) for ends in zip(*intervals))
            low, high = torch.minimum(low, estimate), torch.maximum(high, estimate)
    columns: dict[str, Any] = {"rater": list(raters.names), "votes": raters.table.votes}
    agreement = {"agreement": agreement_with_others(votes, len(theta))}
    for number, (name, label) in enumerate(measure.names):
        ends = {f"{name}": estimate, f"{name}_lower_{LEVEL}": low, f"{name}_upper_{LEVEL}": high}
        before = agreement if name == "informativeness" else {}
        columns |= before | {f"{key}{label}": numbers[:, number].numpy() for key, numbers in ends.items()}
    return pd.DataFrame(columns)


class _Measure:
    """The quantities of a rater as a function of the parameters.

    Args:
        raters: The model of raters.
        labels: The label space.
        log_p: (N, C) logarithms of the distributions of the items, float32.
        population: (C,) mean over the items of the population's distribution, float64.
        temperature: Temperature of predictions.

    Attributes:
        names: Name of each of Q quantities, and the end of its name for those of a label.
    """

    def __init__(
        self, raters: Raters, labels: LabelSpace, log_p: Tensor, population: Tensor, temperature: float
    ) -> None:
        self.transform, self.strength = raters.transform, raters.strengths[raters.chosen]
        self.log_p, self.population, self.temperature = log_p, population, temperature
        self.values = labels.points.double() if labels.kind == "ordinal" else None
        self.names = [("bias", f":{label}") for label in labels.names] if self.values is None else [("shift", "")]
        self.names.append(("informativeness", ""))
        self.generator = torch.Generator().manual_seed(0)

    def __call__(self, theta: Tensor) -> Tensor:
        """Return the quantities (n, Q) of parameters (n, P), float64."""
        at_once = max(1, NUMBERS_AT_ONCE // self.log_p.numel())
        return torch.cat([self._of_some(some) for some in theta.float().split(at_once)])

    def _of_some(self, theta: Tensor) -> Tensor:
        logs = self.transform.apply(self.log_p.unsqueeze(0), theta)
        if self.temperature != 1:
            logs = (logs / self.temperature).log_softmax(-1)
        rated = logs.exp()
        mean = rated.mean(1).double()
        entropy = -(rated * logs).sum(-1).double().mean(1)
        differs = mean - self.population
        if self.values is not None:
            differs = differs @ self.values
        information = torch.special.entr(mean).sum(-1) - entropy
        return torch.column_stack([differs, information.clamp_min(0)])

    def interval(self, theta: Tensor, log_p: Tensor) -> tuple[Tensor, Tensor]:
        """Return the ends (Q,) of the intervals of a rater with parameters (P,), whose n votes are on items (n, C)."""
        information = fisher_information(self.transform, log_p, theta)
        drawn = self(draw_parameters(theta, information, self.strength, DRAWS, self.generator))
        tail = (1 - LEVEL / 100) / 2
        return torch.quantile(drawn, tail, 0), torch.quantile(drawn, 1 - tail, 0)


def _rows_of_raters(votes: SingleVotes) -> Iterator[Tensor]:
    """Yield the numbers of the items of each rater's votes."""
    order = np.argsort(votes.rater, kind="stable")
    ends = np.searchsorted(votes.rater[order], np.arange(1, len(votes.names)))
    return map(torch.from_numpy, np.split(votes.item[order], ends))


def agreement_with_others(votes: SingleVotes, raters: int) -> np.ndarray:
    """Return the share of the votes of others on a rater's items that name the label of the rater's vote.

    Each pair of a rater's vote and a vote of another rater on the same item counts equally.

    Args:
        votes: The single votes.
        raters: Number of raters R.

    Returns:
        (R,), NaN for a rater without votes of others on the same items.
    """
    frame = pd.DataFrame({"item": votes.item, "rater": votes.rater, "label": votes.label})

    def count(*columns: str) -> pd.Series:
        return frame.groupby(list(columns))["item"].transform("size")

    same = count("item", "label") - count("item", "rater", "label")
    others = count("item") - count("item", "rater")
    agreed, total = (np.bincount(votes.rater, numbers, minlength=raters) for numbers in (same, others))
    return np.divide(agreed, total, out=np.full(raters, np.nan), where=total > 0)
