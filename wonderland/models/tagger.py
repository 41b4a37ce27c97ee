"""Tagger: features of words, their neighbours and a bidirectional network, under a linear-chain CRF."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.recurrence import Layer
from wonderland.models.tokens import check_sizes
from wonderland.nn.blocks.crf import CRF
from wonderland.nn.channel.mlp import chance
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.mixers.bidirectional import backwards
from wonderland.ops import crf
from wonderland.ops.over_time import is_exporting
from wonderland.ops.shapes import readable


@part
class Tagger(Checked, nn.Module):
    r"""A tag for each word of a sentence.

    .. math::
        u_i = \sum_{o=-w}^{w} \sum_{f \in x_{i+o}} W^{(o)}_f + V\,[\overrightarrow{h}_i;\; \overleftarrow{h}_i], \qquad
        y = \arg\max_y\, p_{\mathrm{CRF}}(y \mid u)

    Each word has several features (`data.WordFeatures`), whose embeddings are summed for an LSTM in both directions. The first
    sum is linear, and reads `window` words at either side. With `depth` 0 it stands alone: a linear-chain CRF on these features.
    In training, the two features that name the word are dropped with the probability `word_dropout`, so that unknown
    words are learned. `tagged`, the CRF, gives marginals and the best tags.

    Shapes: features (b, t, per word), 0 for padding, -> scores (b, t, tags). Book: D2L 16.6. Paper: Huang et al., 2015.

    >>> model = Tagger(features=30, tags=3, dim=8, state_size=4)
    >>> model(torch.tensor([[[4, 9], [2, 1], [0, 0]]])).shape
    torch.Size([1, 3, 3])
    """

    def __init__(
        self,
        features: int,
        tags: int,
        *,
        dim: int = 64,
        state_size: int = 64,
        depth: int = 1,
        window: int = 2,
        dropout: float | int = 0.4,
        word_dropout: float | int = 0.1,
    ):
        super().__init__()
        check_sizes("Tagger", features=features, tags=tags, dim=dim, state_size=state_size)
        if depth < 0 or window < 0:
            raise WonderlandError(f"Tagger needs depth and window of at least 0, not {depth} and {window}.")
        self.features, self.tags, self.depth, self.window = features, tags, depth, window
        self.dropout, self.word_dropout = chance(dropout, "Tagger"), chance(word_dropout, "Tagger")
        self.linear = nn.Parameter(torch.zeros(features, tags * (2 * window + 1)))
        self.chain = CRF(tags)
        if depth:
            self.embedding = nn.Embedding(features, dim)
            nn.init.normal_(self.embedding.weight, std=dim**-0.5)
            widths = [dim, *[2 * state_size] * (depth - 1)]
            self.rightward = nn.ModuleList(Layer("lstm", width, state_size) for width in widths)
            self.leftward = nn.ModuleList(Layer("lstm", width, state_size) for width in widths)
            self.head = nn.Linear(2 * state_size, tags)

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        return (laws.batch_independence, laws.gradients, laws.determinism, laws.save_load, laws.finiteness)

    def forward(self, x: Any) -> Tensor:
        if not isinstance(x, Tensor) or x.dim() != 3 or x.is_floating_point():
            raise WonderlandError("Tagger takes numbers of features, whole numbers (batch, time, features of a word).")
        real = self.real(x)
        if self.training and self.word_dropout:
            x = x.clone()
            dropped = (torch.rand(x.shape[:2], device=x.device) < self.word_dropout) & real
            x[..., :2] = torch.where(dropped.unsqueeze(2), x[..., :2].clamp_max(1), x[..., :2])
        scores = self._linear(x)
        return (scores + self._network(x, real) if self.depth else scores).masked_fill(~real.unsqueeze(2), 0)

    @staticmethod
    def real(x: Tensor) -> Tensor:
        """Which positions hold words (b, t)."""
        return x[..., 0] != 0

    def log_likelihood(self, x: Tensor, tags: Tensor) -> Tensor:
        """log p(tags | x) of each row: (b,)."""
        return self.chain.log_likelihood(self(x), tags, self.real(x))

    def tagged(self, x: Tensor, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
        """The best tags (b, t), -1 where padded, and the log-probabilities of all tags (b, t, tags).

        The probabilities are those of all scores divided by the temperature.
        """
        scores, real = self(x), self.real(x)
        own = (self.chain.transitions, self.chain.first, self.chain.last)
        cooled = (own[0] / temperature, own[1] / temperature, own[2] / temperature)
        path, _ = crf.best_path(scores, *own, real)
        return path, crf.log_marginals(scores / temperature, *cooled, real)

    def _linear(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        drop = self.dropout if self.training else 0.0
        summed = summed_rows(x, self.linear).view(b, t, 2 * self.window + 1, -1)
        summed = F.dropout(summed, drop / 2, self.training)
        total = summed[:, :, self.window]
        for offset in range(1, self.window + 1):
            after, before = summed[:, :, self.window + offset], summed[:, :, self.window - offset]
            steps = torch.arange(t, device=x.device)
            later = F.pad(after, (0, 0, 0, offset)).index_select(1, steps + offset)
            total = total + later + F.pad(before, (0, 0, offset, 0)).index_select(1, steps)
        return total

    def _network(self, x: Tensor, real: Tensor) -> Tensor:
        b, t, _ = x.shape
        h = summed_rows(x, self.embedding.weight).view(b, t, -1)
        h = F.dropout(h, self.dropout, self.training)
        mask = None if readable(real) and bool(real.all()) else real
        for right, left in zip(self.rightward, self.leftward, strict=True):
            from_right = backwards(left(backwards(h, mask), None, mask)[0], mask)
            h = F.dropout(torch.cat([right(h, None, mask)[0], from_right], -1), self.dropout, self.training)
        return self.head(h)


def summed_rows(x: Tensor, weight: Tensor) -> Tensor:
    """The sum of the rows of a table that are named for each word, 0 for none: (b, t, k) -> (b t, d)."""
    if is_exporting():
        shown = (x != 0).unsqueeze(3).to(weight)
        return (F.embedding(x, weight) * shown).sum(2).flatten(0, 1)
    return F.embedding_bag(x.flatten(0, 1), weight, mode="sum", padding_idx=0)
