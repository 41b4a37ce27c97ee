"""A block under test: a copy in eval mode, called without disturbing anything of the user's."""

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
from wonderland.laws.verdict import BROKEN, HOLDS, UNFIT, Verdict

Law = Callable[..., Verdict]
LAWS: dict[str, Law] = {}
OWN = None  # judge a block in the numbers it has


class Unfit(Exception):
    """The law says nothing about this block or example, and here is why."""


class Failed(Exception):
    """The block raised where the law says that it answers."""


def law(
    function: Callable[..., Verdict] | None = None, *, dtype: torch.dtype | None = torch.float64, compares: bool = True
) -> Any:
    """Make a law of a function that judges a `Subject`: called as law(block, example), it answers with a verdict.

    A law that compares answers says nothing where they are NaN, so such an answer breaks it.
    """
    if function is None:
        return lambda found: law(found, dtype=dtype, compares=compares)
    name = function.__name__

    @wraps(function)
    def judge(block: nn.Module, example: Any = None, **options: Any) -> Verdict:
        check_module(block)
        with undisturbed():
            subject = Subject(name, block, Example.of(example, block), dtype)
            try:
                found = function(subject, **options)
                if compares and found.outcome != UNFIT:
                    subject.check_numbers()
                return found
            except Unfit as reason:
                return Verdict(name, UNFIT, witness=str(reason))
            except Failed as fault:
                return Verdict(name, BROKEN, witness=str(fault))

    LAWS[name] = judge
    return judge


def check_module(block: Any) -> None:
    """Say so when something else than a module is to be checked."""
    if isinstance(block, nn.Module):
        return
    what = f"the class {block.__name__}: build it first" if isinstance(block, type) else f"a {type(block).__name__}"
    raise WonderlandError(f"Laws are checked on a torch module, not on {what}.")


