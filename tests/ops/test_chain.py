"""Chains: branches as one node give what they give one by one."""

import pytest
import torch

from tests.ops.compare import agree
from wonderland.ops import attending, hidden, native
from wonderland.ops.branches import room
from wonderland.ops.chain import chain


def links(dim: int = 6):
    """Attention, then a hidden layer, then another; and all of their weights."""
    made = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=made).requires_grad_()

    one = (draw(dim), draw(dim), draw(3 * dim, dim), None, draw(dim, dim), draw(dim))
    two, three = ((draw(dim), None, draw(9, dim), draw(9), draw(dim, 9), None) for _ in range(2))
    how = {"heads": 2, "kv_heads": 2, "scale": 0.5}
    chained = [
        attending.link(one, None, 8, **how),
        hidden.link(two, eps=1e-5, activation="gelu"),
        hidden.link(three, eps=1e-5, centred=False, activation="tanh"),
    ]
    return chained, [weight for link in chained for weight in link.weights if weight is not None]


def by_one(x, chained):
    for link in chained:
        x = native.first(link.kind.op, x, *link.weights, *link.settings, True)
    return x


def test_a_chain_is_its_links():
    chained, weights = links()
    x = torch.randn(8, 8, 6, dtype=torch.float64, requires_grad=True)
    assert type(chain(x, chained).grad_fn).__name__ == "_ChainBackward"
    agree([lambda: (by_one(x, chained),), lambda: (chain(x, chained),)], [x, *weights], 1e-12)


def test_a_chain_can_be_differentiated_twice_kept_and_run_without_gradients():
    chained, weights = links()
    x = torch.randn(8, 8, 6, dtype=torch.float64, requires_grad=True)
    y = chain(x, chained)
    first = torch.autograd.grad(y.sum(), weights, retain_graph=True)
    again = torch.autograd.grad(y.sum(), weights)
    assert all(torch.equal(one, two) for one, two in zip(first, again, strict=True))
    slopes = [torch.autograd.grad(form(x, chained).sin().sum(), x, create_graph=True)[0] for form in (chain, by_one)]
    twice = [torch.autograd.grad(slope.square().sum(), [x, *weights]) for slope in slopes]
    assert all(torch.allclose(one, two, rtol=1e-9, atol=1e-9) for one, two in zip(*twice, strict=True))
    with torch.no_grad():
        assert torch.allclose(chain(x, chained), y, atol=1e-12)


def test_what_is_frozen_has_no_gradient():
    chained, weights = links()
    for weight in weights[:-1]:
        weight.requires_grad_(False)
    chain(torch.randn(8, 8, 6, dtype=torch.float64), chained).sum().backward()
    assert weights[-1].grad is not None
    assert all(weight.grad is None for weight in weights[:-1])


def test_a_weight_changed_between_forward_and_backward_is_noticed():
    chained, weights = links()
    y = chain(torch.randn(8, 8, 6, dtype=torch.float64), chained)
    with torch.no_grad():
        weights[-1].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_large_weights_get_nodes_of_their_own(monkeypatch):
    chained, weights = links()
    x = torch.randn(8, 8, 6, dtype=torch.float64, requires_grad=True)
    whole = torch.autograd.grad(chain(x, chained).sum(), [x, *weights])
    monkeypatch.setattr("wonderland.ops.chain.ROOM", 1)
    y = chain(x, chained)
    assert y.grad_fn.next_functions[0][0].name() == y.grad_fn.name() == "_ChainBackward"
    for one, two in zip(whole, torch.autograd.grad(y.sum(), [x, *weights]), strict=True):
        assert torch.allclose(one, two, atol=1e-12)


def test_slopes_that_do_not_lie_side_by_side():
    chained, weights = links()
    x = torch.randn(8, 6, 8, dtype=torch.float64).transpose(1, 2).requires_grad_()
    spread = torch.randn(8, 6, 8, dtype=torch.float64).transpose(1, 2)
    agree(
        [lambda: (by_one(x, chained) * spread,), lambda: (chain(x, chained) * spread,)],
        [x, *weights],
        1e-12,
    )


def test_threads_that_sum_for_themselves_take_room(monkeypatch):
    chained, _ = links()
    size = sum(weight.nbytes for weight in chained[0].weights if weight is not None)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    assert room(chained[0].weights) == 3 * size


def test_saved_tensors_may_come_back_with_other_strides():
    chained, weights = links()
    x = torch.randn(8, 8, 6, dtype=torch.float64, requires_grad=True)
    expected = torch.autograd.grad(chain(x, chained).sin().sum(), [x, *weights])

    def turned(tensor):
        return tensor.mT.contiguous().mT if tensor.dim() > 1 else tensor

    with torch.autograd.graph.saved_tensors_hooks(turned, lambda tensor: tensor):
        y = chain(x, chained)
    for one, two in zip(torch.autograd.grad(y.sin().sum(), [x, *weights]), expected, strict=True):
        assert torch.allclose(one, two, atol=1e-12)


def test_a_hidden_layer_without_a_norm_is_no_link():
    with pytest.raises(AssertionError):
        hidden.link((None, None, torch.ones(3, 2), None, torch.ones(2, 3), None), eps=0.0)
