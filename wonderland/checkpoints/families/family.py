"""What a family defines: its configuration to a spec and back, and the published name of each tensor."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn

from wonderland.checkpoints.families.options import Options
from wonderland.core import Spec
from wonderland.nn.channel.glu import GLU
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.cross_attention import CrossAttention

Shape = tuple[int, ...]


@runtime_checkable
class WeightsView(Protocol):
    """What a family may ask about the published weights before it decides on a spec."""

    def has(self, name: str) -> bool:
        """Whether there is a tensor of this name."""
        ...

    def tied(self, configured: bool, head: str, embedding: str) -> bool:
        """Whether the output head shares its weights with the embedding."""
        ...

    def equal(self, copy: str, original: str) -> bool:
        """Whether `copy` is absent, or equal to `original`."""
        ...


@dataclass(frozen=True)
class Published:
    """The published form of one of our tensors.

    names: one name, or several whose tensors we stack along the first axis (queries, keys and values). "#" stands for the
        number of the layer, "*" for the last part of the name: weight or bias. "" among several is a part that is not
        published, because it has no effect on the outputs: 0 here.
    transposed: the published matrix is (inputs, outputs).
    unit_axes: axes of length 1 that only the published tensor has.
    copies: other names under which published files repeat the tensor.
    by_head: the published rows are the queries, keys and values of the first head, then those of the second, and so on.
    """

    names: str | Sequence[str]
    transposed: bool = False
    unit_axes: Shape = ()
    copies: tuple[str, ...] = ()
    by_head: bool = False

    def prefixed(self, prefix: str) -> "Published":
        """The same with a prefix before every name."""
        names = [prefix + name if name else "" for name in _listed(self.names)]
        return replace(self, names=names, copies=tuple(prefix + name for name in self.copies))


@dataclass(frozen=True)
class Conversion:
    """How one tensor of a model is made from published tensors, and back.

    sizes: the rows that each of them gives. heads: the heads whose rows the published tensor has together; 0 if it does not.
    """

    names: tuple[str, ...]
    sizes: Shape
    transposed: bool
    unit_axes: Shape
    copies: tuple[str, ...]
    heads: int = 0

    def published_shapes(self, shape: Shape) -> list[Shape]:
        """The shapes of the published tensors that make up one of ours."""
        return [self.published_shape((size, *shape[1:]) if len(self.names) > 1 else shape) for size in self.sizes]

    def published_shape(self, shape: Shape) -> Shape:
        """The published shape of one part of our tensor."""
        axes = list(reversed(shape)) if self.transposed else list(shape)
        for axis in self.unit_axes:
            axes.insert(axis, 1)
        return tuple(axes)

    def from_published(self, tensor: Tensor, shape: Shape) -> Tensor:
        """A published tensor in the shape of (a part of) ours."""
        tensor = tensor.t() if self.transposed else tensor
        if self.heads:
            return tensor.unflatten(0, (self.heads, 3, -1)).transpose(0, 1).reshape(shape)
        return tensor.reshape(shape) if self.unit_axes else tensor

    def to_published(self, tensor: Tensor) -> list[Tensor]:
        """Our tensor as the published ones."""
        if self.heads:
            tensor = tensor.unflatten(0, (3, self.heads, -1)).transpose(0, 1).flatten(0, 2)
        parts = tensor.split(list(self.sizes)) if len(self.names) > 1 else [tensor]
        return [
            (part.t() if self.transposed else part).reshape(self.published_shape(tuple(part.shape))).contiguous()
            for part in parts
        ]


@dataclass(frozen=True)
class Family:
    """One family of models of the transformers library.

    model_type: what its config.json says under that name. title: its name in messages.
    heads: each architecture of transformers and the head that it has: "lm" (scores for tokens), "sequence", "tokens",
        "spans", "next_sentence", "pretraining" ("lm" and "next_sentence"), "trunk" (no head), "encoder" (T5's encoder),
        "image" (classes of images).
    prefix: what the names of the trunk begin with under a head; `prefixes` for the heads where it differs.
    to_spec: options, head and a view of the weights to the spec of our model.
    to_config: a model of ours to the options of config.json, or None if it cannot be of this family.
    trunk_names, head_names: the published form of each tensor of a trunk and of a head; None for computed tensors.
    unused: a pattern of published tensors that the model does not need.
    after_load: a last step on a model whose weights are in place.
    unread: published tensors of a trunk that the model does not need, as they are written.
    """

    model_type: str
    title: str
    heads: Mapping[str, str]
    prefix: str
    to_spec: Callable[[Options, str, WeightsView], Spec]
    trunk_names: Callable[[Any], Mapping[str, Published | None]]
    head_names: Callable[[Any, str], Mapping[str, Published]]
    to_config: Callable[[Any], dict[str, Any] | None]
    unused: str = r"(?!)"
    prefixes: Mapping[str, str] = field(default_factory=dict)
    after_load: Callable[[Any], None] | None = None
    unread: Callable[[Any], dict[str, Tensor]] | None = None

    def trunk_prefix(self, head: str) -> str:
        """What the published names of the trunk begin with under a head."""
        return "" if head == "trunk" else self.prefixes.get(head, self.prefix)

    def conversions(self, model: nn.Module, head: str) -> dict[str, Conversion | None]:
        """The conversion of each tensor of a model, by its name in the state dict; None for computed tensors."""
        trunk = trunk_of(model)
        ours_prefix, prefix = ("" if trunk is model else "trunk."), self.trunk_prefix(head)
        table: dict[str, Published | None] = {
            ours_prefix + ours: None if published is None else published.prefixed(prefix)
            for ours, published in self.trunk_names(trunk).items()
        }
        table |= self.head_names(model, head)
        patterns = [(re.compile(_pattern(ours)), published) for ours, published in table.items()]
        conversions: dict[str, Conversion | None] = {}
        for name, value in model.state_dict().items():
            for pattern, published in patterns:
                if match := pattern.fullmatch(name):
                    resolved = (
                        None if published is None else _resolve(published, match, model, name, tuple(value.shape))
                    )
                    conversions[name] = resolved
                    break
            else:
                raise AssertionError(f"{self.title} has no published name for {name}")
        return conversions


def trunk_of(model: Any) -> Any:
    """The trunk under a head, or the model itself."""
    trunk = getattr(model, "trunk", None)
    return model if trunk is None else trunk


def labels_config(model: Any) -> dict[str, Any]:
    """The options of config.json that give the number of classes of a head."""
    count = getattr(model.head, "out_features", 0)
    if not count:
        return {}
    return {
        "id2label": {str(i): f"LABEL_{i}" for i in range(count)},
        "label2id": {f"LABEL_{i}": i for i in range(count)},
    }


def _listed(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _pattern(ours: str) -> str:
    """A regular expression for our names: "#" is a layer number, "*" the last part."""
    return (
        re.escape(ours)
        .replace(r"\#", r"(?P<number>\d+)")
        .replace("#", r"(?P<number>\d+)")
        .replace(r"\*", r"(?P<last>\w+)")
    )


def _resolve(published: Published, match: re.Match[str], model: nn.Module, ours: str, shape: Shape) -> Conversion:
    """Fill layer number and last part into the published names."""
    groups = match.groupdict()

    def fill(name: str) -> str:
        return name.replace("#", groups.get("number") or "").replace("*", groups.get("last") or "")

    names = _listed(published.names)
    if len(names) > 1:
        sizes = _stacked_rows(model.get_submodule(ours.rsplit(".", 2)[0]), shape[0])
    else:
        sizes = (shape[0] if shape else 1,)
    transposed = published.transposed and len(shape) == 2
    copies = tuple(map(fill, published.copies))
    owner: Any = model.get_submodule(ours.rsplit(".", 2)[0]) if published.by_head else None
    heads = 0 if owner is None else owner.heads
    return Conversion(tuple(map(fill, names)), sizes, transposed, published.unit_axes, copies, heads)


def _stacked_rows(owner: nn.Module, rows: int) -> Shape:
    """How many rows of a stacked matrix belong to each published one."""
    if isinstance(owner, Attention):
        keys, values = owner.kv_heads * owner.key_dim, owner.kv_heads * owner.value_dim
        return owner.heads * owner.key_dim, keys, values
    if isinstance(owner, CrossAttention):
        return owner.kv_heads * owner.key_dim, owner.kv_heads * owner.value_dim
    assert isinstance(owner, GLU)
    return rows // 2, rows // 2
