"""What everybody needs: errors, atomic files, seeds, specs, tensors on disk."""

from typing import TYPE_CHECKING

from wonderland.core.errors import WonderlandError, nearest, need
from wonderland.core.files import (
    MIB,
    disk_trouble,
    inside,
    lock,
    read_bytes,
    read_json,
    sha256,
    write_bytes,
    write_json,
    write_text,
)
from wonderland.core.lazy import door
from wonderland.core.memory import keep_freed_memory, peak_megabytes
from wonderland.core.spec import Spec, admit, find, name_of, part, parts

if TYPE_CHECKING:
    from wonderland.core.seeds import mix, permutation, uniform
    from wonderland.core.tensors import digest, flatten, load_tensors, read_header, save_tensors, unflatten

# The shell answers --help before numpy and torch are loaded.
__getattr__, __dir__ = door(
    __name__,
    dict.fromkeys(("mix", "permutation", "uniform"), "wonderland.core.seeds")
    | dict.fromkeys(
        ("digest", "flatten", "load_tensors", "read_header", "save_tensors", "unflatten"), "wonderland.core.tensors"
    ),
)

__all__ = [
    "MIB",
    "Spec",
    "WonderlandError",
    "admit",
    "digest",
    "disk_trouble",
    "door",
    "find",
    "flatten",
    "inside",
    "keep_freed_memory",
    "load_tensors",
    "lock",
    "mix",
    "name_of",
    "nearest",
    "need",
    "part",
    "parts",
    "peak_megabytes",
    "permutation",
    "read_bytes",
    "read_header",
    "read_json",
    "save_tensors",
    "sha256",
    "unflatten",
    "uniform",
    "write_bytes",
    "write_json",
    "write_text",
]
