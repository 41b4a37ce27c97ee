"""What a family is: how its configuration becomes a spec, what its weights are called, and both ways back."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from wonderland.checkpoints.families.options import Options
from wonderland.core import Spec
from wonderland.nn.channel.glu import GLU
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.cross_attention import CrossAttention

Shape = tuple[int, ...]


@dataclass(frozen=True)
class To:
    """Where a tensor of ours is in a published file.

    names: one name, or several whose tensors are laid one under the other in ours; "#" stands for a number, "*" for the
        last word, weight or bias.
    turned: a matrix that is kept as (inputs, outputs).
    lift: axes of length 1 that the published tensor has more.
    also: names under which the published file repeats it.
    """

    names: str | Sequence[str]
    turned: bool = False
    lift: Shape = ()
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Piece:
    """`To` for one tensor, with the numbers filled in."""

    names: tuple[str, ...]
    sizes: Shape
    turned: bool
    lift: Shape
    also: tuple[str, ...]

    def shapes(self, own: Shape) -> list[Shape]:
        """The shapes of the published tensors that make up one of ours."""
        return [self.published_shape((size, *own[1:]) if len(self.names) > 1 else own) for size in self.sizes]

    def published_shape(self, own: Shape) -> Shape:
        found = list(reversed(own)) if self.turned else list(own)
        for axis in self.lift:
            found.insert(axis, 1)
        return tuple(found)

    def to_ours(self, tensor: Tensor, own: Shape) -> Tensor:
        """A published tensor as (part of) ours."""
        tensor = tensor.t() if self.turned else tensor
        return tensor.reshape(own) if self.lift else tensor

    def to_theirs(self, tensor: Tensor) -> list[Tensor]:
        """Ours as the published tensors."""
        parts = tensor.split(list(self.sizes)) if len(self.names) > 1 else [tensor]
        return [
            (part.t() if self.turned else part).reshape(self.published_shape(tuple(part.shape))).contiguous()
            for part in parts
        ]


@dataclass(frozen=True)
class Family:
    """One family of models of the transformers library.

    kind: its `model_type`. heads: what each architecture has on its trunk, "words" for a language model, "trunk" for
    nothing. prefix: what the names of the trunk begin with; `prefixes` where a head says otherwise.
    describe: options, the head, and a look into the file, to the spec of our model.
    names: where the tensors of a trunk are, and `head_names` those of a head.
    config: the options of a model of ours, or None if it is plainly of another kind.
    spare: names that files have and models do not need.
    """

    kind: str
    title: str
    heads: Mapping[str, str]
    prefix: str
    describe: Callable[[Options, str, Any], Spec]
    names: Callable[[Any], Mapping[str, To | None]]
    head_names: Callable[[Any, str], Mapping[str, To]]
    config: Callable[[Any], dict[str, Any] | None]
    spare: str = r"(?!)"
    prefixes: Mapping[str, str] = field(default_factory=dict)
    finish: Callable[[Any], None] | None = None

    def prefix_of(self, head: str) -> str:
        """What the names of the trunk begin with under a head."""
        return "" if head == "trunk" else self.prefixes.get(head, self.prefix)

    def pieces(self, model: nn.Module, head: str) -> dict[str, Piece | None]:
        """Where each tensor of a model is in a file of this family; None for those that are computed."""
        trunk = trunk_of(model)
        start, prefix = ("" if trunk is model else "trunk."), self.prefix_of(head)
        table = {start + ours: _prefixed(to, prefix) for ours, to in self.names(trunk).items()}
        table |= dict(self.head_names(model, head))
        rules = [(re.compile(_pattern(ours)), to) for ours, to in table.items()]
        found: dict[str, Piece | None] = {}
        for name, value in model.state_dict().items():
            for rule, to in rules:
                if match := rule.fullmatch(name):
                    found[name] = None if to is None else _filled(to, match, model, name, tuple(value.shape))
                    break
            else:
                raise AssertionError(f"{self.title} has no name for {name}")
        return found


def trunk_of(model: Any) -> Any:
    """The trunk under a head, or the model itself."""
    trunk = getattr(model, "trunk", None)
    return model if trunk is None else trunk


def labels_config(model: Any) -> dict[str, Any]:
    """The options that say how many classes a head has."""
    count = model.head.out_features
    return {
        "id2label": {str(i): f"LABEL_{i}" for i in range(count)},
        "label2id": {f"LABEL_{i}": i for i in range(count)},
    }


def _prefixed(to: To | None, prefix: str) -> To | None:
    if to is None:
        return None
    names = [to.names] if isinstance(to.names, str) else list(to.names)
    also = tuple(name.removeprefix("/") if name.startswith("/") else prefix + name for name in to.also)
    return To([prefix + name for name in names], to.turned, to.lift, also)


def _pattern(ours: str) -> str:
    return (
        re.escape(ours)
        .replace(r"\#", r"(?P<number>\d+)")
        .replace("#", r"(?P<number>\d+)")
        .replace(r"\*", r"(?P<last>\w+)")
    )


def _filled(to: To, match: re.Match[str], model: nn.Module, ours: str, own: Shape) -> Piece:
    groups = match.groupdict()

    def fill(name: str) -> str:
        return name.replace("#", groups.get("number") or "").replace("*", groups.get("last") or "")

    names = [to.names] if isinstance(to.names, str) else list(to.names)
    sizes = _parts(model.get_submodule(ours.rsplit(".", 2)[0]), own[0]) if len(names) > 1 else (own[0] if own else 1,)
    turned = to.turned and len(own) == 2
    return Piece(tuple(map(fill, names)), sizes, turned, to.lift, tuple(map(fill, to.also)))


def _parts(owner: nn.Module, rows: int) -> Shape:
    """How many rows of a fused matrix belong to each of its parts."""
    if isinstance(owner, Attention):
        keys, values = owner.kv_heads * owner.key_dim, owner.kv_heads * owner.value_dim
        return owner.heads * owner.key_dim, keys, values
    if isinstance(owner, CrossAttention):
        return owner.kv_heads * owner.key_dim, owner.kv_heads * owner.value_dim
    assert isinstance(owner, GLU)
    return rows // 2, rows // 2
