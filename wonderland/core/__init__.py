"""What every other folder uses: errors, atomic files, seeds, specs, tensors on disk."""

from typing import TYPE_CHECKING

from wonderland.core.errors import WonderlandError, nearest, need
from wonderland.core.files import (
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
from wonderland.core.lazy import lazy_attributes
from wonderland.core.limits import MIB
from wonderland.core.memory import keep_freed_memory, peak_megabytes
from wonderland.core.precheck import INPUTS, check_inputs, precheck, read_header
from wonderland.core.spec import Part, Spec, admit, find, name_of, part, parts, published
from wonderland.core.written_spec import parse_spec, write_spec

if TYPE_CHECKING:
    from wonderland.core.graph import Graph
    from wonderland.core.graph_input import GraphInput
    from wonderland.core.pattern import SparseRows
    from wonderland.core.seeds import mix, permutation, uniform
    from wonderland.core.tensors import digest, flatten, load_tensors, save_tensors, unflatten

# These modules import numpy or torch; they are loaded at first use, so that `wonderland --help` stays fast.
_SEEDS, _TENSORS = "wonderland.core.seeds", "wonderland.core.tensors"
_LAZY: dict[str, str] = {
    "Graph": "wonderland.core.graph",
    "GraphInput": "wonderland.core.graph_input",
    "SparseRows": "wonderland.core.pattern",
    "mix": _SEEDS,
    "permutation": _SEEDS,
    "uniform": _SEEDS,
    "digest": _TENSORS,
    "flatten": _TENSORS,
    "load_tensors": _TENSORS,
    "save_tensors": _TENSORS,
    "unflatten": _TENSORS,
}
__getattr__, __dir__ = lazy_attributes(__name__, _LAZY)

__all__ = [
    "INPUTS",
    "MIB",
    "Graph",
    "GraphInput",
    "Part",
    "SparseRows",
    "Spec",
    "WonderlandError",
    "admit",
    "check_inputs",
    "digest",
    "disk_trouble",
    "find",
    "flatten",
    "inside",
    "keep_freed_memory",
    "lazy_attributes",
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
    "precheck",
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
