"""Sharding: each process keeps a share of the weights, gradients and moments, and the rest only while it is used (FSDP2)."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from wonderland.core import WonderlandError
from wonderland.train.parallel.group import current
from wonderland.train.state import State


def shard(model: nn.Module) -> nn.Module:
    """Divide the weights of a model among the processes, block by block: each block of a list of modules, then the rest.

    Paper: Zhao et al., PyTorch FSDP, 2023.
    """
    group = current()
    mesh = init_device_mesh(next(model.parameters()).device.type, (group.count,))
    for block in blocks_of(model):
        fully_shard(block, mesh=mesh)
    # The root too gives up its weights after a forward pass: an evaluation has no backward pass that would do it.
    fully_shard(model, mesh=mesh, reshard_after_forward=True)
    return model


def blocks_of(model: nn.Module) -> list[nn.Module]:
    """The outermost modules with weights that stand in lists of modules."""
    blocks: list[nn.Module] = []
    for child in model.children():
        if isinstance(child, nn.ModuleList):
            blocks += [block for block in child if any(True for _ in block.parameters())]
        else:
            blocks += blocks_of(child)
    return blocks


def is_sharded(model: nn.Module) -> bool:
    """Whether the weights of a model are divided among processes."""
    return isinstance(model, FSDPModule)


def whole(value: Any) -> Any:
    """The same nested value with whole tensors in place of shares; every process has to call it."""
    if isinstance(value, DTensor):
        return value.full_tensor()
    if isinstance(value, dict):
        return {name: whole(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(whole(entry) for entry in value)
    return value


def like(value: Tensor, model: Tensor) -> Tensor:
    """A whole tensor divided as another one is."""
    if isinstance(model, DTensor) and not isinstance(value, DTensor) and value.shape == model.shape:
        return distribute_tensor(value, model.device_mesh, model.placements)
    return value


class Sharded(State):
    """A state of sharded modules: saved with whole tensors, so that any number of processes can go on from its checkpoint."""

    @staticmethod
    def of(state: State) -> "Sharded":
        """A state before its first step, with its modules divided and its optimizers given the shares."""
        shares: dict[nn.Parameter, nn.Parameter] = {}
        for module in state.modules().values():
            before = dict(module.named_parameters())
            after = dict(shard(module).named_parameters())
            shares |= {before[name]: after[name] for name in before}
        for optimizer in state.parts().values():
            if isinstance(optimizer, torch.optim.Optimizer):
                for group in optimizer.param_groups:
                    group["params"] = [shares[parameter] for parameter in group["params"]]
        return Sharded(**state.parts())

    def state_dict(self) -> dict[str, Any]:
        return whole(super().state_dict())

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        parts = dict(saved["parts"])
        for name, part in self.parts().items():
            if isinstance(part, nn.Module) and name in parts:
                parts[name] = self._divided(part, parts[name])
            elif isinstance(part, torch.optim.Optimizer) and name in parts:
                parts[name] = self._moments(part, parts[name])
        super().load_state_dict({**saved, "parts": parts})

    def _divided(self, module: nn.Module, values: dict[str, Tensor]) -> dict[str, Tensor]:
        own = module.state_dict()
        return {name: like(value, own[name]) if name in own else value for name, value in values.items()}

    def _moments(self, optimizer: torch.optim.Optimizer, saved: dict[str, Any]) -> dict[str, Any]:
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        state = {
            place: {name: like(x, parameters[place]) if isinstance(x, Tensor) else x for name, x in moments.items()}
            for place, moments in saved["state"].items()
        }
        return {**saved, "state": state}

    def snapshot(self) -> dict[str, dict[str, Tensor]]:
        return whole(super().snapshot())

    def restore(self, snapshot: dict[str, dict[str, Tensor]]) -> None:
        for name, values in snapshot.items():
            module = self.__dict__[name]
            module.load_state_dict(self._divided(module, values))


def gathered(model: nn.Module, fresh: nn.Module) -> nn.Module:
    """`fresh`, a model of the same form, with the whole weights of a sharded one; every process has to call it."""
    values = whole(model.state_dict())
    if values.keys() != fresh.state_dict().keys():
        raise WonderlandError("The sharded model and its recipe have other weights: train it without --shard.")
    fresh.load_state_dict(values)
    return fresh
