"""Fast forms are used only where nothing observes operators, modules or devices."""

from contextlib import nullcontext

import pytest
import torch
from torch.func import vmap
from torch.utils.flop_counter import FlopCounterMode

from wonderland.fast import entry
from wonderland.fast.guard import HookWatch, plain, unobserved
from wonderland.nn import GRU, MLP, Attention, LayerNorm
from wonderland.ops import native

OBSERVERS = {
    "dispatch mode": lambda: FlopCounterMode(display=False),
    "autocast": lambda: torch.autocast("cpu"),
    "recording": lambda: native.recording("kernels"),
    "recording equations": lambda: native.recording("equations"),
    "shapes only": native.shapes_only,
    "forward mode": torch.autograd.forward_ad.dual_level,
}


@pytest.mark.parametrize("name", OBSERVERS)
def test_observers_turn_fast_forms_off(name):
    mixer, x, wide = GRU(8), torch.randn(2, 1, 8), torch.randn(4, 20, 8)
    with torch.no_grad():
        _, state = mixer.stream(x)
        for context, used in ((nullcontext(), True), (OBSERVERS[name](), False), (nullcontext(), True)):
            with context:
                assert unobserved() == used
                assert (entry.step(mixer, x, state) is not None) == used
                assert (entry.residual_block(MLP(8), LayerNorm(8), wide) is not None) == used


def test_transforms_turn_them_off():
    seen, mixer, norm = [], Attention(8, heads=2), LayerNorm(8)

    def call(x):
        seen.append(entry.residual_block(mixer, norm, x))
        return x

    vmap(call)(torch.randn(2, 4, 20, 8))
    assert seen == [None]


def test_other_dtypes_devices_and_subclasses_are_not_plain():
    x = torch.zeros(2)
    assert plain(x, None, torch.nn.Parameter(x))
    assert not plain(x, x.double())
    assert not plain(x.half())
    assert not plain(x.to("meta"))
    assert not plain(torch._neg_view(x))


def test_hooks_are_watched_in_all_submodules():
    module = Attention(8, heads=2)
    watch = HookWatch(module)
    assert not watch.any
    hook = module.out.register_forward_hook(lambda *_: None)
    assert not watch.unchanged()
    hook.remove()
    assert watch.unchanged()
    module.project.forward = lambda x: x
    assert not watch.unchanged()
