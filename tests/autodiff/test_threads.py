"""Recordings in several threads are independent and restore the state of the process."""

import threading

import pytest
import torch

from tests.autodiff.test_functions import Square, cube
from wonderland import autodiff


def test_threads_record_side_by_side():
    found, trouble = {}, []

    def work(seed):
        try:
            x = torch.full((4,), float(seed), dtype=torch.float64)
            for _ in range(20):
                gradient = autodiff.grad(
                    lambda x: cube(x).sum() + Square.apply(x).sum() + (x.view(2, 2) @ x.view(2, 2)).sum()
                )
                found[seed] = gradient(x)
        except Exception as error:
            trouble.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    before = torch._C._get_mkldnn_enabled(), torch.autograd.Function.__dict__["apply"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not trouble
    for seed, gradient in found.items():
        assert gradient.tolist() == [3 * seed**2 + 10 * seed + 4 * seed] * 4
    assert (torch._C._get_mkldnn_enabled(), torch.autograd.Function.__dict__["apply"]) == before


def test_an_error_inside_leaves_everything_as_it_was():
    net = torch.nn.Linear(2, 2)
    before = torch._C._get_mkldnn_enabled(), torch.autograd.Function.__dict__["apply"], torch.is_grad_enabled()

    def fails(own):
        autodiff.call(net, own, torch.ones(2))
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        autodiff.grad(fails)(autodiff.parameters(net))
    now = torch._C._get_mkldnn_enabled(), torch.autograd.Function.__dict__["apply"], torch.is_grad_enabled()
    assert now == before
    assert isinstance(net.weight, torch.nn.Parameter)
    assert not net._forward_hooks
    assert not net._forward_pre_hooks
