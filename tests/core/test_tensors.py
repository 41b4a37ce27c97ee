import json
import struct
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from wonderland.core import WonderlandError, flatten, load_tensors, read_header, save_tensors, unflatten

DAMAGED = "{} is not a safetensors file: it is damaged, cut short or not ours."


def test_round_trip_with_meta(tmp_path):
    tensors = {"a": torch.randn(3, 4), "b": torch.arange(5), "empty": torch.empty(0, 2), "scalar": torch.tensor(1.5)}
    save_tensors(tmp_path / "t.safetensors", tensors, {"note": "é", "n": [1, 2]})
    found, meta = load_tensors(tmp_path / "t.safetensors")
    assert meta == {"note": "é", "n": [1, 2]}
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor)
        assert found[name].data_ptr() % 64 == 0 or found[name].numel() == 0


class Evil:
    def __reduce__(self):
        return (print, ("code ran",))


def hostile(kind: str) -> bytes:
    import pickle  # only here, to make what must be refused

    if kind == "pickle":
        return pickle.dumps(Evil())
    if kind == "two gigabytes of header":
        return struct.pack("<Q", 2 << 30) + b"{}"
    if kind == "short":
        return b"\x01\x00"
    if kind == "not json":
        return struct.pack("<Q", 4) + b"abcd"
    if kind == "a list":
        return struct.pack("<Q", 2) + b"[]"
    header = json.dumps({"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4 << 40]}}).encode()
    return struct.pack("<Q", len(header)) + header


KINDS = ["pickle", "two gigabytes of header", "short", "not json", "a list", "claims terabytes"]


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_files_are_refused(tmp_path, kind, capsys):
    path = tmp_path / "model.safetensors"
    path.write_bytes(hostile(kind))
    with pytest.raises(WonderlandError) as caught:
        load_tensors(path)
    assert str(caught.value) == DAMAGED.format(path)
    assert "code ran" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_hostile_files_are_refused_within_a_second(tmp_path, kind):
    path = tmp_path / "model.safetensors"
    path.write_bytes(hostile(kind))
    began = time.monotonic()
    with pytest.raises(WonderlandError):
        load_tensors(path)
    assert time.monotonic() - began < 1


@given(st.integers(0, 400), st.integers(0, 255))
@settings(max_examples=60, deadline=None)
def test_any_changed_byte_and_any_cut_is_noticed(tmp_path_factory, place, value):
    folder = tmp_path_factory.mktemp("fuzz")
    path = folder / "t.safetensors"
    save_tensors(path, {"a": torch.arange(40.0)}, {"k": 1})
    whole = path.read_bytes()
    place %= len(whole)
    changed = bytearray(whole)
    changed[place] = value
    for damaged in (bytes(changed), whole[:place]):
        path.write_bytes(damaged)
        if damaged == whole:
            continue
        try:
            tensors, meta = load_tensors(path)
        except WonderlandError:
            continue
        assert torch.equal(tensors["a"], torch.arange(40.0))  # only white space of the header may differ
        assert meta == {"k": 1}


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(WonderlandError) as caught:
        read_header(tmp_path / "x")
    assert str(caught.value) == f"{tmp_path / 'x'} is missing."


def test_nested_state_round_trip():
    model = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    model(torch.randn(1, 3, 8, 8)).sum().backward()
    optimizer.step()
    value = {"o": optimizer.state_dict(), "t": (1, 2.5, None, True, "x"), "nan": float("inf"), 3: [torch.ones(2)]}
    tensors, skeleton = flatten(value)
    found = unflatten(tensors, json.loads(json.dumps(skeleton)))
    assert found["t"] == value["t"]
    assert found["nan"] == float("inf")
    assert torch.equal(found[3][0], torch.ones(2))
    moment = found["o"]["state"][0]["exp_avg"]
    assert moment.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(moment, optimizer.state_dict()["state"][0]["exp_avg"])


def test_what_cannot_be_saved_is_named():
    with pytest.raises(WonderlandError) as caught:
        flatten({"a": {"b": object()}})
    assert str(caught.value) == (
        "A object at 'state.a.b' cannot be saved: state holds tensors, numbers, text, lists and dicts."
    )


def test_a_single_number_may_have_any_stride(tmp_path):
    tensor = torch.arange(4.0).view(2, 2)[:1, 1]
    assert tensor.stride() == (2,)
    save_tensors(tmp_path / "a.safetensors", {"x": tensor}, {})
    assert load_tensors(tmp_path / "a.safetensors")[0]["x"].tolist() == [1.0]
