"""The processor: what it announces and does not have is not used."""

import ctypes
import mmap
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path

# The size of matrix tiles, as a function without arguments: leaf 0x1D of CPUID, or 0 where the highest leaf is below that.
# push rbx; xor eax, eax; cpuid; cmp eax, 0x1D; jb end; mov eax, 0x1D; mov ecx, 1; cpuid; pop rbx; ret; end: xor eax, eax; pop rbx; ret
_SIZE_OF_TILES = bytes.fromhex("53 31c0 0fa2 83f81d 720e b81d000000 b901000000 0fa2 5b c3 31c0 5b c3")


def avoid_missing_tiles() -> bool:
    """Keep torch from matrix tiles (Intel's AMX) that a virtual machine announces without having them; says whether it had to.

    Some hypervisors pass on the announcement and leave out the description (CPUID leaf 0x1D). oneDNN believes the first, and
    the first matrix product in bfloat16 ends the process with an illegal instruction. The limit is oneDNN's own, holds from
    its first use on, and leaves a limit that is already set alone.
    """
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64" or "amx_tile" not in flags():
        return False
    if size_of_tiles():
        return False
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
    return True


def flags(source: Path = Path("/proc/cpuinfo")) -> set[str]:
    """What the first processor announces; empty where that cannot be read."""
    with suppress(OSError), source.open() as lines:
        for line in lines:
            if line.startswith("flags"):
                return set(line.partition(":")[2].split())
    return set()


def size_of_tiles() -> int:
    """What the processor says of its tiles: 0 where it says nothing, or may not be asked."""
    try:
        page = mmap.mmap(-1, len(_SIZE_OF_TILES), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return 0
    page.write(_SIZE_OF_TILES)
    place = ctypes.c_char.from_buffer(page)
    found = ctypes.CFUNCTYPE(ctypes.c_uint32)(ctypes.addressof(place))()
    del place
    page.close()
    return found
