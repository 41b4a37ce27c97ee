"""Average pooling as a token mixer."""

import pytest
import torch
import torch.nn.functional as F

from wonderland.core import WonderlandError
from wonderland.nn.mixers.pooling import Pooling


@pytest.mark.parametrize("window", [1, 3, 5])
def test_the_centred_form_is_torchs_without_counting_padding(window):
    x = torch.randn(2, 7, 4, dtype=torch.float64)
    pooled = F.avg_pool1d(x.transpose(1, 2), window, 1, window // 2, count_include_pad=False).transpose(1, 2)
    assert torch.allclose(Pooling(4, window=window, causal=False)(x), pooled - x)
    assert torch.allclose(Pooling(4, window=window, causal=False, subtract=False)(x), pooled)


@pytest.mark.parametrize("window", [1, 2, 4, 9])
def test_the_causal_form_is_the_mean_of_the_last_tokens(window):
    x = torch.randn(2, 7, 4, dtype=torch.float64)
    expected = torch.stack([x[:, max(0, i - window + 1) : i + 1].mean(1) for i in range(7)], 1)
    assert torch.allclose(Pooling(4, window=window, subtract=False)(x), expected)


def test_the_state_holds_the_window_and_no_more():
    pool = Pooling(4, window=3)
    _, state = pool.stream(torch.randn(2, 50, 4))
    assert [tuple(entry.shape) for entry in state] == [(2, 2, 4), (2,)]
    assert state[0].untyped_storage().nbytes() == 2 * 2 * 4 * 4
    assert pool.state_numbers(50) == pool.state_numbers(500) == 8


@pytest.mark.parametrize("options", [{"window": 0}, {"window": 4, "causal": False}])
def test_a_window_that_cannot_be_is_refused(options):
    with pytest.raises(WonderlandError) as error:
        Pooling(4, **options)
    assert str(error.value) == (
        f"Pooling takes a window of at least 1 token, odd where it is centred, not window={options['window']}."
    )
