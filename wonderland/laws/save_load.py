"""Save and load: what a block learned goes through a file and comes back, to the bit."""

import copy
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import Spec, flatten, load_tensors, save_tensors, unflatten
from wonderland.laws.compare import gap, same_bits
from wonderland.laws.subject import OWN, Subject, law, speaking
from wonderland.laws.verdict import Verdict


@law(dtype=OWN, compares=False)
def save_load(subject: Subject) -> Verdict:
    """Saved to a safetensors file and loaded into a fresh copy, a block gives the same bits.

    The block first makes a step in training mode; the fresh copy is as the block was before, its parameters and saved
    buffers drawn anew. So whatever training moves must be in the file. A block that holds its own `Spec` as `.spec` is
    also built again from that spec's JSON.
    """
    fresh = copy.deepcopy(subject.block)
    with suppress(Exception):  # a block that cannot train can still be saved
        subject.block.train()
        subject.run()
    subject.block.eval()
    with torch.no_grad():
        before = subject.run()
    _scramble(fresh, subject)
    with speaking("when it was saved and loaded"):
        fresh.load_state_dict(_through_file(dict(subject.block.state_dict())))
    words = _difference(subject, fresh, before)
    if words:
        return subject.verdict(float("inf"), 0.0, words)
    spec = vars(subject.block).get("spec")
    if isinstance(spec, Spec):
        with speaking("when it was built from its spec"):
            built = Spec.from_json(spec.to_json(), own=spec.own_parts()).build().to(subject.dtype).eval()
            built.load_state_dict(_through_file(dict(subject.block.state_dict())))
        if words := _difference(subject, built, before):
            return subject.verdict(float("inf"), 0.0, f"built from its spec, {words}")
    return subject.verdict(0.0, 0.0)


def _difference(subject: Subject, fresh: nn.Module, before: Tensor) -> str:
    old, subject.block = subject.block, fresh.eval()
    with torch.no_grad():
        after = subject.run(when="after it was loaded")
    subject.block = old
    if same_bits(after, before):
        return ""
    _, amount, place = gap(after, before)
    lost = [name for name, one, other in _unsaved(old, fresh) if not same_bits(one, other)]
    told = f": {lost[0]} is not in the state dict and changed in training" if lost else ""
    return f"{subject.place(place)} moved by {amount:.2g} after loading{told}"


def _unsaved(one: nn.Module, other: nn.Module) -> Iterable[tuple[str, Tensor, Tensor]]:
    """Tensors of two copies that are not in the state dict: buffers kept out of it, and plain attributes."""
    saved = set(one.state_dict())
    copies = dict(other.named_modules())
    for path, module in one.named_modules():
        mine, theirs = _tensors(module), _tensors(copies.get(path, nn.Module()))
        for name in mine.keys() & theirs.keys():
            full = f"{path}.{name}" if path else name
            if full not in saved:
                yield full, mine[name], theirs[name]


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    plain = {name: value for name, value in vars(module).items() if isinstance(value, Tensor)}
    return plain | dict(module.named_buffers(recurse=False))


def _scramble(block: nn.Module, subject: Subject) -> None:
    """Everything the state dict holds, drawn anew."""
    with torch.no_grad():
        for value in block.state_dict().values():
            if isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex()):
                value.copy_(subject.noise(value))
            elif isinstance(value, Tensor):
                value.zero_()


def _through_file(state: dict[str, Any]) -> dict[str, Any]:
    """A state dict after a trip to the disk: tied weights are written twice, complex numbers as pairs."""
    complex_names = [name for name, value in state.items() if isinstance(value, Tensor) and value.is_complex()]
    plain = {
        name: (torch.view_as_real(value.detach()) if name in complex_names else value.detach()).clone()
        if isinstance(value, Tensor)
        else value
        for name, value in state.items()
    }
    tensors, skeleton = flatten(plain)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "block.safetensors"
        save_tensors(path, tensors, {"skeleton": skeleton})
        tensors, meta = load_tensors(path)
    found = unflatten(tensors, meta["skeleton"])
    return {name: torch.view_as_complex(value) if name in complex_names else value for name, value in found.items()}
