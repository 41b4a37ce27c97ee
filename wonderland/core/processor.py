"""Intel AMX on virtual machines: some report the instructions without supporting them, and oneDNN then crashes."""

import ctypes
import mmap
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path

# Machine code of a function without arguments: returns EAX of CPUID leaf 0x1D, subleaf 1 (the sizes of AMX tiles), or 0 if
# the highest leaf is below 0x1D. In assembly:
# push rbx; xor eax, eax; cpuid; cmp eax, 0x1D; jb end; mov eax, 0x1D; mov ecx, 1; cpuid; pop rbx; ret; end: xor eax, eax; pop rbx; ret
_AMX_TILE_SIZES = bytes.fromhex("53 31c0 0fa2 83f81d 720e b81d000000 b901000000 0fa2 5b c3 31c0 5b c3")


def disable_missing_amx() -> bool:
    """Keep oneDNN from using Intel AMX where it is reported but not usable; returns whether that was the case.

    Some hypervisors pass on the CPU flag amx_tile and leave out the description of the tiles (CPUID leaf 0x1D). oneDNN
    checks only the flag, and the first bfloat16 matrix product ends the process with an illegal instruction. The remedy is
    oneDNN's environment variable ONEDNN_MAX_CPU_ISA, set before its first use; a value that the user has set is kept.
    """
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64" or "amx_tile" not in cpu_flags():
        return False
    if amx_tile_sizes():
        return False
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
    return True


def cpu_flags(source: Path = Path("/proc/cpuinfo")) -> set[str]:
    """The CPU flags of the first core; empty if they cannot be read."""
    with suppress(OSError), source.open() as lines:
        for line in lines:
            if line.startswith("flags"):
                return set(line.partition(":")[2].split())
    return set()


def amx_tile_sizes() -> int:
    """CPUID's sizes of AMX tiles (bytes of all tiles, and of one in the upper half); 0 if it reports none, or if no executable page can be mapped."""
    try:
        page = mmap.mmap(-1, len(_AMX_TILE_SIZES), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return 0
    page.write(_AMX_TILE_SIZES)
    start = ctypes.c_char.from_buffer(page)
    tile_sizes = ctypes.CFUNCTYPE(ctypes.c_uint32)(ctypes.addressof(start))()
    del start  # a page with an exported buffer cannot be closed
    page.close()
    return tile_sizes
