"""Branches as C++ reads them: fields in one order, shares of threads, slopes by weight."""

import ctypes
import re

import pytest
import torch

from wonderland.ops import branches, hidden, native


def test_the_fields_are_those_of_the_header():
    header = (native.HERE / "branch.h").read_text()
    body = re.sub(r"//.*", "", header[header.index("struct Branch {") : header.index("long all(")])
    names = [name for line in re.findall(r"(?:T|double|long) ([^;(]+);", body) for name in re.findall(r"\w+", line)]
    assert names == [name for name, _ in branches.Form._fields_]
    assert ctypes.sizeof(branches.Form) == 8 * len(names)
    assert f"{len(names)} * 8, " in header


@pytest.mark.parametrize(("rows", "together"), [(1, False), (2, True), (3, False), (4, True), (15, False), (17, True)])
def test_threads_go_on_alone_where_sequences_come_out_even(rows, together, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    x, y = torch.randn(rows, 5, 4), torch.empty(rows, 5, 4)
    weights = (torch.ones(4), None, torch.randn(6, 4), None, torch.randn(4, 6), None)
    two = [hidden.KIND.there(y, x, *weights, 1e-5, True, 0, False)[0] for _ in range(2)]
    regions = branches._regions(two, x)
    assert [(len(some), b, t) for some, b, t in regions] == ([(2, rows, 5)] if together else [(1, rows * 5, 1)] * 2)


def test_slopes_of_what_is_not_there_are_none():
    inward, outward = torch.randn(6, 4), torch.randn(4, 5)
    slopes = torch.arange(4.0 + 4 + 24 + 6 + 20 + 4)
    found = branches.slopes_of((torch.ones(4), None, inward, torch.ones(6), outward, None, torch.ones(3)), slopes)
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
    assert branches.fits(4, None, weights)
    weights[index] = torch.ones(7) if weights[index].dim() == 1 else torch.ones(7, 7)
    assert not branches.fits(4, None, weights)
