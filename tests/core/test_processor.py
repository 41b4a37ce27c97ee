"""Intel AMX that a virtual machine reports and does not support."""

import os
import subprocess
import sys

import pytest

from wonderland.core import processor


@pytest.mark.parametrize(
    ("flags", "tile_sizes", "expected"), [({"amx_tile"}, 0, True), ({"amx_tile"}, 1 << 26, False), ({"avx2"}, 0, False)]
)
def test_amx_is_disabled_where_it_is_reported_without_tiles(monkeypatch, flags, tile_sizes, expected):
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.setattr(processor.sys, "platform", "linux")
    monkeypatch.setattr(processor.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(processor, "cpu_flags", lambda: flags)
    monkeypatch.setattr(processor, "amx_tile_sizes", lambda: tile_sizes)
    assert processor.disable_missing_amx() is expected
    assert os.environ.get("ONEDNN_MAX_CPU_ISA") == ("AVX512_CORE_FP16" if expected else None)


def test_a_limit_set_by_the_user_is_kept(monkeypatch):
    monkeypatch.setattr(processor.sys, "platform", "linux")
    monkeypatch.setattr(processor.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(processor, "cpu_flags", lambda: {"amx_tile"})
    monkeypatch.setattr(processor, "amx_tile_sizes", lambda: 0)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    processor.disable_missing_amx()
    assert os.environ["ONEDNN_MAX_CPU_ISA"] == "AVX2"


def test_other_platforms_are_not_queried(monkeypatch):
    monkeypatch.setattr(processor.sys, "platform", "darwin")
    monkeypatch.setattr(processor, "cpu_flags", lambda: pytest.fail("queried"))
    assert not processor.disable_missing_amx()


def test_flags_are_those_of_the_first_core(tmp_path):
    source = tmp_path / "cpuinfo"
    source.write_text("model name\t: one\nflags\t\t: fpu amx_tile\n\nflags\t\t: other\n")
    assert processor.cpu_flags(source) == {"fpu", "amx_tile"}
    assert processor.cpu_flags(tmp_path / "none") == set()


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or processor.platform.machine() != "x86_64", reason="x86 on Linux"
)
def test_cpuid_can_be_called(monkeypatch):
    # Machine code that returns the highest CPUID leaf instead, which is at least 1 on every x86 processor.
    monkeypatch.setattr(processor, "_AMX_TILE_SIZES", bytes.fromhex("53 b800000000 b900000000 0fa2 5b c3"))
    assert 1 <= processor.amx_tile_sizes() < 1 << 16


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or processor.platform.machine() != "x86_64", reason="x86 on Linux"
)
def test_a_leaf_beyond_the_highest_gives_zero(monkeypatch):
    monkeypatch.setattr(
        processor, "_AMX_TILE_SIZES", processor._AMX_TILE_SIZES.replace(b"\x83\xf8\x1d", b"\x83\xf8\x7f")
    )
    assert processor.amx_tile_sizes() == 0


def test_bfloat16_products_run():
    """A product that oneDNN computes with AMX wherever the CPU flag is set."""
    code = "import torch, wonderland; x = torch.ones(64, 64, dtype=torch.bfloat16); print((x @ x).sum().item())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "262144.0\n"), done.stderr
