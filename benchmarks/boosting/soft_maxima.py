"""Tables 1 and 2 and Figure 4 of Babenko et al. 2008: the printed formulae against the code."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from benchmarks.common.claims import Claim, Statement
from benchmarks.common.items import Work
from ldl.charts.drawing import new_figure, save
from ldl.methods.boosting.likelihood import CODES, Bags, Model, likelihood
from ldl.methods.boosting.pooling import gm, isr, lse, nor

R = 5.0
SIZE = 4
TOLERANCE = 1e-9
BELOW = ("LSE", "GM")
"""Means: no greater than the maximum."""
SOFT_MAXIMA: dict[str, Callable[[Tensor], Tensor]] = {
    "LSE": lambda v: lse(v, R), "GM": lambda v: gm(v, R), "NOR": nor, "ISR": isr
}  # fmt: skip


def values() -> Tensor:
    """Random probabilities (200, SIZE)."""
    return 0.02 + 0.96 * torch.rand(200, SIZE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def printed(name: str, v: Tensor) -> tuple[Tensor, Tensor]:
    """Table 1: g (n,) and its derivatives (n, m) of values (n, m)."""
    odds = v / (1 - v)
    g = {
        "LSE": ((R * v).exp().mean(1)).log() / R,
        "GM": (v**R).mean(1) ** (1 / R),
        "NOR": 1 - (1 - v).prod(1),
        "ISR": odds.sum(1) / (1 + odds.sum(1)),
    }[name]
    column = g[:, None]
    derivative = {
        "LSE": (R * v).exp() / (R * v).exp().sum(1, keepdim=True),
        "GM": column * v ** (R - 1) / (v**R).sum(1, keepdim=True),
        "NOR": (1 - column) / (1 - v),
        "ISR": ((1 - column) / (1 - v)) ** 2,
    }[name]
    return g, derivative


def table_1(work: Work) -> Iterator[Claim]:
    """Values, derivatives by automatic differentiation, and the bounds of the text."""
    v = values().requires_grad_()
    most = v.detach().amax(1)
    bounds = {"LSE": most - np.log(SIZE) / R, "GM": SIZE ** (-1 / R) * most}
    for name, soft in SOFT_MAXIMA.items():
        found = soft(v)
        gradient = torch.autograd.grad(found.sum(), v)[0]
        g, derivative = printed(name, v.detach())
        yield close(f"{name}, g", found.detach(), g)
        yield close(f"{name}, its derivative", gradient, derivative)
        if name in bounds:
            inside = bool(((bounds[name] <= found + TOLERANCE) & (found <= most + TOLERANCE)).all())
            yield Statement(f"{name} is at most the maximum, and no further below it than printed", inside, "all bags")
        else:
            large = float(soft(torch.full((10_000,), 0.01, dtype=torch.float64)))
            yield Statement(f"{name} tends to 1 for large bags", large > 0.98, f"{large:.4f} for 10,000 values of .01")


def printed_weights(name: str, p: Tensor) -> tuple[Tensor, Tensor]:
    """Table 2: w of the instances (n, m) of negative bags, and of positive ones."""
    whole = printed(name, p)[0][:, None]
    odds = p / (1 - p)
    if name == "LSE":
        share = (R * p).exp() / (R * p).exp().sum(1, keepdim=True)
        return -2 * p * (1 - p) / (1 - whole) * share, 2 * p * (1 - p) / whole * share
    if name == "GM":
        share = (p**R - p ** (R + 1)) / (p**R).sum(1, keepdim=True)
        return -2 * whole / (1 - whole) * share, 2 * share
    if name == "NOR":
        return -2 * p, 2 * p * (1 - whole) / whole
    share = odds / odds.sum(1, keepdim=True)
    return -2 * share * whole, 2 * share * (1 - whole)


def table_2(work: Work) -> Iterator[Claim]:
    """The weights of boosting, of a bag alone: the negative gradient of its likelihood in h."""
    p = values()
    h = ((p / (1 - p)).log() / 2).numpy()
    one, none = np.ones(1), np.zeros(1)
    for name in SOFT_MAXIMA:
        model = Model(CODES[name.lower()], R, False)
        for sign, sides, expected in zip((-1, 1), ((none, one), (one, none)), printed_weights(name, p)):
            found = np.empty((len(h), 1, SIZE))
            for bag, weights in zip(h, found):
                bags = Bags(np.zeros((1, 1), np.float32), np.array([0, 1]), *sides)
                likelihood(bag[None], bags, model, weights)
            yield close(f"{name}, weights where y is {sign}", torch.from_numpy(found[:, 0]), expected)


def figure_4(work: Work) -> Iterator[Claim]:
    """Soft maxima of (v, 1 - v), which are drawn."""
    v = torch.linspace(0, 1, 101, dtype=torch.float64)
    pairs = torch.stack([v, 1 - v], 1)
    figure, axis = new_figure(5, 4)
    curves = {name: soft(pairs) for name, soft in SOFT_MAXIMA.items()}
    for name, curve in curves.items():
        axis.plot(v, curve, label=name)
    axis.plot(v, pairs.amax(1), color="0.5", linestyle=":", label="max")
    axis.set(xlabel="v", ylabel="soft maximum of v and 1 - v")
    axis.legend()
    save(figure, work.folder / "soft_maxima.png")
    for name, curve in curves.items():
        above = curve - pairs.amax(1)
        sides, equal, where = (
            (-above, above[50], "v = .5") if name in BELOW else (above, above[[0, -1]], "v of 0 and 1")
        )
        claim = f"{name} is nowhere {'above' if name in BELOW else 'below'} the maximum, and equal to it at {where}"
        holds = bool((sides > -TOLERANCE).all() and (equal.abs() < TOLERANCE).all())
        yield Statement(claim, holds, f"apart by at most {float(sides.max()):.3f}")


def close(name: str, found: Tensor, expected: Tensor) -> Statement:
    """That the two are equal but for rounding."""
    apart = float((found - expected).abs().max())
    told = f"to {TOLERANCE:g}" if apart < TOLERANCE else f"but for {apart:.2g}"
    return Statement(f"{name}: code and print agree", apart < TOLERANCE, told)
