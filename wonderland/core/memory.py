"""Memory of this process: glibc allocator settings for training, and the peak resident size."""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory(megabytes: int = 1024) -> bool:
    """Raise glibc's mmap and trim thresholds for this process; returns whether that worked.

    Training allocates and frees the same large temporaries at every step. With glibc's defaults each of them is mapped,
    zeroed and returned to the system every time. Only speed changes, never results.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    size = megabytes << 20
    return bool(mallopt(_M_MMAP_THRESHOLD, size)) and bool(mallopt(_M_TRIM_THRESHOLD, size))


def peak_megabytes() -> float:
    """The peak resident size of this process so far, in MiB."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (1 << 20) if sys.platform == "darwin" else used / 1024


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory could not be had: PyTorch raises RuntimeError for it."""
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error) or "not enough memory" in str(error)


def available_bytes() -> int:
    """How much memory is free for new things."""
    import os

    try:
        with open("/proc/meminfo") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
