"""Eigenvectors that torch does not find, as happened with a neighbourhood of FG-NET: 16 rows of 164 were not 0."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ldl.methods.spectrum import eigh


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_does_not_converge_is_found_elsewhere(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = torch.zeros(3, 20, 6, dtype=dtype)
    rows[:, 3:11] = torch.randn(3, 8, 6, generator=torch.Generator().manual_seed(0), dtype=dtype)
    gram = rows @ rows.mT
    expected = torch.linalg.eigh(gram)
    assert all(map(torch.equal, eigh(gram), expected))

    def fails(matrices: Tensor) -> tuple[Tensor, Tensor]:
        raise torch.linalg.LinAlgError("The algorithm failed to converge")

    monkeypatch.setattr(torch.linalg, "eigh", fails)
    values, vectors = eigh(gram)
    assert values.dtype == vectors.dtype == dtype
    torch.testing.assert_close(values, expected[0], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(vectors @ values.diag_embed() @ vectors.mT, gram, atol=1e-4, rtol=1e-4)
