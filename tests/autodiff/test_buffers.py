"""Module buffers: every run of a trace repeats the writes of the function."""

import copy

import torch
from torch import nn

from wonderland import autodiff


def setting():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2))
    return net, copy.deepcopy(net), torch.randn(4, 2, 4, 4)


def same(net, twin):
    torch.testing.assert_close(dict(net.named_buffers()), dict(twin.named_buffers()))


def test_running_statistics_go_on_in_every_form_of_a_trace():
    net, twin, x = setting()
    own = autodiff.parameters(net)
    made = autodiff.trace(net, x)
    twin(x)
    for _ in range(2):
        x = torch.randn(4, 2, 4, 4)
        torch.testing.assert_close(made(own, x), twin(x))
        same(net, twin)
    backward = made.reverse()
    same(net, twin)
    assert len(backward(*own.values(), x, torch.ones(4, 2))) == 8
    twin(x)
    same(net, twin)
    made.compile(backend="aot_eager")(own, x)
    twin(x)
    same(net, twin)
    assert net[1].num_batches_tracked == 5


def test_the_printed_program_writes_them_too():
    net, twin, x = setting()
    made = autodiff.trace(net, x)
    twin(x)
    text = made.code()
    assert text.count(".copy_(v") == 3
    names: dict = {}
    exec(text, names)  # noqa: S102
    out = names["Sequential"](*autodiff.parameters(net).values(), x, **made.captured)
    torch.testing.assert_close(out, twin(x))
    same(net, twin)


def test_closures_and_evaluation():
    net, twin, x = setting()
    made = autodiff.trace(lambda x: net(x).sum(), x)
    made(x)
    twin(x)
    twin(x)
    same(net, twin)
    net.eval()
    quiet = autodiff.trace(net, x)
    assert not quiet.effects
    net[1].running_mean.add_(1)
    torch.testing.assert_close(quiet(autodiff.parameters(net), x), net(x))


def test_tensors_made_inside_begin_anew_at_every_run():
    def sums(x):
        first, second = torch.tensor([0.0, 0.0]), torch.zeros(2)
        first += x
        second[0] += x[1]
        return first + second

    made = autodiff.trace(sums, torch.ones(2))
    assert made(torch.ones(2)).tolist() == made(torch.ones(2)).tolist() == [2, 1]