@contextmanager
def undisturbed() -> Iterator[None]:
    """Leave the global random numbers and grad mode as they were."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 (blocks may draw from it)
    try:
        with torch.random.fork_rng(), torch.inference_mode(False), torch.enable_grad():
            torch.manual_seed(0)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


class Subject:
    """A copy of a block with its example, both in the numbers a law asks for (float64 unless it says otherwise)."""

    def __init__(self, law: str, block: nn.Module, example: Example, dtype: torch.dtype | None):
        self.law = law
        self.name = type(block).__name__
        self.generator = torch.Generator().manual_seed(1)
        self.writes = ""
        if 0 in example.input.shape:
            raise WonderlandError(
                f"The input of this example has the shape {tuple(example.input.shape)}, so nothing is in it: "
                "give at least one row and one position."
            )
        block = _with_shapes(block, example)
        own = next((value.dtype for value in block.parameters() if value.is_floating_point()), torch.float32)
        for self.dtype in (dtype or own, own):
            self.block, self.example = _converted(block, self.dtype), _numbers(example, self.dtype)
            given = _numbers(example, self.dtype)
            try:
                with torch.no_grad():
                    self.base = self.run()
                self._restore(given)
                return
            except Failed as found:
                fault = found  # foreign modules may hold tensors that nobody converts: they are judged as they are
        raise WonderlandError(f"{self.name} could not be called on this example: {fault}.")

    @property
    def x(self) -> Tensor:
        """The input that is changed."""
        return self.example.input

    @cached_property
    def computes_in(self) -> torch.dtype:
        """The coarsest numbers between inputs and outputs: some modules compute in float32 whatever they are given."""
        x = self.x
        if x.is_floating_point() or x.is_complex():
            x = x.clone().requires_grad_()
        with torch.enable_grad(), _Watch() as watch:
            self.run(x)
        return max([self.dtype, *watch.seen], key=lambda dtype: torch.finfo(dtype).eps)

    @property
    def precise(self) -> bool:
        """Whether everything is computed in float64."""
        return self.computes_in == torch.float64

    @property
    def coarse(self) -> float:
        """How much larger errors may be than in float64."""
        return {torch.float64: 1.0, torch.float32: 1e5}.get(self.computes_in, 1e7)

    def run(
        self,
        x: Tensor | None = None,
        *,
        when: str = "",
        example: Example | None = None,
        more: dict[str, Any] | None = None,
    ) -> Tensor:
        """The part of the block's answer that counts, with another input in the place of the example's."""
        example = self.example if example is None else example
        if x is not None or more:
            example = example.holding(example.input if x is None else x, **(more or {}))
        if self.writes:
            example = example.over(lambda _, value: value.clone())
        with speaking(when):
            answer = self.block(*example.args, **example.kwargs)
        found = example.pick(answer)
        if not isinstance(found, Tensor):
            raise WonderlandError(f"output= must lead to a tensor, not to a {type(found).__name__}.")
        return found

    def _restore(self, given: Example) -> None:
        """Note which input the block wrote into, if any, and put back what stood there: later calls get copies."""

        def differs(place: int | str, value: Tensor) -> Tensor:
            held = given.args[place] if isinstance(place, int) else given.kwargs[place]
            if not self.writes and not same_bits(value, held):
                self.writes = "its input" if place == given.place else f"argument {place}"
            return value

        self.example.over(differs)
        if self.writes:
            self.example, self.base = given, self.base.clone()

    def check_numbers(self) -> None:
        """Refuse an answer with NaN in it, which equals nothing and shows nothing."""
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
        with speaking(when):
            y, state = self.block.stream(x, state, **({} if mask is None else {"mask": mask}))  # pyright: ignore[reportCallIssue]
        return self.example.pick(y), state

    def takes(self, name: str, method: str = "forward") -> bool:
        """Whether a method of the block has an argument of that name."""
        try:
            known = inspect.signature(getattr(self.block, method)).parameters
        except (TypeError, ValueError):
            return False
        return name in known

    def parameters(self) -> list[tuple[str, nn.Parameter]]:
        """The parameters that learn, with their names."""
        return [(name, value) for name, value in self.block.named_parameters() if value.requires_grad]

    def positions(self) -> tuple[int, int, int]:
        """(axis of time in the input, axis of time in the output, number of positions), or why there is none."""
        axis, out = self.sequence(), self.example.axis("time", "output")
        out = self.example.axis("node", "output") if out is None else out
        t = self.x.shape[axis]
        if out is None or self.base.dim() <= out or self.base.shape[out] != t:
            shape = tuple(self.base.shape)
            raise Unfit(f"the output of shape {shape} does not have the {t} positions of the input")
        return axis, out, t

    def pools(self) -> bool:
        """Whether the output has no positions of its own: it is as long for a shorter or longer input."""
        axis, out = self.sequence(), self.example.axis("time", "output")
        t, base = self.x.shape[axis], self.base
        if out is None or base.dim() < self.x.dim() or base.dim() <= out:
            return True
        other = self.x.narrow(axis, 0, t - 1) if t > 1 else torch.cat([self.x, self.x], axis)
        with torch.no_grad():
            found = self.run(other, when=f"with {other.shape[axis]} positions")
        return found.shape == base.shape

    def sequence(self) -> int:
        """The axis of the input along which tokens or nodes stand, or why there is none."""
        for name in ("time", "node"):
            axis = self.example.axis(name)
            if axis is not None and axis < self.x.dim():
                return axis
        raise Unfit("the input has no axis of time")

    def noise(self, like: Tensor) -> Tensor:
        """Normal random numbers like a tensor."""
        drawn = torch.randn(like.shape, generator=self.generator, dtype=torch.float64)
        return drawn.to(device=like.device, dtype=like.dtype)

    def changed(self, x: Tensor, where: Tensor | None = None) -> Tensor:
        """The input with other values (where a mask says so): every number moves, every token becomes another."""
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
            raise Unfit("tokens have one value only, so that none can be changed")
        return vocab

    def place(self, index: tuple[int, ...]) -> str:
        """Where an entry of the output stands: "output 3 (row 0)"."""
        words = {name: self.example.axis(name, "output") for name in ("time", "node", "height", "width", "batch")}
        seen = {name: index[axis] for name, axis in words.items() if axis is not None and axis < len(index)}
        axis = self.example.axis("time")
        if "time" in seen and axis is not None and len(index) < self.x.dim() and self.base.dim() < self.x.dim():
            seen.pop("time")  # an output with fewer axes than the input has been pooled
        row = f" (row {seen.pop('batch')})" if "batch" in seen else ""
        spot = ", ".join(str(number) for number in seen.values())
        return f"output {spot}{row}" if spot else f"the output{row}"

    def verdict(self, error: float, tolerance: float, witness: str = "", *, note: str = "") -> Verdict:
        """Holds or broken by the error; the witness speaks where it is broken, the note where it holds."""
        broken = not error <= tolerance
        return Verdict(self.law, BROKEN if broken else HOLDS, error, tolerance, witness if broken else note)


class _Watch(TorchFunctionMode):
    """Notes the types of the numbers that gradients flow through."""

    def __init__(self):
        super().__init__()
        self.seen: set[torch.dtype] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if isinstance(found, Tensor) and found.is_floating_point() and found.requires_grad:
            self.seen.add(found.dtype)
        return found


@contextmanager
def speaking(when: str) -> Iterator[None]:
    """Turn what a block raises into words."""
    try:
        yield
    except (Failed, Unfit):
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no message"]
        raise Failed(f"it raised {type(error).__name__} ({lines[0]}){' ' if when else ''}{when}") from error


def _with_shapes(block: nn.Module, example: Example) -> nn.Module:
    """The block, or a copy of one that gets its shapes at the first call, after that call."""
    if not any(is_lazy(value) for value in (*block.parameters(), *block.buffers())):
        return block
    found = _copied(block)
    try:
        with torch.no_grad():
            found(*_numbers(example, torch.float32).args, **_numbers(example, torch.float32).kwargs)
    except Exception as error:
        raise WonderlandError(
            f"{type(block).__name__} gets its shapes at the first call, which failed on this example: {error}."
        ) from error
    return found


def _copied(block: nn.Module) -> nn.Module:
    """A copy in eval mode; what a module keeps of its last call, which torch does not copy, comes along as numbers alone."""
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


def _converted(block: nn.Module, dtype: torch.dtype) -> nn.Module:
    found = _copied(block)
    found.zero_grad(set_to_none=True)
    return found._apply(lambda value: _number(value, dtype))


def _numbers(example: Example, dtype: torch.dtype) -> Example:
    # Copies: a block that writes into its input must not reach the user's.
    return example.over(lambda _, value: _number(value.detach().clone(), dtype))


def _number(value: Tensor, dtype: torch.dtype) -> Tensor:
    """A tensor in other numbers; what was made in inference mode becomes a plain tensor."""
    wide = torch.complex128 if dtype == torch.float64 else torch.complex64
    found = value.to(dtype if value.is_floating_point() else wide if value.is_complex() else value.dtype)
    return found.clone() if found.is_inference() else found
