"""Networks of two texts in one row equal those of the two texts apart."""

import re

import pytest
import torch

from wonderland.core import Spec, WonderlandError
from wonderland.models import BiEncoder, DecomposableAttention, PairTexts

FIRST, SECOND = torch.tensor([[5, 7, 6], [4, 0, 0]]), torch.tensor([[8, 0], [9, 3]])
ROWS = torch.tensor([[5, 7, 6, 2, 8, 0], [4, 2, 9, 3, 0, 0]])


@pytest.mark.parametrize("name", ["DecomposableAttention", "BiEncoder"])
def test_a_row_is_its_two_texts(name):
    torch.manual_seed(0)
    pair = PairTexts(separator=2, network=Spec(f"models.{name}", {"vocab": 20, "classes": 3, "dim": 6})).eval()
    torch.testing.assert_close(pair(ROWS), pair.network(FIRST, SECOND))
    assert isinstance(pair.network, DecomposableAttention | BiEncoder)


@pytest.mark.parametrize("name", ["DecomposableAttention", "BiEncoder"])
def test_an_exported_program_takes_any_number_of_rows_and_tokens(name):
    torch.manual_seed(0)
    pair = PairTexts(separator=2, network=Spec(f"models.{name}", {"vocab": 20, "classes": 3, "dim": 6})).eval()
    free = ({0: torch.export.Dim("rows"), 1: torch.export.Dim("tokens")},)
    program = torch.export.export(pair, (ROWS,), dynamic_shapes=free).module()
    for rows, length in ((1, 3), (5, 9), (30, 40)):
        tokens = torch.randint(0, 20, (rows, length), generator=torch.Generator().manual_seed(rows))
        torch.testing.assert_close(program(tokens), pair(tokens), atol=1e-6, rtol=0)


def test_an_empty_side_gives_finite_numbers():
    for name in ("DecomposableAttention", "BiEncoder"):
        pair = PairTexts(separator=2, network=Spec(f"models.{name}", {"vocab": 20, "classes": 2, "dim": 6}))
        pair(torch.tensor([[2, 5, 0], [5, 2, 0], [2, 0, 0]])).sum().backward()
        assert all(torch.isfinite(p.grad).all() for p in pair.parameters() if p.grad is not None)


def test_a_separator_is_no_padding():
    with pytest.raises(
        WonderlandError, match="^" + re.escape("PairTexts needs a separator that is not padding (0), not 0.") + "$"
    ):
        PairTexts(separator=0, network=Spec("models.BiEncoder", {"vocab": 4, "classes": 2}))
