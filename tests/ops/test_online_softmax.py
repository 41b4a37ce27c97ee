"""Attention by chunks: equal to the whole, in any order, in memory linear in the sequence."""

import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from wonderland.laws.compiles import _compiler_settings
from wonderland.ops.online_softmax import attention, finish, merge, partial, reference


def draw(q=7, n=11, k=4, v=5, b=2, h=3, dtype=torch.float64, size=1.0):
    shapes = ((b, h, q, k), (b, h, n, k), (b, h, n, v))
    return [(size * torch.randn(shape, dtype=dtype)).requires_grad_() for shape in shapes]


def grads(y, *leaves):
    weight = torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(1))
    return torch.autograd.grad((y * weight).sum(), leaves)


@pytest.mark.parametrize("chunk", [1, 3, 11, 64])
@pytest.mark.parametrize("causal", [False, True])
def test_every_chunk_size_gives_the_whole_in_values_and_gradients(chunk, causal):
    leaves = draw()
    fast, slow = attention(*leaves, causal=causal, chunk=chunk), reference(*leaves, causal=causal)
    assert torch.allclose(fast, slow, atol=1e-12)
    for one, other in zip(grads(fast, *leaves), grads(slow, *leaves), strict=True):
        assert torch.allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("shape", [(2, 3, 7, 11), (1, 3, 7, 11), (2, 1, 1, 11), (7, 1), (11,)])
def test_a_bias_of_any_shape_has_its_gradient(shape):
    bias = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    leaves = [*draw(), bias]
    fast, slow = attention(*leaves[:3], bias=bias, chunk=4), reference(*leaves[:3], bias=bias)
    assert torch.allclose(fast, slow, atol=1e-12)
    for one, other in zip(grads(fast, *leaves), grads(slow, *leaves), strict=True):
        assert torch.allclose(one, other, atol=1e-12)


def test_a_query_that_sees_nothing_gets_zero_and_finite_gradients():
    leaves = draw()
    mask = torch.rand(2, 1, 7, 11) < 0.4
    mask[:, :, 2] = False
    fast, slow = attention(*leaves, mask=mask, chunk=4), reference(*leaves, mask=mask)
    assert torch.allclose(fast, slow, atol=1e-12)
    assert fast[:, :, 2].eq(0).all()
    for one, other in zip(grads(fast, *leaves), grads(slow, *leaves), strict=True):
        assert torch.allclose(one, other, atol=1e-12)


def test_single_precision_is_close():
    leaves = draw(q=33, n=65, dtype=torch.float32)
    assert torch.allclose(attention(*leaves, chunk=16), reference(*leaves), atol=1e-5)


def test_large_scores_stay_finite_where_the_plain_sum_overflows():
    q, k, v = draw(dtype=torch.float32, size=40.0)
    scores = q @ k.transpose(-1, -2)
    assert scores.abs().max() > 1000
    assert scores.exp().isinf().any()
    y = attention(q, k, v, scale=1.0, chunk=3)
    assert y.isfinite().all()
    assert all(grad.isfinite().all() for grad in grads(y, q, k, v))
    assert torch.allclose(y, reference(q, k, v, scale=1.0), atol=1e-4)


def test_merging_is_associative_and_in_any_order():
    q, k, v = draw(n=12)
    a, b, c = (partial(q, k[:, :, span], v[:, :, span]) for span in (slice(0, 5), slice(5, 6), slice(6, 12)))
    whole = reference(q, k, v)
    for tree in (merge(merge(a, b), c), merge(a, merge(b, c)), merge(c, merge(a, b)), merge(merge(b, c), a)):
        assert torch.allclose(finish(tree), whole, atol=1e-12)
    left, right = merge(merge(a, b), c), merge(a, merge(b, c))
    for one, other in zip(left, right, strict=True):
        assert torch.allclose(one, other, atol=1e-12)


def test_merging_with_nothing_changes_nothing():
    q, k, v = draw()
    some = partial(q, k, v)
    nothing = partial(q, k, v, mask=torch.zeros(1, 11, dtype=torch.bool))
    for one, other in zip(merge(some, nothing), some, strict=True):
        assert torch.equal(one, other)
    assert finish(merge(nothing, nothing)).eq(0).all()


def test_partial_results_have_gradients():
    q, k, v = draw(n=6)
    y = finish(merge(partial(q, k[:, :, :2], v[:, :, :2]), partial(q, k[:, :, 2:], v[:, :, 2:])))
    for one, other in zip(grads(y, q, k, v), grads(reference(q, k, v), q, k, v), strict=True):
        assert torch.allclose(one, other, atol=1e-12)


class Peak(TorchDispatchMode):
    """The most numbers that were alive at once among those made inside."""

    def __init__(self):
        super().__init__()
        self.now = self.most = 0
        self.known = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, torch.Tensor) and (key := tensor.untyped_storage().data_ptr()) not in self.known:
                size = tensor.untyped_storage().nbytes()
                self.known.add(key)
                self.now += size
                self.most = max(self.most, self.now)
                weakref.finalize(tensor.untyped_storage(), self.gone, key, size)
        return out

    def gone(self, key, size):
        self.known.discard(key)
        self.now -= size


def peak(run, n):
    leaves = draw(q=n, n=n, k=8, v=8, b=1, h=1, dtype=torch.float32)
    with Peak() as mode:
        run(*leaves).sum().backward()
    return mode.most


def test_peak_memory_is_linear_in_the_sequence():
    small, large = (peak(lambda q, k, v: attention(q, k, v, causal=True, chunk=32), n) for n in (256, 1024))
    assert large < 4.5 * small
    small, large = (peak(reference, n) for n in (256, 1024))
    assert large > 12 * small


def test_it_compiles_in_one_piece():
    leaves = draw()

    def run(q, k, v):
        return attention(q, k, v, causal=True, chunk=4)

    with _compiler_settings():
        y = torch.compile(run, fullgraph=True, backend="aot_eager")(*leaves)
    plain = attention(*leaves, causal=True, chunk=4)
    assert torch.allclose(y, plain)
    for one, other in zip(grads(y, *leaves), grads(plain, *leaves), strict=True):
        assert torch.allclose(one, other)
