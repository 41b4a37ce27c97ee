"""The block under test: a copy in eval mode, called without side effects on the user's module, inputs or random state."""

import copy
import inspect
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, wraps
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from wonderland.core import WonderlandError
from wonderland.laws.compare import same_bits
from wonderland.laws.example import Example
from wonderland.laws.verdict import BROKEN, HOLDS, NOT_APPLICABLE, Verdict

Law = Callable[..., Verdict]
LAWS: dict[str, Law] = {}
BLOCK_DTYPE = None  # check a block in the dtype of its parameters


class NotApplicable(Exception):
    """The law does not apply to this block or example; the message is the reason."""


class Failed(Exception):
    """The block raised an error where the law requires an output."""


def law(
    function: Callable[..., Verdict] | None = None, *, dtype: torch.dtype | None = torch.float64, compares: bool = True
) -> Any:
    """Decorator that makes a law of a check of a `Subject`: a function law(block, example) -> Verdict, known by its name.

    `dtype` is what the block is converted to (None: that of its parameters). A law that `compares` outputs is broken if an
    output is NaN, since NaN cannot be compared. Other arguments of the check are options, with defaults.

    >>> @law
    ... def odd(subject):
    ...     error = float((subject.run(-subject.x) + subject.base).abs().max())
    ...     return subject.verdict(error, 1e-12, f"f(-x) and -f(x) differ by {error:.2g}")
    >>> print(odd(nn.Tanh(), torch.randn(2, 3)))
    odd: holds, error 0 (allowed 1e-12)
    >>> del LAWS["odd"]
    """
    if function is None:
        return lambda decorated: law(decorated, dtype=dtype, compares=compares)
    name = _checked_name(function)

    @wraps(function)
    def checked(block: nn.Module, example: Any = None, **options: Any) -> Verdict:
        check_module(block)
        with undisturbed():
            subject = Subject(name, block, Example.of(example, block), dtype)
            try:
                verdict = checked_verdict(function(subject, **options), name)
                if compares and verdict.outcome != NOT_APPLICABLE:
                    subject.check_not_nan()
                return verdict
            except NotApplicable as reason:
                return Verdict(name, NOT_APPLICABLE, witness=str(reason))
            except Failed as fault:
                return Verdict(name, BROKEN, witness=str(fault))

    LAWS[name] = checked
    return checked


def _checked_name(function: Any) -> str:
    """The name of a check, if it has the signature of one and no other law has its name."""
    if not inspect.isfunction(function):
        raise WonderlandError(f"@law goes before a function, not before a {type(function).__name__}.")
    name = function.__name__
    arguments = list(inspect.signature(function).parameters.values())
    positional = [a for a in arguments if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD)]
    required = [a.name for a in arguments if a.default is a.empty and a.kind not in (a.VAR_POSITIONAL, a.VAR_KEYWORD)]
    if not positional or required != [positional[0].name]:
        raise WonderlandError(
            f"The law {name} takes ({', '.join(a.name for a in arguments)}): a law takes one argument, the subject, and options "
            f"with defaults. Write def {name}(subject) -> Verdict; subject.block is the module, subject.x the input."
        )
    known = LAWS.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (function.__module__, function.__qualname__):
        raise WonderlandError(f"There is a law {name} in {known.__module__} already: choose another name.")
    return name


def checked_verdict(verdict: Any, name: str) -> Verdict:
    """What a law returned, if it is a verdict."""
    if isinstance(verdict, Verdict):
        return verdict
    raise WonderlandError(
        f"The law {name} returned {'None' if verdict is None else f'a {type(verdict).__name__}'} and not a Verdict: end it with "
        "return subject.verdict(error, tolerance, witness)."
    )


def check_module(block: Any) -> None:
    """Raise an error unless `block` is a torch module."""
    if isinstance(block, nn.Module):
        return
    actual = f"the class {block.__name__}: build it first" if isinstance(block, type) else f"a {type(block).__name__}"
    raise WonderlandError(f"Laws are checked on a torch module, not on {actual}.")


