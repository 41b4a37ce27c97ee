"""Announced and not there: matrix tiles of virtual machines."""

import os
import subprocess
import sys

import pytest

from wonderland.core import processor


@pytest.mark.parametrize(
    ("announced", "size", "expected"), [({"amx_tile"}, 0, True), ({"amx_tile"}, 1 << 26, False), ({"avx2"}, 0, False)]
)
def test_tiles_are_avoided_where_they_are_announced_and_not_described(monkeypatch, announced, size, expected):
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.setattr(processor.sys, "platform", "linux")
    monkeypatch.setattr(processor.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(processor, "flags", lambda: announced)
    monkeypatch.setattr(processor, "size_of_tiles", lambda: size)
    assert processor.avoid_missing_tiles() is expected
    assert os.environ.get("ONEDNN_MAX_CPU_ISA") == ("AVX512_CORE_FP16" if expected else None)


def test_a_limit_of_the_user_stays(monkeypatch):
    monkeypatch.setattr(processor.sys, "platform", "linux")
    monkeypatch.setattr(processor.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(processor, "flags", lambda: {"amx_tile"})
    monkeypatch.setattr(processor, "size_of_tiles", lambda: 0)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    processor.avoid_missing_tiles()
    assert os.environ["ONEDNN_MAX_CPU_ISA"] == "AVX2"


def test_other_platforms_are_not_asked(monkeypatch):
    monkeypatch.setattr(processor.sys, "platform", "darwin")
    monkeypatch.setattr(processor, "flags", lambda: pytest.fail("asked"))
    assert not processor.avoid_missing_tiles()


def test_flags_are_those_of_the_first_processor(tmp_path):
    source = tmp_path / "cpuinfo"
    source.write_text("model name\t: one\nflags\t\t: fpu amx_tile\n\nflags\t\t: other\n")
    assert processor.flags(source) == {"fpu", "amx_tile"}
    assert processor.flags(tmp_path / "none") == set()


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or processor.platform.machine() != "x86_64", reason="x86 on Linux"
)
def test_the_processor_answers(monkeypatch):
    # The number of the highest leaf instead of the size of tiles: no processor has none.
    monkeypatch.setattr(processor, "_SIZE_OF_TILES", bytes.fromhex("53 b800000000 b900000000 0fa2 5b c3"))
    assert 1 <= processor.size_of_tiles() < 1 << 16


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or processor.platform.machine() != "x86_64", reason="x86 on Linux"
)
def test_a_leaf_beyond_the_highest_is_not_asked(monkeypatch):
    monkeypatch.setattr(processor, "_SIZE_OF_TILES", processor._SIZE_OF_TILES.replace(b"\x83\xf8\x1d", b"\x83\xf8\x7f"))
    assert processor.size_of_tiles() == 0


def test_half_precision_survives():
    """A product that oneDNN gives to tiles wherever it believes in them."""
    code = "import torch, wonderland; x = torch.ones(64, 64, dtype=torch.bfloat16); print((x @ x).sum().item())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "262144.0\n"), done.stderr
