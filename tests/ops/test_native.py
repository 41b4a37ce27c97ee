"""Kernels: used where they can be, done without where not, and kept where nobody else can write."""

import os
import stat

import pytest
import torch

from wonderland import nn
from wonderland.nn.mixers.mamba import Mamba
from wonderland.ops import native


@pytest.fixture
def afresh(tmp_path, monkeypatch):
    """Kernels as in a new process, with a cache of its own."""
    cached = (native.status, native.library, native.function, native._folder)
    monkeypatch.setenv("WONDERLAND_CACHE", str(tmp_path))
    for one in cached:
        one.cache_clear()
    yield tmp_path
    for one in cached:
        one.cache_clear()


def test_kernels_take_numbers_of_one_type_on_the_cpu():
    single, double = torch.zeros(1), torch.zeros(1, dtype=torch.float64)
    assert native.usable(single, None, single)
    assert not native.usable(single, double)
    assert not native.usable(single.half())
    assert not native.usable(single.to("meta"))


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("WONDERLAND_NATIVE", "0", "switched off by WONDERLAND_NATIVE=0"),
        ("CXX", "no-such-compiler", "not built: [Errno 2] No such file or directory: 'no-such-compiler'"),
        ("CXX", "false", "not built: false failed"),
    ],
)
def test_without_kernels_plain_torch_does_the_work(name, value, status, afresh, monkeypatch):
    monkeypatch.setenv(name, value)
    assert native.status() == status
    assert not native.available()
    assert Mamba(4)(torch.ones(1, 3, 4)).isfinite().all()


def test_a_kernel_is_built_once_and_kept_for_its_user_alone(afresh):
    first = native.library("scan")._name
    built = os.stat(first).st_mtime_ns
    native.library.cache_clear()
    assert native.library("scan")._name == first
    assert os.stat(first).st_mtime_ns == built
    assert stat.S_IMODE(os.stat(os.path.dirname(first)).st_mode) == 0o700
    assert os.listdir(os.path.dirname(first)) == [os.path.basename(first)]


def test_a_folder_that_others_can_write_to_is_not_used(afresh):
    folder = afresh / "wonderland" / "kernels"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert not str(native._folder()).startswith(str(afresh))


@pytest.mark.parametrize("kind", ["Attention", "MLP", "LayerNorm", "GRU", "Mamba", "RWKV"])
def test_many_slopes_at_once_go_through_equations(kind):
    module = getattr(nn, kind)(8).double()
    x = torch.randn(4, 33, 8, dtype=torch.float64, requires_grad=True)
    y = module(x)
    many = torch.randn(3, *y.shape, dtype=torch.float64)
    (found,) = torch.autograd.grad(y, x, many, is_grads_batched=True, retain_graph=True)
    for one, slope in zip(found, many, strict=True):
        assert torch.allclose(one, torch.autograd.grad(y, x, slope, retain_graph=True)[0], atol=1e-12)