@contextmanager
def undisturbed() -> Iterator[None]:
    """A context that restores the global random generators and the grad mode."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 (blocks may draw from it)
    try:
        with torch.random.fork_rng(), torch.inference_mode(False), torch.enable_grad():
            torch.manual_seed(0)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


class Subject:
    """A copy of a block with its example, both in the dtype that a law asks for (float64 by default).

    `base` is the output on the unchanged example; `writes` names an input that the block writes into, "" if none.
    """

    def __init__(self, law: str, block: nn.Module, example: Example, dtype: torch.dtype | None):
        self.law = law
        self.name = type(block).__name__
        self.generator = torch.Generator().manual_seed(1)
        self.writes = ""
        if 0 in example.input.shape:
            raise WonderlandError(
                f"The input of this example has the shape {tuple(example.input.shape)}, so it is empty: "
                "give at least one row and one position."
            )
        block = _initialized(block, example)
        own = next((value.dtype for value in block.parameters() if value.is_floating_point()), torch.float32)
        for self.dtype in (dtype or own, own):
            self.block, self.example = _copy_in(block, self.dtype), _example_in(example, self.dtype)
            original = _example_in(example, self.dtype)
            try:
                with torch.no_grad():
                    self.base = self.run()
                self._restore(original)
                return
            except Failed as error:
                fault = error  # modules may hold tensors that are not converted: try again in the block's own dtype
        raise WonderlandError(f"{self.name} could not be called on this example: {fault}.")

    @property
    def x(self) -> Tensor:
        """The input that laws change."""
        return self.example.input

    @cached_property
    def computes_in(self) -> torch.dtype:
        """The least precise dtype between inputs and outputs: some modules compute in float32 whatever they are given."""
        x = self.x
        if x.is_floating_point() or x.is_complex():
            x = x.clone().requires_grad_()
        with torch.enable_grad(), _DtypeWatch() as watch:
            self.run(x)
        return max([self.dtype, *watch.seen], key=lambda dtype: torch.finfo(dtype).eps)

    @property
    def precise(self) -> bool:
        """Whether everything is computed in float64."""
        return self.computes_in == torch.float64

    @property
    def tolerance_factor(self) -> float:
        """How much larger errors may be than in float64, given the dtype that the block computes in."""
        return {torch.float64: 1.0, torch.float32: 1e5}.get(self.computes_in, 1e7)

    def run(
        self,
        x: Tensor | None = None,
        *,
        when: str = "",
        example: Example | None = None,
        more: dict[str, Any] | None = None,
    ) -> Tensor:
        """The output of the block, for another input or more keyword arguments if given; `when` completes error messages."""
        example = self.example if example is None else example
        if x is not None or more:
            example = example.holding(example.input if x is None else x, **(more or {}))
        if self.writes:
            example = example.over(lambda _, value: value.clone())
        with reported_failures(when):
            answer = self.block(*example.args, **example.kwargs)
        output = example.pick(answer)
        if not isinstance(output, Tensor):
            raise WonderlandError(f"output= must lead to a tensor, not to a {type(output).__name__}.")
        return output

    def _restore(self, original: Example) -> None:
        """Record which input the block wrote into, if any, and restore it: later calls get copies."""

        def differs(place: int | str, value: Tensor) -> Tensor:
            before = original.args[place] if isinstance(place, int) else original.kwargs[place]
            if not self.writes and not same_bits(value, before):
                self.writes = "its input" if place == original.place else f"argument {place}"
            return value

        self.example.over(differs)
        if self.writes:
            self.example, self.base = original, self.base.clone()

    def check_not_nan(self) -> None:
        """Raise Failed if the output on the example contains NaN."""
        if not self.base.isnan().any():
            return
        index = tuple(int(number) for number in self.base.isnan().nonzero()[0])
        finite = not (self.x.is_floating_point() or self.x.is_complex()) or bool(self.x.isfinite().all())
        raise Failed(
            f"{self.place(index)} is NaN on the example itself{'' if finite else ', whose input is not finite'}, "
            "so that answers cannot be compared"
        )

    def stream(self, x: Tensor, state: Any, mask: Tensor | None = None, *, when: str = "") -> tuple[Tensor, Any]:
        """One piece of a sequence through the block's `stream`."""
        with reported_failures(when):
            y, state = self.block.stream(x, state, **({} if mask is None else {"mask": mask}))  # pyright: ignore[reportCallIssue]
        return self.example.pick(y), state

    def takes(self, name: str, method: str = "forward") -> bool:
        """Whether a method of the block has an argument of that name."""
        try:
            arguments = inspect.signature(getattr(self.block, method)).parameters
        except (TypeError, ValueError):
            return False
        return name in arguments

    def takes_any_name(self) -> bool:
        """Whether the block's forward takes keyword arguments of any name, as wrappers of other modules do."""
        try:
            arguments = inspect.signature(self.block.forward).parameters.values()
        except (TypeError, ValueError):
            return False
        return any(argument.kind is argument.VAR_KEYWORD for argument in arguments)

    def arguments(self) -> list[str]:
        """The names of the arguments of the block's forward, in order."""
        try:
            return list(inspect.signature(self.block.forward).parameters)
        except (TypeError, ValueError):
            return []

    def requires(self, name: str) -> bool:
        """Whether the block's forward cannot be called without an argument."""
        try:
            argument = inspect.signature(self.block.forward).parameters.get(name)
        except (TypeError, ValueError):
            return False
        return argument is not None and argument.default is inspect.Parameter.empty

    def parameters(self) -> list[tuple[str, nn.Parameter]]:
        """The trainable parameters, with their names."""
        return [(name, value) for name, value in self.block.named_parameters() if value.requires_grad]

    def positions(self, name: str | None = None) -> tuple[int, int, int]:
        """(axis of positions in the input, in the output, number of positions); NotApplicable if there are none.

        `name` is the axis, such as "height"; by default that of time, or else of nodes.
        """
        if name is None:
            axis, out = self.sequence(), self.example.axis("time", "output")
            out = self.example.axis("node", "output") if out is None else out
        else:
            axis, out = self.example.axis(name), self.example.axis(name, "output")
            if axis is None or axis >= self.x.dim():
                raise NotApplicable(f"the input has no axis of {name}")
        t = self.x.shape[axis]
        if out is None or self.base.dim() <= out or self.base.shape[out] != t:
            shape, along = tuple(self.base.shape), "" if name is None else f" along {name}"
            raise NotApplicable(f"the output of shape {shape} does not have the {t} positions of the input{along}")
        return axis, out, t

    def pools(self, more: Callable[[Tensor], dict[str, Any]] = lambda x: {}) -> bool:
        """Whether the block pools over positions: its output has the same shape for a shorter or longer input.

        `more` gives the keyword arguments that go with an input.
        """
        axis, out = self.sequence(), self.example.axis("time", "output")
        t, base = self.x.shape[axis], self.base
        if out is None or base.dim() < self.x.dim() or base.dim() <= out:
            return True
        other = self.x.narrow(axis, 0, t - 1) if t > 1 else torch.cat([self.x, self.x], axis)
        with torch.no_grad():
            output = self.run(other, when=f"with {other.shape[axis]} positions", more=more(other))
        return output.shape == base.shape

    def sequence(self) -> int:
        """The axis of tokens or nodes in the input; NotApplicable if there is none."""
        for name in ("time", "node"):
            axis = self.example.axis(name)
            if axis is not None and axis < self.x.dim():
                return axis
        raise NotApplicable("the input has no axis of time")

    def noise(self, like: Tensor) -> Tensor:
        """Normal random numbers like a tensor."""
        drawn = torch.randn(like.shape, generator=self.generator, dtype=torch.float64)
        return drawn.to(device=like.device, dtype=like.dtype)

    def changed(self, x: Tensor, where: Tensor | None = None) -> Tensor:
        """The input with all values changed, or those that `where` marks: noise is added to numbers, tokens become others."""
        if x.is_floating_point() or x.is_complex():
            new = x + self.noise(x) + 0.1
        else:
            vocab = self.vocab(x)
            step = torch.randint(1, vocab, x.shape, generator=self.generator).to(x)
            new = (x + step) % vocab
        return new if where is None else torch.where(where, new, x)

    def vocab(self, x: Tensor) -> int:
        """How many values a token has."""
        vocab = self.example.vocab or int(x.max()) + 1
        if vocab < 2:
            raise NotApplicable("tokens have one value only, so that none can be changed")
        return vocab

    def place(self, index: tuple[int, ...]) -> str:
        """The position of an entry of the output in words: "output 3 (row 0)"."""
        axes = {name: self.example.axis(name, "output") for name in ("time", "node", "height", "width", "batch")}
        position = {name: index[axis] for name, axis in axes.items() if axis is not None and axis < len(index)}
        axis = self.example.axis("time")
        if "time" in position and axis is not None and len(index) < self.x.dim() and self.base.dim() < self.x.dim():
            position.pop("time")  # an output with fewer axes than the input has been pooled
        row = f" (row {position.pop('batch')})" if "batch" in position else ""
        spot = ", ".join(str(number) for number in position.values())
        return f"output {spot}{row}" if spot else f"the output{row}"

    def verdict(self, error: float, tolerance: float, witness: str = "", *, note: str = "") -> Verdict:
        """The verdict for this error, with `witness` if the law is broken and `note` if it holds."""
        broken = not error <= tolerance
        return Verdict(self.law, BROKEN if broken else HOLDS, error, tolerance, witness if broken else note)


