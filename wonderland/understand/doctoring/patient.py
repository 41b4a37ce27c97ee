"""The patient: a copy of model, loss, optimizer and batch, so that nothing of the user's changes."""

import copy
import random
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from wonderland.core import WonderlandError
from wonderland.understand.doctoring.feeding import Meal, answer, loss_of, meal, whole

SEED = 0


class Patient:
    """One copy, ready to run. `run()` is one forward pass with its loss; `output` and `given` are those of the last run."""

    def __init__(self, model: nn.Module, batch: Any, loss: Any, optimizer: Any = None, lr: float | None = None):
        memo: dict[int, Any] = {}
        self.outside: list[nn.Module] = []
        for module in _modules(model, loss):
            for value in _held(vars(module)):
                if not value.is_leaf:
                    memo[id(value)] = value.detach().clone()
        self.model: nn.Module = _copy(model, memo)
        if not self.model.training:
            self.model.train()
        self.loss = _function(loss, memo, self.outside) if loss is not None else None
        self.batch = tree_map(lambda entry: entry.detach().clone() if isinstance(entry, Tensor) else entry, batch)
        self.optimizer = None if optimizer is None and lr is None else _rule(self.model, optimizer, lr, memo)
        known = {id(one) for one in self.model.modules()}
        self.outside = [one for one in self.outside if id(one) not in known]
        self.given: Meal | None = None
        self.output: Any = None

    def run(self, seed: int = SEED) -> Tensor:
        """One forward pass and its loss; the same random numbers each time."""
        torch.manual_seed(seed)
        batch = tree_map(lambda entry: entry.clone() if isinstance(entry, Tensor) else entry, self.batch)
        if (function := whole(self.loss)) is not None:
            found = function(self.model, batch)
            return loss_of(lambda _: found, self.model, batch, Meal((), {}, None), None)
        self.given = meal(self.model, batch, self.loss)
        self.output = self.model(*self.given.args, **self.given.kwargs)
        return loss_of(self.loss, self.model, batch, self.given, self.output)

    @property
    def answer(self) -> Tensor | None:
        """The tensor that the model answered with, None where it gave a loss only."""
        try:
            return None if self.output is None else answer(self.output)
        except WonderlandError:
            return None

    def tensors(self) -> list[Tensor]:
        """The tensors of the batch."""
        return [entry for entry in tree_leaves(self.batch) if isinstance(entry, Tensor)]


@contextmanager
def untouched() -> Iterator[None]:
    """Random numbers of torch, numpy and Python go on afterwards as if nothing had happened, and nobody is warned twice."""
    kept, numbers = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with (
            torch.random.fork_rng(devices=[]),
            torch.inference_mode(False),
            torch.enable_grad(),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(kept)
        np.random.set_state(numbers)  # noqa: NPY002


def _modules(*things: Any) -> list[nn.Module]:
    return [module for thing in things if isinstance(thing, nn.Module) for module in thing.modules()]


def _held(tree: Any, depth: int = 3) -> list[Tensor]:
    """Tensors in nested containers, not very deep."""
    if isinstance(tree, Tensor):
        return [tree]
    entries = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, tuple | list) else ()
    return [found for entry in entries for found in _held(entry, depth - 1)] if depth else []


def _copy(thing: Any, memo: dict[int, Any]) -> Any:
    try:
        found = copy.deepcopy(thing, memo)
    except (TypeError, RuntimeError, AttributeError, NotImplementedError) as error:
        said = (str(error).splitlines() or ["no message"])[0]
        raise WonderlandError(
            f"{type(thing).__name__} cannot be copied ({type(error).__name__}: {said}), and the doctor works on a copy only."
        ) from error
    if isinstance(thing, nn.Module):
        found.zero_grad(set_to_none=True)
    return found


def _function(thing: Any, memo: dict[int, Any], outside: list[nn.Module]) -> Any:
    """A function whose closure and globals name copies of the modules, tensors and containers that they named."""
    if id(thing) in memo:
        return memo[id(thing)]
    if isinstance(thing, partial):
        again = lambda entry: _function(entry, memo, outside)  # noqa: E731
        return partial(again(thing.func), *map(again, thing.args), **{k: again(v) for k, v in thing.keywords.items()})
    if isinstance(thing, types.MethodType):
        return types.MethodType(_function(thing.__func__, memo, outside), _function(thing.__self__, memo, outside))
    if not isinstance(thing, types.FunctionType):
        if not isinstance(thing, nn.Module | Tensor | dict | list) and not hasattr(thing, "__dict__"):
            return thing
        return thing if isinstance(thing, type | types.ModuleType) else _copy(thing, memo)

    def inner(value: Any) -> Any:
        if isinstance(value, nn.Module) and id(value) not in memo:
            outside.append(_copy(value, memo))
        if isinstance(value, types.FunctionType) and value.__module__ == thing.__module__:
            return _function(value, memo, outside)
        if isinstance(value, Tensor) and not value.is_leaf:
            return value.detach().clone()
        return _copy(value, memo) if isinstance(value, nn.Module | Tensor | dict | list) else value

    names = set(_names(thing.__code__))
    found = types.FunctionType(thing.__code__, thing.__globals__, thing.__name__, thing.__defaults__, thing.__closure__)
    memo[id(thing)] = found
    cells = tuple(
        types.CellType(inner(cell.cell_contents)) if _filled(cell) else cell for cell in thing.__closure__ or ()
    )
    own = {
        k: inner(v)
        for k, v in thing.__globals__.items()
        if k in names and isinstance(v, nn.Module | Tensor | types.FunctionType)
    }
    whole = {**thing.__globals__, **own} if own else thing.__globals__
    found = types.FunctionType(thing.__code__, whole, thing.__name__, thing.__defaults__, cells or None)
    found.__kwdefaults__ = thing.__kwdefaults__
    memo[id(thing)] = found
    return found


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _rule(model: nn.Module, optimizer: Any, lr: float | None, memo: dict[int, Any]) -> torch.optim.Optimizer:
    """The update rule on the copy: the user's own, one made from a class, or Adam with the learning rate given."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if isinstance(optimizer, torch.optim.Optimizer):
        found = copy.deepcopy(optimizer, memo)
        if lr is not None:
            for group in found.param_groups:
                group["lr"] = lr
        return found
    make: Callable[..., Any] = torch.optim.Adam if optimizer is None else optimizer
    if not callable(make):
        raise WonderlandError(
            f"optimizer is a torch optimizer or a function that makes one from parameters, not a {type(optimizer).__name__}."
        )
    found = make(trained) if lr is None else make(trained, lr=lr)
    if not isinstance(found, torch.optim.Optimizer):
        raise WonderlandError(f"optimizer made a {type(found).__name__}, and the doctor needs a torch optimizer.")
    return found
