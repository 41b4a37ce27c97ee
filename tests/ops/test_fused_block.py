"""Fused blocks as C++ reads them: fields in one order, shapes that are checked, gradients by weight."""

import ctypes
import re

import pytest
import torch

from wonderland.ops import fused_block, kernel_cache


def test_the_fields_are_those_of_the_header():
    header = (kernel_cache.SOURCES / "fused_block.h").read_text()
    body = re.sub(r"//.*", "", header[header.index("struct FusedBlock {") : header.index("long grads_size(")])
    names = [name for line in re.findall(r"(?:T|double|long) ([^;(]+);", body) for name in re.findall(r"\w+", line)]
    assert names == [name for name, _ in fused_block.Struct._fields_]
    assert ctypes.sizeof(fused_block.Struct) == 8 * len(names)
    assert f"{len(names)} * 8, " in header


@pytest.mark.parametrize(("attends", "shares"), [(True, (3, 5)), (False, (15, 1))])
def test_threads_share_sequences_of_attention_and_rows_of_an_mlp(attends, shares):
    x = torch.randn(3, 5, 4)
    assert fused_block._shares(fused_block.describe(x, (), (), attends=attends), x) == shares


def test_threads_that_sum_for_themselves_take_memory(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    assert fused_block.grads_bytes((torch.ones(4), None, torch.ones(2, 3))) == 3 * 4 * (4 + 6)


def test_gradients_of_missing_weights_are_none():
    inward, outward = torch.randn(6, 4), torch.randn(4, 5)
    grads = torch.arange(4.0 + 4 + 24 + 6 + 20 + 4)
    found = fused_block.split_grads((torch.ones(4), None, inward, torch.ones(6), outward, None, torch.ones(3)), grads)
    assert [None if one is None else tuple(one.shape) for one in found] == [
        (4,),
        None,
        (6, 4),
        (6,),
        (4, 5),
        None,
        None,
    ]
    assert found[2][0, 0] == 8
    assert found[4][0, 0] == 38


@pytest.mark.parametrize("index", range(6))
def test_sizes_are_looked_at(index):
    weights = [torch.ones(4), torch.ones(4), torch.ones(6, 4), torch.ones(6), torch.ones(4, 6), torch.ones(4)]
    assert fused_block.weights_fit(4, None, weights)
    weights[index] = torch.ones(7) if weights[index].dim() == 1 else torch.ones(7, 7)
    assert not fused_block.weights_fit(4, None, weights)
