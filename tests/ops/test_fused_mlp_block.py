"""The MLP block as one kernel equals its equation, and is not used where it does not fit."""

import pytest
import torch

from tests.ops.compare import PRECISION, agree
from wonderland import laws, nn
from wonderland.ops import native
from wonderland.ops.fused_block import FEWEST, usable
from wonderland.ops.fused_mlp_block import ACTIVATIONS, fused_mlp_block, reference


def weights(d: int, width: int, bias: bool, dtype: torch.dtype) -> list[torch.Tensor | None]:
    shapes = [(d,), (d,) if bias else None, (width, d), (width,) if bias else None, (d, width), (d,) if bias else None]
    return [None if shape is None else torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(
    ("rows", "d", "width", "bias", "centred"), [((3, 90), 20, 33, True, True), ((64,), 7, 5, False, False)]
)
def test_the_kernel_is_the_equation(rows, d, width, bias, centred, activation, dtype):
    x = torch.randn(*rows, d, dtype=dtype, requires_grad=True)
    given = [x, *weights(d, width, bias, dtype)]
    assert usable(*given)
    how = {"eps": 1e-5, "centred": centred, "activation": activation}
    forms = [lambda one=one: (one(*given, **how),) for one in (reference, fused_mlp_block)]
    agree(forms, [tensor for tensor in given if tensor is not None], 10 * PRECISION[dtype])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads_gives_the_same(threads):
    x = torch.randn(FEWEST + 3, 6, dtype=torch.float64, requires_grad=True)
    given = [x, *weights(6, 9, True, torch.float64)]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        forms = [
            lambda one=one: (one(*given, eps=1e-5, centred=True, activation="gelu"),)
            for one in (reference, fused_mlp_block)
        ]
        agree(forms, given, 1e-10)
    finally:
        torch.set_num_threads(before)


def test_without_gradients_it_is_the_same_and_keeps_nothing():
    x, (gain, shift, *rest) = torch.randn(70, 8), weights(8, 16, True, torch.float32)
    with torch.no_grad():
        y = fused_mlp_block(x, gain, shift, *rest, eps=1e-5)
    assert torch.allclose(y, reference(x, gain, shift, *rest, eps=1e-5, centred=True, activation="gelu"), atol=1e-5)
    assert y.grad_fn is None


def test_some_weights_may_be_frozen():
    x, given = torch.randn(70, 8, dtype=torch.float64), weights(8, 16, True, torch.float64)
    for weight in given[:4]:
        weight.requires_grad_(False)
    fused_mlp_block(x, *given, eps=1e-5).sum().backward()
    assert given[0].grad is None
    assert given[4].grad is not None


def test_extreme_inputs_stay_as_finite_as_the_equation():
    x = torch.randn(64, 4)
    x[0], x[1], x[2, 1] = 1e30, 0.0, float("nan")
    given = [torch.ones(4), None, torch.eye(4), None, torch.eye(4), None]
    for activation in ACTIVATIONS:
        how = {"eps": 1e-5, "centred": True, "activation": activation}
        found, expected = fused_mlp_block(x, *given, **how), reference(x, *given, **how)
        assert torch.equal(found.isfinite()[1:], expected.isfinite()[1:])
        assert torch.allclose(found[3:], expected[3:], atol=1e-5)


def test_second_derivatives_go_through_the_equation():
    x = torch.randn(64, 2, dtype=torch.float64, requires_grad=True)
    given = [weight.detach() if weight is not None else None for weight in weights(2, 3, True, torch.float64)]
    assert torch.autograd.gradgradcheck(lambda x: fused_mlp_block(x, *given, eps=1e-3), x, fast_mode=True)


def test_few_rows_other_types_and_observers_go_without(monkeypatch):
    given = [torch.ones(4), None, torch.eye(4), None, torch.eye(4), None]
    assert usable(torch.zeros(64, 4), *given)
    assert not usable(torch.zeros(63, 4), *given)
    assert not usable(torch.zeros(64, 4, dtype=torch.bfloat16), *given)
    with native.recording("kernels"):
        assert not usable(torch.zeros(64, 4), *given)
    with torch.autocast("cpu"):
        assert not usable(torch.zeros(64, 4), *given)
    big, before = torch.empty(1).expand(4096, 4096), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert not usable(torch.zeros(64, 4), *given, big, big)
    finally:
        torch.set_num_threads(before)
    monkeypatch.setattr(native, "gemm", lambda dtype: 0)
    assert not usable(torch.zeros(64, 4), *given)
    assert fused_mlp_block(torch.zeros(64, 4), *given, eps=1.0).abs().max() == 0


@pytest.mark.parametrize(
    "module",
    [
        lambda: nn.MLP(8),
        lambda: nn.RWKVChannel(8),
        lambda: nn.Block(8, mixer=nn.Attention.spec(heads=2), channel=nn.MLP.spec()),
    ],
)
def test_what_it_is_part_of_compiles_where_rows_are_many(module):
    verdict = laws.compiles(module(), torch.randn(2, 64, 8))
    assert verdict.outcome == "holds", verdict.witness


def test_saved_tensors_may_come_back_with_other_strides():
    x, given = torch.randn(70, 8, dtype=torch.float64, requires_grad=True), weights(8, 16, True, torch.float64)
    expected = torch.autograd.grad(fused_mlp_block(x, *given, eps=1e-5).sin().sum(), [x, *given])

    def transposed(tensor):
        return tensor.mT.contiguous().mT if tensor.dim() > 1 else tensor

    with torch.autograd.graph.saved_tensors_hooks(transposed, lambda tensor: tensor):
        y = fused_mlp_block(x, *given, eps=1e-5)
    for one, two in zip(torch.autograd.grad(y.sin().sum(), [x, *given]), expected, strict=True):
        assert torch.allclose(one, two, atol=1e-12)


def test_a_weight_changed_between_forward_and_backward_is_noticed():
    given = weights(8, 16, True, torch.float64)
    y = fused_mlp_block(torch.randn(70, 8, dtype=torch.float64), *given, eps=1e-5)
    with torch.no_grad():
        given[2].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
