"""A copy of model, loss, optimizer and batch, so that the originals are never changed."""

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
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils._pytree import tree_leaves, tree_map

from wonderland.core import WonderlandError
from wonderland.understand.doctoring.calling import CallArguments, loss_of, model_loss, output_tensor, read_batch

SEED = 0
_STATE = nn.Module | Tensor | dict | list | Optimizer | LRScheduler


class TrainingCopy:
    """Copies of everything that a training step needs.

    `run()` is one forward pass with its loss; `output` and `arguments` are those of the last run. `loss_modules` are modules
    that the loss uses and that are not part of the model.
    """

    def __init__(
        self, model: nn.Module, batch: Any, loss: Any, optimizer: Any = None, lr: float | None = None, step: Any = None
    ):
        memo: dict[int, Any] = {}
        self.loss_modules: list[nn.Module] = []
        for module in _modules(model, loss):
            for value in _tensors(vars(module)):
                if not value.is_leaf:
                    memo[id(value)] = value.detach().clone()
        self.model: nn.Module = _copy(model, memo)
        if not self.model.training:
            self.model.train()
        self.loss = _copy_function(loss, memo, self.loss_modules) if loss is not None else None
        self.batch = tree_map(lambda entry: entry.detach().clone() if isinstance(entry, Tensor) else entry, batch)
        self.optimizer = None if optimizer is None and lr is None else _optimizer(self.model, optimizer, lr, memo)
        if step is not None and self.optimizer is not None:
            memo[id(optimizer)] = self.optimizer
            memo[id(batch)] = self.batch
            self.model.train(model.training)
        self.step = None if step is None else _copy_function(step, memo, self.loss_modules)
        known = {id(module) for module in self.model.modules()}
        self.loss_modules = [module for module in self.loss_modules if id(module) not in known]
        self.arguments: CallArguments | None = None
        self.output: Any = None

    def run(self, seed: int = SEED) -> Tensor:
        """One forward pass and its loss; the same random numbers each time."""
        torch.manual_seed(seed)
        batch = tree_map(lambda entry: entry.clone() if isinstance(entry, Tensor) else entry, self.batch)
        if (function := model_loss(self.loss)) is not None:
            value = function(self.model, batch)
            return loss_of(lambda _: value, self.model, batch, CallArguments((), {}, None), None)
        self.arguments = read_batch(self.model, batch, self.loss)
        self.output = self.model(*self.arguments.args, **self.arguments.kwargs)
        return loss_of(self.loss, self.model, batch, self.arguments, self.output)

    @property
    def output_tensor(self) -> Tensor | None:
        """The output tensor of the model, None where it returned only a loss."""
        try:
            return None if self.output is None else output_tensor(self.output)
        except WonderlandError:
            return None

    def tensors(self) -> list[Tensor]:
        """The tensors of the batch."""
        return [entry for entry in tree_leaves(self.batch) if isinstance(entry, Tensor)]


@contextmanager
def preserved_random_state() -> Iterator[None]:
    """Restore the random states of torch, numpy and Python afterwards, and suppress warnings meanwhile."""
    python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
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
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002


def _modules(*things: Any) -> list[nn.Module]:
    return [module for thing in things if isinstance(thing, nn.Module) for module in thing.modules()]


def _tensors(tree: Any, depth: int = 3) -> list[Tensor]:
    """Tensors in containers nested up to `depth` levels."""
    if isinstance(tree, Tensor):
        return [tree]
    entries = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, tuple | list) else ()
    return [tensor for entry in entries for tensor in _tensors(entry, depth - 1)] if depth else []


def _copy(thing: Any, memo: dict[int, Any]) -> Any:
    try:
        copied = copy.deepcopy(thing, memo)
    except (TypeError, RuntimeError, AttributeError, NotImplementedError) as error:
        message = (str(error).splitlines() or ["no message"])[0]
        raise WonderlandError(
            f"{type(thing).__name__} cannot be copied ({type(error).__name__}: {message}), and the doctor works on a copy."
        ) from error
    if isinstance(thing, nn.Module):
        copied.zero_grad(set_to_none=True)
    return copied


def _copy_function(thing: Any, memo: dict[int, Any], loss_modules: list[nn.Module]) -> Any:
    """A copy of a function whose closure and globals refer to copies of modules, tensors and containers."""
    if id(thing) in memo:
        return memo[id(thing)]
    if isinstance(thing, partial):
        copied = lambda entry: _copy_function(entry, memo, loss_modules)  # noqa: E731
        return partial(
            copied(thing.func), *map(copied, thing.args), **{k: copied(v) for k, v in thing.keywords.items()}
        )
    if isinstance(thing, types.MethodType):
        return types.MethodType(
            _copy_function(thing.__func__, memo, loss_modules), _copy_function(thing.__self__, memo, loss_modules)
        )
    if not isinstance(thing, types.FunctionType):
        if not isinstance(thing, nn.Module | Tensor | dict | list) and not hasattr(thing, "__dict__"):
            return thing
        return thing if isinstance(thing, type | types.ModuleType) else _copy(thing, memo)

    def copied_value(value: Any) -> Any:
        if isinstance(value, nn.Module) and id(value) not in memo:
            loss_modules.append(_copy(value, memo))
        if isinstance(value, types.FunctionType) and value.__module__ == thing.__module__:
            return _copy_function(value, memo, loss_modules)
        if isinstance(value, Tensor) and not value.is_leaf:
            return value.detach().clone()
        return _copy(value, memo) if isinstance(value, _STATE) else value

    names = set(_names(thing.__code__))
    function = types.FunctionType(
        thing.__code__, thing.__globals__, thing.__name__, thing.__defaults__, thing.__closure__
    )
    memo[id(thing)] = function
    cells = tuple(
        types.CellType(copied_value(cell.cell_contents)) if _filled(cell) else cell for cell in thing.__closure__ or ()
    )
    own = {
        k: copied_value(v)
        for k, v in thing.__globals__.items()
        if k in names and isinstance(v, nn.Module | Tensor | types.FunctionType | Optimizer | LRScheduler)
    }
    namespace = {**thing.__globals__, **own} if own else thing.__globals__
    function = types.FunctionType(thing.__code__, namespace, thing.__name__, thing.__defaults__, cells or None)
    function.__kwdefaults__ = thing.__kwdefaults__
    memo[id(thing)] = function
    return function


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


def _optimizer(model: nn.Module, optimizer: Any, lr: float | None, memo: dict[int, Any]) -> torch.optim.Optimizer:
    """The optimizer of the copy: a copy of the one given, one made from a class, or Adam with the learning rate given."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if isinstance(optimizer, torch.optim.Optimizer):
        copied = copy.deepcopy(optimizer, memo)
        if lr is not None:
            for group in copied.param_groups:
                group["lr"] = lr
        return copied
    make: Callable[..., Any] = torch.optim.Adam if optimizer is None else optimizer
    if not callable(make):
        raise WonderlandError(
            f"optimizer is a torch optimizer or a function that makes one from parameters, not a {type(optimizer).__name__}."
        )
    built = make(trained) if lr is None else make(trained, lr=lr)
    if not isinstance(built, torch.optim.Optimizer):
        raise WonderlandError(f"optimizer made a {type(built).__name__}, and the doctor needs a torch optimizer.")
    return built
