"""D2L 13 on a CPU: programs and their compiled forms, timing, copies, precision, parallel layers."""

import time

import torch
from torch import nn
from torch.utils.benchmark import Timer


def test_a_compiled_and_an_exported_program_equal_the_eager_one():
    net, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)), torch.randn(3, 4)
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    exported = torch.export.export(net, (x,))
    with torch.no_grad():
        assert torch.allclose(compiled(x), net(x))
        assert torch.allclose(exported.module()(x), net(x))
    assert "tanh" in str(exported.graph)


def test_timing_runs_often_enough_to_be_above_the_clock():
    measured = Timer("x @ x", globals={"x": torch.randn(64, 64)}, num_threads=1).blocked_autorange(min_run_time=0.02)
    assert 1e-7 < measured.median < 1e-2
    began = time.perf_counter()
    torch.randn(64, 64) @ torch.randn(64, 64)
    assert time.perf_counter() > began


def test_a_copy_that_does_not_block_has_the_same_values():
    x = torch.randn(100)
    copied = x.to("cpu", torch.float64, non_blocking=True)
    assert torch.equal(copied.float(), x)


def test_errors_of_precisions_are_their_machine_epsilons():
    """float32 has 24 bits of mantissa, float16 11, bfloat16 8; int8 and int4 round to 1/127 and 1/7 of the largest value."""
    torch.manual_seed(0)
    x = torch.rand(10_000, dtype=torch.float64) + 1
    for kind, bits in ((torch.float32, 24), (torch.float16, 11), (torch.bfloat16, 8)):
        assert (x - x.to(kind).double()).abs().div(x).max().item() <= 2.0**-bits
        assert (x - x.to(kind).double()).abs().div(x).max().item() > 2.0 ** -(bits + 1)
        assert torch.finfo(kind).eps == 2.0 ** (1 - bits)
    for levels in (127, 7):
        step = x.max() / levels
        rounded = (x / step).round().clamp(-levels, levels) * step
        assert (x - rounded).abs().max() <= step / 2 + 1e-12


def test_data_and_model_parallel_layers_have_the_gradients_of_one():
    """Half of the rows each, with gradients added up; or half of the units each, with outputs put side by side."""
    torch.manual_seed(0)
    layer, x = nn.Linear(4, 6), torch.randn(8, 4)
    layer(x).square().sum().backward()
    weight = layer.weight.grad.clone()
    layer.zero_grad()
    for rows in x.chunk(2):
        layer(rows).square().sum().backward()
    assert torch.allclose(layer.weight.grad, weight, atol=1e-5)
    halves = [piece.detach().clone().requires_grad_() for piece in layer.weight.chunk(2)]
    outputs = [
        nn.functional.linear(x, half, bias) for half, bias in zip(halves, layer.bias.detach().chunk(2), strict=True)
    ]
    torch.cat(outputs, 1).square().sum().backward()
    assert torch.allclose(torch.cat([half.grad for half in halves]), weight, atol=1e-5)


def test_data_parallel_without_devices_is_the_module_itself():
    net, x = nn.Linear(3, 2), torch.randn(4, 3)
    assert torch.equal(nn.DataParallel(net)(x), net(x))
