"""Eigenvectors that LAPACK does not find in single precision, as happened with neighbourhoods of FG-NET."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ldl.methods.dsna.spectrum import eigh


def test_what_does_not_converge_is_found_in_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0))
    gram = rows.mT @ rows
    real, asked = torch.linalg.eigh, []

    def fails(matrices: Tensor) -> tuple[Tensor, Tensor]:
        asked.append(matrices.dtype)
        if matrices.dtype == torch.float32:
            raise torch.linalg.LinAlgError("The algorithm failed to converge")
        return real(matrices)

    expected = eigh(gram)
    torch.testing.assert_close(expected, tuple(real(gram)), rtol=0, atol=0)
    monkeypatch.setattr(torch.linalg, "eigh", fails)
    values, vectors = eigh(gram)
    assert asked == [torch.float32, torch.float64]
    assert values.dtype == vectors.dtype == torch.float32
    torch.testing.assert_close(values, expected[0], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(vectors @ values.diag_embed() @ vectors.mT, gram, atol=1e-4, rtol=1e-4)


def test_what_is_found_nowhere_is_an_error() -> None:
    with pytest.raises(torch.linalg.LinAlgError):
        eigh(torch.full((1, 3, 3), torch.nan))
