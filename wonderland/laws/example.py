"""Examples: the inputs that a block is checked on, the names of their axes, and which part of the output to compare."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as _field
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest

AXES = ("batch", "time", "node", "height", "width", "feature")
Axes = tuple[str | None, ...]


@dataclass(frozen=True)
class Example:
    """Inputs of a block, and what their axes mean.

    args, kwargs: what the block is called with. The first tensor among them is the one that laws change, everywhere it is
        used: with args=(x, x, x), queries, keys and values change together.
    axes: names of the axes of that tensor, such as ("batch", "time") or ("batch", None, "height", "width"); or a mapping
        from an input (its position or name) and from "output" to such names. By default, other inputs have only a batch
        axis, first, and the output has the axes of the first input.
    output: which part of the output to compare: a name ("logits"), an index, or a function. Default: its first floating
        point tensor.
    mask: the name of the padding mask argument of modules of other libraries. They get 1 for real tokens and 0 for padding
        (torch.nn's "key_padding_mask" and "src_key_padding_mask": True for padding), padding holds finite values rather
        than NaN, and their output there is free.
    side: where padding goes: "right" or "left" of the sequence.
    vocab: how many values integer inputs take (default: one more than the largest seen).
    field: how many positions to the left and right an output may depend on (default: the block's `receptive_field`).

    >>> Example.floats(2, 7, 8).input.shape
    torch.Size([2, 7, 8])
    >>> Example.tokens(2, 7, vocab=50, output="logits").input.dtype
    torch.int64
    """

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = _field(default_factory=dict)
    axes: Axes | Mapping[int | str, Axes] = ("batch", "time")
    output: str | int | Callable[[Any], Tensor] | None = None
    mask: str | None = None
    side: str = "right"
    vocab: int | None = None
    field: tuple[int | None, int | None] | None = None

    def __post_init__(self):
        if not isinstance(self.args, tuple):
            object.__setattr__(self, "args", (self.args,))
        if not any(isinstance(value, Tensor) for value in (*self.args, *self.kwargs.values())):
            raise WonderlandError(
                "An example needs a tensor among its inputs, since laws change a tensor and compare outputs."
            )
        for names in self._named().values():
            for name in names:
                if name is not None and name not in AXES:
                    raise WonderlandError(
                        f"{name!r} is not the name of an axis.{nearest(name, AXES)} Axes are {', '.join(AXES)}, or None."
                    )
        if self.side not in ("right", "left"):
            raise WonderlandError(f"Padding goes to the 'right' or the 'left', not to {self.side!r}.")

    @staticmethod
    def floats(*shape: int, seed: int = 0, **options: Any) -> "Example":
        """Normal random numbers of a shape."""
        generator = torch.Generator().manual_seed(seed)
        return Example((torch.randn(shape, generator=generator, dtype=torch.float64),), **options)

    @staticmethod
    def tokens(*shape: int, vocab: int, seed: int = 0, **options: Any) -> "Example":
        """Random integers of a shape, from 0 to `vocab` - 1."""
        generator = torch.Generator().manual_seed(seed)
        return Example((torch.randint(vocab, shape, generator=generator),), vocab=vocab, **options)

    @staticmethod
    def of(thing: Any, block: Any = None) -> "Example":
        """An example from an example, a tensor, a tuple of arguments, or from None if the block has a width `dim`."""
        if isinstance(thing, Example):
            return thing
        if isinstance(thing, Tensor):
            return Example((thing,))
        if thing is None:
            if isinstance(dim := getattr(block, "dim", None), int):
                return Example.floats(3, 7, dim)
            raise WonderlandError(
                f"{type(block).__name__} needs an example to be checked on: "
                "a tensor, a tuple of arguments, or Example.tokens(2, 17, vocab=100)."
            )
        if isinstance(thing, tuple | list) and thing and all(isinstance(size, int) for size in thing):
            shape = ", ".join(map(str, thing))
            raise WonderlandError(
                f"({shape}) could be a shape or arguments: write Example.floats({shape}) for random numbers of that shape, "
                f"or Example.tokens({shape}, vocab=...) for random integers."
            )
        if isinstance(thing, tuple):
            return Example(thing)
        raise WonderlandError(
            f"An example is a tensor, a tuple of arguments or an Example, not of type {type(thing).__name__}."
        )

    def _named(self) -> dict[int | str, Axes]:
        return dict(self.axes) if isinstance(self.axes, Mapping) else {self.place: tuple(self.axes)}

    @property
    def place(self) -> int | str:
        """The number or name of the input that laws change."""
        inputs = {**dict(enumerate(self.args)), **self.kwargs}
        return next(place for place, value in inputs.items() if isinstance(value, Tensor))

    @property
    def input(self) -> Tensor:
        """The tensor that laws change."""
        place = self.place
        return self.args[place] if isinstance(place, int) else self.kwargs[place]

    def axis(self, name: str, of: int | str | None = None) -> int | None:
        """The number of a named axis in the input (or in another input, or in "output"); None if it has no such axis."""
        named = self._named()
        own = named.get(self.place, ("batch", "time"))
        names = named.get(self.place if of is None else of, own if of in (None, "output", self.place) else ("batch",))
        return names.index(name) if name in names else None

    def over(self, change: Callable[[int | str, Tensor], Tensor]) -> "Example":
        """The example with a function applied to every input tensor; a tensor used twice is changed once."""
        changed: dict[int, Tensor] = {}

        def once(place: int | str, value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            if id(value) not in changed:
                changed[id(value)] = change(place, value)
            return changed[id(value)]

        args = tuple(once(place, value) for place, value in enumerate(self.args))
        kwargs = {name: once(name, value) for name, value in self.kwargs.items()}
        return replace(self, args=args, kwargs=kwargs)

    def holding(self, x: Tensor, **kwargs: Any) -> "Example":
        """The same example with another tensor as the input, and more keyword arguments."""
        place = self.place
        example = self.over(lambda where, value: x if where == place else value)
        return replace(example, kwargs={**example.kwargs, **kwargs}) if kwargs else example

    def rows(self, index: Tensor) -> "Example":
        """The example with these rows of the batch only, in every input."""

        def pick(place: int | str, value: Tensor) -> Tensor:
            axis = self.axis("batch", place)
            return value if axis is None or value.dim() <= axis else value.index_select(axis, index)

        return self.over(pick)

    def pick(self, answer: Any) -> Tensor:
        """The part of a block's output that laws compare."""
        if callable(self.output):
            return self.output(answer)
        if self.output is not None:
            return self._part(answer)
        tensor = _first_float_tensor(answer)
        if tensor is None:
            raise WonderlandError(
                f"The answer is a {type(answer).__name__} without a tensor of floating point numbers: "
                "say which part to look at with output=."
            )
        return tensor

    def _part(self, answer: Any) -> Tensor:
        assert isinstance(self.output, str | int)
        try:
            if isinstance(self.output, str) and hasattr(answer, self.output):
                return getattr(answer, self.output)
            return answer[self.output]
        except (KeyError, IndexError, TypeError, AttributeError):
            choices = [str(name) for name in (answer if isinstance(answer, Mapping) else vars(answer))] if (
                isinstance(answer, Mapping) or hasattr(answer, "__dict__")
            ) else []  # fmt: skip
            raise WonderlandError(
                f"The answer, a {type(answer).__name__}, has no part {self.output!r}.{nearest(str(self.output), choices)}"
            ) from None


def _first_float_tensor(answer: Any) -> Tensor | None:
    if isinstance(answer, Tensor):
        return answer
    entries = answer.values() if isinstance(answer, Mapping) else answer if isinstance(answer, tuple | list) else ()
    for entry in entries:
        tensor = _first_float_tensor(entry)
        if tensor is not None and (tensor.is_floating_point() or tensor.is_complex()):
            return tensor
    return None
