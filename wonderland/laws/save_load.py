"""Save and load: a block saved to a file and loaded gives bitwise equal outputs."""

import copy
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import Spec, flatten, load_tensors, save_tensors, unflatten
from wonderland.laws.compare import gap, same_bits
from wonderland.laws.subject import BLOCK_DTYPE, Subject, law, reported_failures
from wonderland.laws.verdict import Verdict


@law(dtype=BLOCK_DTYPE, compares=False)
def save_load(subject: Subject) -> Verdict:
    """Saved to a safetensors file and loaded into a fresh copy, a block gives bitwise equal outputs.

    The block first runs once in training mode. The fresh copy is taken before that, and its parameters, saved buffers, and
    trainable tensors in lists, dictionaries and plain attributes are replaced by random numbers, so everything that training
    changes must be in the file. A block that has its `Spec` as
    `.spec` is also built from that spec's JSON.
    """
    fresh = copy.deepcopy(subject.block)
    with suppress(Exception):  # a block that cannot train can still be saved
        subject.block.train()
        subject.run()
    subject.block.eval()
    with torch.no_grad():
        before = subject.run()
    _randomize(fresh, subject)
    with reported_failures("when it was saved and loaded"):
        fresh.load_state_dict(_through_file(dict(subject.block.state_dict())))
    witness = _difference(subject, fresh, before)
    if witness:
        return subject.verdict(float("inf"), 0.0, witness)
    spec = vars(subject.block).get("spec")
    if isinstance(spec, Spec):
        with reported_failures("when it was built from its spec"):
            built = Spec.from_json(spec.to_json(), own=spec.own_parts()).build().to(subject.dtype).eval()
            built.load_state_dict(_through_file(dict(subject.block.state_dict())))
        if witness := _difference(subject, built, before):
            return subject.verdict(float("inf"), 0.0, f"built from its spec, {witness}")
    return subject.verdict(0.0, 0.0)


def _difference(subject: Subject, fresh: nn.Module, before: Tensor) -> str:
    original, subject.block = subject.block, fresh.eval()
    with torch.no_grad():
        after = subject.run(when="after it was loaded")
    subject.block = original
    if same_bits(after, before):
        return ""
    _, amount, place = gap(after, before)
    lost = [name for name, a, b in _unsaved(original, fresh) if not same_bits(a, b)]
    if learned := [name for name, _ in _learned(original) if name not in original.state_dict()]:
        return f"{subject.place(place)} moved by {amount:.2g} after loading: {learned[0]} is trained and not in the state dict"
    reason = f": {lost[0]} is not in the state dict and changed in training" if lost else ""
    return f"{subject.place(place)} moved by {amount:.2g} after loading{reason}"


def _unsaved(original: nn.Module, fresh: nn.Module) -> Iterable[tuple[str, Tensor, Tensor]]:
    """(name, tensor, tensor) of two copies for what is not in the state dict: non-persistent buffers, plain attributes."""
    saved = set(original.state_dict())
    copies = dict(fresh.named_modules())
    for path, module in original.named_modules():
        tensors, fresh_tensors = _tensors(module), _tensors(copies.get(path, nn.Module()))
        for name in tensors.keys() & fresh_tensors.keys():
            full = f"{path}.{name}" if path else name
            if full not in saved:
                yield full, tensors[name], fresh_tensors[name]


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    plain = {name: value for name, value in vars(module).items() if isinstance(value, Tensor)}
    return plain | dict(module.named_buffers(recurse=False))


def _learned(block: nn.Module) -> Iterable[tuple[str, Tensor]]:
    """(name, tensor) of all that is trained: parameters, and trainable tensors that no module has registered."""
    seen: set[int] = set()
    pending: list[tuple[str, Any]] = [("", block)]
    while pending:
        path, thing = pending.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, Tensor):
            if thing.requires_grad and thing.is_leaf:
                yield path, thing
        elif isinstance(thing, nn.Module):
            dot = f"{path}." if path else ""
            inner = {
                key: value for key, value in vars(thing).items() if key not in ("_parameters", "_modules", "_buffers")
            }
            pending += [(f"{dot}{key}", value) for key, value in inner.items()]
            pending += [(f"{dot}{key}", value) for key, value in (*thing._parameters.items(), *thing._modules.items())]
        elif isinstance(thing, Mapping):
            pending += [(f"{path}[{key!r}]", value) for key, value in thing.items()]
        elif isinstance(thing, list | tuple):
            pending += [(f"{path}[{key}]", value) for key, value in enumerate(thing)]


def _randomize(block: nn.Module, subject: Subject) -> None:
    """Replace what is trained and everything in the state dict: floating point tensors by random numbers, others by zeros."""
    with torch.no_grad():
        for _, value in _learned(block):
            value.copy_(subject.noise(value))
        for value in block.state_dict().values():
            if isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex()):
                value.copy_(subject.noise(value))
            elif isinstance(value, Tensor):
                value.zero_()


def _through_file(state: dict[str, Any]) -> dict[str, Any]:
    """A state dict written to a file and read back: tied weights are written twice, complex numbers as real pairs."""
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
    loaded = unflatten(tensors, meta["skeleton"])
    return {name: torch.view_as_complex(value) if name in complex_names else value for name, value in loaded.items()}
