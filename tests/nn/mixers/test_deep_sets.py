"""The linear layer of sets."""

import torch

from wonderland.nn.mixers.deep_sets import DeepSets


def test_it_is_its_equation():
    layer = DeepSets(4).double()
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    expected = layer.each(x) + (x.mean(1) @ layer.mean.weight.T).unsqueeze(1)
    assert torch.allclose(layer(x), expected)


def test_the_mean_counts_real_tokens_only():
    layer, x = DeepSets(4), torch.randn(2, 5, 4)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    x[1, 2:] = torch.nan
    assert torch.allclose(layer(x, mask)[1, :2], layer(x[1:, :2])[0], atol=1e-6)


def test_the_causal_form_sees_the_mean_so_far():
    layer, plain = DeepSets(4, causal=True).double(), DeepSets(4).double()
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    expected = torch.stack([plain(x[:, : i + 1])[:, i] for i in range(5)], 1)
    assert torch.allclose(layer(x), expected)
    assert [tuple(entry.shape) for entry in layer.start(2)] == [(2, 4), (2,)]
