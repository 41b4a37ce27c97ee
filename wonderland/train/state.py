"""State: everything that training changes, by name, so that it can be saved, copied and restored."""

import random
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError


@runtime_checkable
class Stateful(Protocol):
    """Objects with `state_dict` and `load_state_dict`: modules, optimizers."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


class State:
    """Modules, optimizers and plain values under the names you give them, and the number of steps done.

    Parts with `state_dict` and `load_state_dict` are saved by these; numbers, text, tensors, lists and dicts are saved as
    they are. Your `step(state, batch)` may read and change all of it.

    >>> state = State(model=nn.Linear(2, 1), seen=0)
    >>> state.step, sorted(state.modules())
    (0, ['model'])
    """

    def __init__(self, **parts: Any):
        for name in parts:
            if name in ("step", "parts") or name.startswith("_"):
                raise WonderlandError(f"A part of the state cannot be called {name!r}: choose another name.")
        self.step = 0
        self.__dict__.update(parts)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"this state has no part {name!r}; it has {', '.join(self.parts()) or 'none'}")

    def parts(self) -> dict[str, Any]:
        """Every named part but the step."""
        return {name: value for name, value in self.__dict__.items() if name != "step"}

    def modules(self) -> dict[str, nn.Module]:
        """The parts that are modules."""
        return {name: value for name, value in self.parts().items() if isinstance(value, nn.Module)}

    def state_dict(self) -> dict[str, Any]:
        """All parts as nested dicts of tensors and plain values."""
        parts = {name: part.state_dict() if isinstance(part, Stateful) else part for name, part in self.parts().items()}
        return {"step": self.step, "parts": parts}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Restore from `state_dict`; the parts must have the same names."""
        missing = sorted(set(saved["parts"]) ^ set(self.parts()))
        if missing:
            raise WonderlandError(
                f"The checkpoint and the state differ in {', '.join(missing)}: give the state the parts it had when it was saved."
            )
        if isinstance(saved["step"], bool) or not isinstance(saved["step"], int) or saved["step"] < 0:
            raise TypeError("the step of a checkpoint is a whole number")
        self.step = saved["step"]
        for name, value in saved["parts"].items():
            part = self.__dict__[name]
            if isinstance(part, torch.optim.Optimizer):
                check_moments(part, value)
            if isinstance(part, Stateful):
                part.load_state_dict(value)
            else:
                self.__dict__[name] = value

    def snapshot(self) -> dict[str, dict[str, Tensor]]:
        """Copies of all weights and buffers, module by module."""
        return {
            name: {key: value.detach().clone() for key, value in module.state_dict().items()}
            for name, module in self.modules().items()
        }

    def check_snapshot(self, snapshot: dict[str, dict[str, Tensor]]) -> None:
        """Refuse a snapshot whose names or shapes are not those of the modules."""
        modules = self.modules()
        for name, values in snapshot.items():
            expected = {key: value.shape for key, value in modules[name].state_dict().items()}
            if {key: value.shape for key, value in values.items()} != expected:
                raise ValueError(f"the best weights of {name} have other names or shapes")

    def restore(self, snapshot: dict[str, dict[str, Tensor]]) -> None:
        """Restore the weights of a snapshot."""
        for name, values in snapshot.items():
            self.__dict__[name].load_state_dict(values)


def check_moments(optimizer: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """Refuse moments of other shapes than their parameters: torch does not compare them, and a fused kernel reads past the end."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    index = [place for group in saved["param_groups"] for place in group["params"]]
    if index != list(range(len(parameters))) or len(saved["param_groups"]) != len(optimizer.param_groups):
        raise ValueError("the optimizer has other groups of parameters")
    elementwise = isinstance(optimizer, torch.optim.Adam | torch.optim.AdamW | torch.optim.SGD)
    for place, moments in saved["state"].items():
        parameter = parameters[place]
        for name, moment in moments.items():
            if not isinstance(moment, Tensor):
                continue
            alike = moment.shape == parameter.shape and moment.dtype == parameter.dtype
            if not alike if elementwise and name != "step" else moment.numel() > max(1, 64 * parameter.numel()):
                raise ValueError(f"{name} of parameter {place} has the shape {list(moment.shape)}")
            if elementwise and name == "step" and (moment.numel() != 1 or not moment.is_floating_point()):
                raise ValueError(f"the step of parameter {place} is not a number")


def random_state() -> dict[str, Any]:
    """The state of the global random generators of torch, numpy and Python."""
    kind, keys, position, has_gauss, cached = np.random.get_state(legacy=True)  # noqa: NPY002
    version, numbers, gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "numpy": [str(kind), torch.from_numpy(np.asarray(keys).astype(np.int64)), position, has_gauss, cached],
        "python": [version, torch.tensor(numbers, dtype=torch.int64), gauss],
    }


def set_random_state(saved: dict[str, Any]) -> None:
    """Restore the global random generators from `random_state`."""
    torch.set_rng_state(saved["torch"])
    kind, keys, *rest = saved["numpy"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))  # noqa: NPY002
    version, numbers, gauss = saved["python"]
    random.setstate((version, tuple(numbers.tolist()), gauss))