class _DtypeWatch(TorchFunctionMode):
    """Records the dtypes of tensors that gradients flow through."""

    def __init__(self):
        super().__init__()
        self.seen: set[torch.dtype] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.is_floating_point() and result.requires_grad:
            self.seen.add(result.dtype)
        return result


@contextmanager
def reported_failures(when: str) -> Iterator[None]:
    """Turn an exception of the block into `Failed`, with its type and message."""
    try:
        yield
    except (Failed, NotApplicable):
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no message"]
        raise Failed(f"it raised {type(error).__name__} ({lines[0]}){' ' if when else ''}{when}") from error


def _initialized(block: nn.Module, example: Example) -> nn.Module:
    """The block; if it has lazy parameters, a copy whose shapes were set by calling it once."""
    if not any(is_lazy(value) for value in (*block.parameters(), *block.buffers())):
        return block
    copied = _deep_copy(block)
    try:
        with torch.no_grad():
            copied(*_example_in(example, torch.float32).args, **_example_in(example, torch.float32).kwargs)
    except Exception as error:
        raise WonderlandError(
            f"{type(block).__name__} gets its shapes at the first call, which failed on this example: {error}."
        ) from error
    return copied


def _deep_copy(block: nn.Module) -> nn.Module:
    """A copy in eval mode; non-leaf tensors that a module keeps, which deepcopy refuses, are detached."""
    kept = [value for module in block.modules() for value in vars(module).values() if isinstance(value, Tensor)]
    kept += list(block.buffers())
    memo: dict[int, Any] = {id(value): value.detach().clone() for value in kept if not value.is_leaf}
    try:
        return copy.deepcopy(block, memo).eval()
    except Exception as error:
        reason = (str(error).splitlines() or ["no message"])[0]
        raise WonderlandError(
            f"Laws are checked on a copy, and {type(block).__name__} cannot be copied: copy.deepcopy raised "
            f"{type(error).__name__} ({reason})."
        ) from error


def _copy_in(block: nn.Module, dtype: torch.dtype) -> nn.Module:
    copied = _deep_copy(block)
    copied.zero_grad(set_to_none=True)
    return copied._apply(lambda value: _tensor_in(value, dtype))


def _example_in(example: Example, dtype: torch.dtype) -> Example:
    # Cloned, so that a block that writes into its input does not change the user's tensor.
    return example.over(lambda _, value: _tensor_in(value.detach().clone(), dtype))


def _tensor_in(value: Tensor, dtype: torch.dtype) -> Tensor:
    """A tensor converted to a floating point dtype or its complex counterpart; inference tensors become normal ones."""
    wide = torch.complex128 if dtype == torch.float64 else torch.complex64
    converted = value.to(dtype if value.is_floating_point() else wide if value.is_complex() else value.dtype)
    return converted.clone() if converted.is_inference() else converted
