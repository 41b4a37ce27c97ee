"""What everybody needs: errors, atomic files, seeds, specs, tensors on disk."""

from typing import TYPE_CHECKING

from wonderland.core.errors import WonderlandError, nearest, need
from wonderland.core.files import (
    MIB,
    disk_trouble,
    inside,
    lock,
    open_plain,
    read_bytes,
    read_json,
    sha256,
    write_bytes,
    write_json,
    write_text,
)
from wonderland.core.glance import INPUTS, check_inputs, glance, read_header
from wonderland.core.lazy import door
from wonderland.core.memory import keep_freed_memory, peak_megabytes
from wonderland.core.spec import Part, Spec, admit, find, name_of, part, parts, published
from wonderland.core.written_spec import parse_spec, write_spec

if TYPE_CHECKING:
    from wonderland.core.seeds import mix, permutation, uniform
    from wonderland.core.tensors import digest, flatten, load_tensors, save_tensors, unflatten

# The shell answers --help before numpy and torch are loaded.
_SEEDS, _TENSORS = "wonderland.core.seeds", "wonderland.core.tensors"
_LATER: dict[str, str] = {
    "mix": _SEEDS,
    "permutation": _SEEDS,
    "uniform": _SEEDS,
    "digest": _TENSORS,
    "flatten": _TENSORS,
    "load_tensors": _TENSORS,
    "save_tensors": _TENSORS,
    "unflatten": _TENSORS,
}
__getattr__, __dir__ = door(__name__, _LATER)

__all__ = [
    "INPUTS",
    "MIB",
    "Part",
    "Spec",
    "WonderlandError",
    "admit",
    "check_inputs",
    "digest",
    "disk_trouble",
    "door",
    "find",
    "flatten",
    "glance",
    "inside",
    "keep_freed_memory",
    "load_tensors",
    "lock",
    "mix",
    "name_of",
    "nearest",
    "need",
    "open_plain",
    "parse_spec",
    "part",
    "parts",
    "peak_megabytes",
    "permutation",
    "published",
    "read_bytes",
    "read_header",
    "read_json",
    "save_tensors",
    "sha256",
    "unflatten",
    "uniform",
    "write_bytes",
    "write_json",
    "write_spec",
    "write_text",
]
