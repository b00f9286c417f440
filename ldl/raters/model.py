"""The model of raters: parameters of each rater beside a head, for several strengths of shrinkage at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor, nn

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.metrics.functional import mean_of
from ldl.raters.table import RaterTable
from ldl.raters.transforms import find_transform

RaterModel = Literal["none", "bias", "confusion"]
Shrinkage = float | Sequence[float] | None

STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0)
"""Strengths of shrinkage, of which validation chooses one."""
RIDGE = 0.1
"""Factor of half the squared weights of the features of raters in the loss: weaker ones harm raters never seen."""
RATERS_AT_ONCE = 256
"""Raters whose distributions are computed at a time for the population."""


class Raters(nn.Module):
    """Distributions of votes of R raters, given the distribution p of an item that a head predicts.

    A rater r has the distribution T(p, theta_r) with a function T of :mod:`ldl.raters.transforms`, and the parameters
    theta_r = mean + W f_r + d_r, where f_r are the rater's features, if any. The loss shrinks d_r to 0 by
    ``strength * |d_r|^2 / 2``, on the scale of the log-likelihood of all votes, so that a rater with few votes is
    nearly the mean rater, and W by a ridge penalty. K strengths are trained side by side, each with its own mean, W and
    d, on the same p. The gradient of the head comes from the chosen strength alone.

    Args:
        kind: ``bias`` or ``confusion``.
        labels: The label space.
        table: The raters.
        strengths: Strengths of shrinkage, of which validation chooses one.

    Attributes:
        names: Name of each rater (R,), in the order of their numbers.
        strengths: The K strengths.
        chosen: Number of the strength of all predictions. It is no buffer, because averages of weights and
            DistributedDataParallel would overwrite it; the description of the model in a checkpoint holds it.
        mean: (K, P) parameters of the mean rater.
        deviation: (K, R, P) deviation d_r of each rater.
        weight: (K, P, F) weights W of the features, or None.
        features: (R, F) features of the raters, or None.
        trained: (R,) 1 for a rater with training votes, else 0.
        vote_share: (R,) share of one training vote in all those of its rater.
    """

    trained: Tensor
    vote_share: Tensor
    scale: Tensor
    features: Tensor | None

    def __init__(
        self, kind: str, labels: LabelSpace, table: RaterTable, strengths: Sequence[float] = STRENGTHS
    ) -> None:
        super().__init__()
        if not len(table) or not (table.votes > 0).any():
            raise LDLError("a model of raters needs training votes, and there are none; check the split of the data")
        self.kind, self.table = kind, table
        self.strengths = [float(strength) for strength in strengths]
        self.transform = find_transform(kind, labels)
        self.chosen, self._has_chosen = len(self.strengths) // 2, False
        count, start = len(self.strengths), self.transform.start(len(labels))
        self.mean = nn.Parameter(start.repeat(count, 1))
        self.deviation = nn.Parameter(torch.zeros(count, len(table), len(start)))
        # Floats, because averages of weights take no integers; the description of the model holds the votes.
        votes = torch.tensor(table.votes)
        self.register_buffer("trained", (votes > 0).to(start.dtype), persistent=False)
        self.register_buffer("vote_share", 1 / votes.clamp_min(1), persistent=False)
        self.register_buffer("scale", torch.tensor(self.strengths), persistent=False)
        self.weight = None
        if table.features is not None:
            self.weight = nn.Parameter(torch.zeros(count, len(start), table.features.shape[1]))
        self.register_buffer("features", None if table.features is None else torch.tensor(table.features))
        self.reset()

    @property
    def names(self) -> Sequence[str]:
        """Name of each rater, by its number."""
        return self.table.names

    def state(self) -> dict[str, Any]:
        """Return plain values, with which and with the weights a checkpoint rebuilds the model."""
        return {"kind": self.kind, "shrinkage": self.strengths, "chosen": self.chosen, **self.table.state()}

    def parameters_of(self, rater: Tensor, features: Tensor | None = None) -> Tensor:
        """Return theta (..., K, P) of raters (...), int64; -1 is the mean rater, or an unknown one with ``features``.

        Args:
            rater: Numbers of raters.
            features: (..., F) standardised features of unknown raters; None takes the mean of the raters.
        """
        known, number = (rater >= 0)[..., None, None], rater.clamp_min(0)
        deviation = self.deviation.movedim(0, 1)[number]
        theta = self.mean + torch.where(known, deviation, 0.0)
        if self.weight is None or self.features is None:
            return theta
        described = self.features[number].to(theta.dtype)
        others = torch.zeros_like(described) if features is None else features.to(theta.dtype)
        described = torch.where(known.squeeze(-1), described, others)
        return theta + torch.einsum("...f,kpf->...kp", described, self.weight)

    def loss(
        self, outputs: dict[str, Tensor], rater: Tensor, vote: Tensor, weight: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Return ``loss``, and the negative log-likelihood of a vote without shrinkage, ``loss_votes``.

        Both are means over the votes of an item, and then over the items, of the chosen strength. The gradient of
        ``loss`` is that of all strengths, of which the others reach no parameter of the head.

        Args:
            outputs: ``Head.log_outputs`` of B items, with ``log_p`` (B, T, C).
            rater: (B, V) numbers of the raters; -1 is an unknown rater.
            vote: (B, V) numbers of their labels; -1 is no vote.
            weight: (B,) weights of the items.
        """
        log_p = outputs["log_p"].unsqueeze(-3)
        strengths = torch.arange(len(self.strengths), device=log_p.device)[:, None, None]
        log_p = torch.where(strengths == self.chosen, log_p, log_p.detach())
        with torch.autocast(log_p.device.type, enabled=False):
            nll = self._vote_nll(log_p, rater, vote)
            shrinkage = self._shrinkage(rater, nll.dtype)
        present = (vote >= 0).to(nll.dtype)
        share = present / present.sum(1, keepdim=True).clamp_min(1)
        items = torch.einsum("bv,bvk->bk", share, nll + shrinkage)
        losses = torch.stack([mean_of(column, weight) for column in items.unbind(-1)])
        if self.weight is not None:
            losses = losses + 0.5 * RIDGE * self.weight.to(losses.dtype).square().sum((1, 2))
        votes = mean_of((share * nll[..., self.chosen].detach()).sum(1), weight)
        total, chosen = losses.sum(), losses[self.chosen].detach()
        return {"loss": total - total.detach() + chosen, "loss_votes": votes}

    def _vote_nll(self, log_p: Tensor, rater: Tensor, vote: Tensor) -> Tensor:
        """Return -log p_r(vote) (B, V, K) of ``log_p`` (B, K, T, C), a mean over the T distributions."""
        theta = self.parameters_of(rater).to(log_p.dtype)
        rated = self.transform.apply(log_p.unsqueeze(1), theta)
        label = vote.clamp_min(0)[..., None, None, None].expand(*rated.shape[:-1], 1)
        return -rated.gather(-1, label).squeeze(-1).mean(-1)

    def _shrinkage(self, rater: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the share of each vote (B, V, K) in the shrinkage of its rater, 1 / n_r of it."""
        number = rater.clamp_min(0)
        squares = self.deviation.movedim(0, 1)[number].to(dtype).square().sum(-1)
        share = (rater >= 0).to(dtype) * self.vote_share[number].to(dtype)
        return 0.5 * self.scale.to(dtype) * squares * share.unsqueeze(-1)

    @torch.no_grad()
    def target(self, outputs: dict[str, Tensor], rater: Tensor, vote: Tensor) -> Tensor:
        """Return the distributions (B, C) of which the closed-form update of an ``AlternatingHead`` learns.

        With a confusion matrix they are the mean over the votes of the posterior distribution of the item's label. With
        a bias, the head's distribution moves by the difference between the shares of the votes and the mean of the
        raters' distributions, and negative numbers become 0.

        Args:
            outputs: ``Head.log_outputs`` of B items.
            rater: (B, V) numbers of the raters.
            vote: (B, V) numbers of the labels.
        """
        log_p = outputs["log_p"].detach()
        p = log_p.exp().mean(-2)
        log_p = _log(p)[:, None, None]
        theta = self.parameters_of(rater)[..., self.chosen, :].to(log_p.dtype)
        present, label = (vote >= 0).unsqueeze(-1).to(p.dtype), vote.clamp_min(0)
        count = present.sum(1).clamp_min(1)
        if self.transform.posterior is not None:
            posterior = self.transform.posterior(log_p, theta, label).squeeze(-2)
            return (posterior * present).sum(1) / count
        rated = self.transform.apply(log_p, theta).squeeze(-2).exp()
        shares = torch.nn.functional.one_hot(label, p.shape[-1]).to(p.dtype)
        moved = (p + ((shares - rated) * present).sum(1) / count).clamp_min(0)
        return moved / moved.sum(-1, keepdim=True)

    def distribution_of(self, p: Tensor, rater: Tensor, features: Tensor | None = None) -> Tensor:
        """Return the distributions (B, C) of the votes of raters.

        Args:
            p: (B, C) distributions of the head.
            rater: (B,) numbers of the raters; -1 is the mean rater, or an unknown one with ``features``.
            features: (B, F) standardised features of unknown raters.
        """
        log_p = _log(p).unsqueeze(-2)
        theta = self.parameters_of(rater, features)[:, self.chosen].to(log_p.dtype)
        return self.transform.apply(log_p, theta).squeeze(-2).exp()

    def population(self, p: Tensor) -> Tensor:
        """Return the mean (B, C) of the distributions of the raters with training votes, each equally.

        Args:
            p: (B, C) distributions of the head.
        """
        log_p = _log(p)
        theta = self.parameters_of(torch.arange(len(self.names), device=p.device))[:, self.chosen].to(log_p.dtype)
        trained, total = self.trained.to(log_p.dtype), torch.zeros_like(log_p)
        for some, counted in zip(theta.split(RATERS_AT_ONCE), trained.split(RATERS_AT_ONCE)):
            rated = self.transform.apply(log_p.unsqueeze(0), some).exp()
            total = total + torch.einsum("r,r...->...", counted, rated)
        return total / trained.sum()

    def restore(self, chosen: int) -> None:
        """Take over the number of the strength that a checkpoint has chosen."""
        self.chosen, self._has_chosen = chosen, True

    def warn_unchosen(self) -> None:
        """Warn if several strengths were trained, and there were no validation votes to choose one of them."""
        if len(self.strengths) > 1 and not self._has_chosen:
            rank_zero_warn(
                f"model.rater_shrinkage: there were no validation votes to choose a strength by, and "
                f"{self.strengths[self.chosen]:g} is taken; set data.val_fraction above 0, or give one strength"
            )

    def reset(self) -> None:
        """Forget the votes of :meth:`observe`."""
        self._observed = torch.zeros(len(self.strengths) + 1, dtype=torch.float64)

    @torch.no_grad()
    def observe(self, p: Tensor, rater: Tensor, vote: Tensor) -> None:
        """Add validation votes, by which :meth:`choose` compares the strengths.

        Args:
            p: (B, C) distributions of the head.
            rater: (B, V) numbers of the raters.
            vote: (B, V) numbers of the labels; -1 is no vote.
        """
        log_p = _log(p)[:, None, None].expand(-1, len(self.strengths), -1, -1)
        nll, present = self._vote_nll(log_p, rater, vote).double(), (vote >= 0).unsqueeze(-1)
        sums = torch.cat([(nll * present).sum((0, 1)), present.sum((0, 1))])
        self._observed = self._observed.to(sums.device) + sums

    def choose(self, collective: Collective) -> None:
        """Choose the strength with the least negative log-likelihood of the observed votes. Every process calls it."""
        sums = collective.sum(self._observed.to(self.mean.device)).cpu()
        self.reset()
        if sums[-1] > 0 and bool(sums.isfinite().all()):
            self.restore(int(sums[:-1].argmin()))


def _log(p: Tensor) -> Tensor:
    """Return the logarithms of probabilities, finite and in at least float32."""
    p = p.to(torch.promote_types(p.dtype, torch.float32))
    return p.clamp_min(torch.finfo(p.dtype).tiny).log()
