"""Linear models of texts: sparse features of words and pieces, alone or beside a network of tokens."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.models.tokens import check_sizes
from wonderland.nn.contract.arguments import Checked


def pack_features(ids: Tensor, values: Tensor) -> Tensor:
    """Numbers of features, from 0, and their values, not negative, as one integer each; 0 stands for none.

    Shapes: ids (...), values (...) -> int64 (...).

    >>> ids, values = unpack_features(pack_features(torch.tensor([[3, 0]]), torch.tensor([[0.5, 2.0]])))
    >>> ids.tolist(), values.tolist()
    ([[4, 1]], [[0.5, 2.0]])
    """
    return ((ids.long() + 1) << 32) | values.float().view(torch.int32).long()


def unpack_features(packed: Tensor) -> tuple[Tensor, Tensor]:
    """From `pack_features`: numbers of features from 1, with 0 for none, and their values."""
    return packed >> 32, (packed & 0x7FFFFFFF).to(torch.int32).view(torch.float32)


@part
class TextLinear(Checked, nn.Module):
    r"""A linear model of sparse features.

    .. math:: y = b + \sum_{j \in x} v_j W_j

    The features of a text are its words, pairs of words and pieces of words, weighted by TF-IDF; `wonderland fit` makes them.
    Row 0 of W belongs to padding and is not read.

    Shapes: packed features (b, k) -> (b, classes). Book: Alice 4.2; D2L 16.1. Paper: Wang and Manning, 2012.

    >>> model = TextLinear(features=10, classes=3)
    >>> model(pack_features(torch.tensor([[1, 4]]), torch.ones(1, 2))).shape
    torch.Size([1, 3])
    """

    reads = "features"  # what of a text's encoding it reads

    def __init__(self, features: int, classes: int):
        super().__init__()
        check_sizes("TextLinear", features=features + 1, classes=classes)
        self.features, self.classes = features, classes
        self.weight = nn.Parameter(torch.zeros(features + 1, classes))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, packed: Any, values: Tensor | None = None) -> Tensor:
        """Packed features (b, k); or, as exported programs take them, numbers of features from 1 (0 for none) and their values."""
        if values is not None:
            return (F.embedding(packed, self.weight) * values.unsqueeze(2)).sum(1) + self.bias
        if packed.dim() != 2 or packed.dtype != torch.int64:
            raise WonderlandError("TextLinear takes packed features, whole numbers (b, k): see pack_features.")
        if not packed.shape[1]:
            return self.bias.expand(packed.shape[0], -1)
        ids, values = unpack_features(packed)
        values = values.to(self.weight.dtype)
        return F.embedding_bag(ids, self.weight, mode="sum", per_sample_weights=values, padding_idx=0) + self.bias

    def vectors(self, packed: Tensor, dim: int = 512) -> Tensor:
        """The features of texts on random directions (b, dim), which keep their cosines nearly as they are.

        Paper: Johnson and Lindenstrauss, 1984.
        """
        ids, values = unpack_features(packed)
        draw = torch.Generator().manual_seed(0)
        directions = torch.randn(self.features + 1, dim, generator=draw, device="cpu").to(self.weight.device)
        return F.embedding_bag(ids, directions, mode="sum", per_sample_weights=values, padding_idx=0) / dim**0.5

    @torch.no_grad()
    def set_weights(self, fitted: Tensor) -> None:
        """Take fitted weights and, in the last row, the bias: (features + 1, classes)."""
        self.weight[0] = 0
        self.weight[1:] = fitted[:-1]
        self.bias.copy_(fitted[-1])


@part
class TextBlend(Checked, nn.Module):
    r"""A linear model of sparse features and a network of tokens, side by side.

    .. math:: f(x) = \bigl(f_{\mathrm{linear}}(x_{> t}),\; f_{\mathrm{network}}(x_{\le t})\bigr)

    The first `length` numbers of a row are its tokens, the rest its packed features. How much each of the two counts is decided
    on validation rows, as for members of an ensemble. The linear part is fitted on its own and takes no gradients.

    Shapes: (b, length + k) -> (2, b, classes).

    >>> network = Spec("models.TextCNN", {"vocab": 20, "classes": 3, "dim": 8, "channels": 4})
    >>> model = TextBlend(features=10, classes=3, length=4, network=network)
    >>> model(torch.tensor([[5, 7, 0, 0, 0]])).shape
    torch.Size([2, 1, 3])
    """

    takes_specs = True
    reads = "both"
    members = 2
    variant_names = ("linear model", "network")

    def __init__(self, features: int, classes: int, length: int, network: Spec):
        super().__init__()
        check_sizes("TextBlend", length=length)
        self.length = length
        self.linear = TextLinear(features, classes)
        self.linear.requires_grad_(False)
        self.network = network.build()

    def forward(self, x: Any, ids: Tensor | None = None, values: Tensor | None = None) -> Tensor:
        """One tensor of tokens and packed features; or, as exported programs take them, tokens, features and their values."""
        if ids is not None:
            return torch.stack([self.linear(ids, values), self.network(x)])
        if x.dim() != 2 or x.dtype != torch.int64 or x.shape[1] < self.length:
            raise WonderlandError(
                f"TextBlend takes rows of {self.length} tokens and then packed features: whole numbers (b, k)."
            )
        return torch.stack([self.linear(x[:, self.length :]), self.network(x[:, : self.length])])

    def vectors(self, x: Tensor) -> Tensor:
        """The vectors of texts that the network computes before its last layer: (b, d)."""
        network: Any = self.network
        if not callable(getattr(network, "vectors", None)):
            raise WonderlandError(f"{type(network).__name__} gives no vectors of texts.")
        return network.vectors(x[:, : self.length])
