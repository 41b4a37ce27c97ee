"""AnswerFinder: where in a text the answer to a question stands, or that it is not there."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.recurrence import Layer
from wonderland.models.tagger import summed_rows
from wonderland.models.tokens import check_sizes
from wonderland.nn.channel.mlp import chance
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.mixers.bidirectional import backwards
from wonderland.ops.shapes import readable
from wonderland.ops.softmax import masked_softmax

QUESTION, CONTEXT = 1, 2  # what a position holds; 0 is padding


@part
class AnswerFinder(Checked, nn.Module):
    r"""Scores of the first and the last word of an answer, and of no answer.

    .. math::
        p(i, j) = \frac{e^{s_i + e_j}}{Z}, \quad p(\text{none}) = \frac{e^{n}}{Z}, \quad
        Z = e^{n} + \sum_{i \le j < i + l} e^{s_i + e_j}, \qquad s_i = q^\top W_s h_i + w_s^\top h_i

    A row is the question and then the text. Each word has several features, whose embeddings are summed; a word of the text also
    has the marks of what it shares with the question and the average of the words of the question that are like it. An LSTM in both
    directions gives h, and q is the average of h over the question with trained weights. `longest` bounds the words of an answer, l.

    Shapes: x (b, t, per word + 2), whose last columns are the side of a position (1 question, 2 text, 0 padding) and its
    marks, -> (b, t, 2), minus infinity outside of the text; `none` and `log_partition` complete the distribution. Book: D2L 16.6.
    Paper: Chen et al., 2017.

    >>> model = AnswerFinder(features=30, dim=8, state_size=4)
    >>> model(torch.tensor([[[4, 9, 1, 0], [2, 1, 2, 3], [5, 5, 2, 0]]])).shape
    torch.Size([1, 3, 2])
    """

    def __init__(
        self,
        features: int,
        *,
        dim: int = 64,
        state_size: int = 64,
        depth: int = 2,
        marks: int = 16,
        longest: int = 16,
        dropout: float | int = 0.3,
    ):
        super().__init__()
        check_sizes(
            "AnswerFinder", features=features, dim=dim, state_size=state_size, depth=depth, marks=marks, longest=longest
        )
        self.features, self.marks, self.longest = features, marks, longest
        self.dropout = chance(dropout, "AnswerFinder")
        self.embedding = nn.Embedding(features, dim)
        nn.init.normal_(self.embedding.weight, std=dim**-0.5)
        self.marking = nn.Embedding(marks, dim // 2 + 1)
        self.side = nn.Embedding(3, dim)
        self.like = nn.Linear(dim, dim)
        widths = [2 * dim + dim // 2 + 1, *[2 * state_size] * (depth - 1)]
        self.rightward = nn.ModuleList(Layer("lstm", width, state_size) for width in widths)
        self.leftward = nn.ModuleList(Layer("lstm", width, state_size) for width in widths)
        wide = 2 * state_size
        self.weigh = nn.Linear(wide, 1)
        self.compare = nn.Linear(wide, 2 * wide)
        self.ends = nn.Linear(wide, 2)
        self.absent = nn.Linear(2 * wide, 1)

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        return (laws.batch_independence, laws.determinism, laws.save_load)

    def forward(self, x: Any) -> Tensor:
        return self.scores(x)[0]

    def scores(self, x: Any) -> tuple[Tensor, Tensor]:
        """Scores of starts and ends (b, t, 2), and of no answer (b,)."""
        if not isinstance(x, Tensor) or x.dim() != 3 or x.is_floating_point() or x.shape[2] < 3:
            raise WonderlandError("AnswerFinder takes whole numbers (batch, time, features of a word, side, marks).")
        words, side, marks = x[..., :-2], x[..., -2], x[..., -1]
        b, t, _ = words.shape
        question, context, real = side == QUESTION, side == CONTEXT, side > 0
        e = summed_rows(words, self.embedding.weight).view(b, t, -1)
        e = F.dropout(e, self.dropout, self.training)
        like = F.relu(self.like(e))
        near = masked_softmax(like @ like.transpose(1, 2), context.unsqueeze(2) & question.unsqueeze(1)) @ e
        h = torch.cat([e + self.side(side), near, self.marking(marks.clamp(0, self.marks - 1))], -1)
        mask = None if readable(real) and bool(real.all()) else real
        for right, left in zip(self.rightward, self.leftward, strict=True):
            from_right = backwards(left(backwards(h, mask), None, mask)[0], mask)
            h = F.dropout(torch.cat([right(h, None, mask)[0], from_right], -1), self.dropout, self.training)
        weights = masked_softmax(self.weigh(h).squeeze(2), question)
        asked = (weights.unsqueeze(1) @ h).squeeze(1)
        own = self.ends(h) + torch.stack(
            [(h @ one.unsqueeze(2)).squeeze(2) for one in self.compare(asked).chunk(2, 1)], 2
        )
        highest = h.masked_fill(~context.unsqueeze(2), -1e4).amax(1)
        none = self.absent(torch.cat([asked, highest], 1)).squeeze(1)
        return own.masked_fill(~context.unsqueeze(2), -torch.inf), none

    def log_partition(self, ends: Tensor, none: Tensor) -> Tensor:
        """log Z of each row: (b,)."""
        place = torch.arange(ends.shape[1], device=ends.device)[:, None] + torch.arange(
            self.longest, device=ends.device
        )
        after = F.pad(ends[..., 1], (0, self.longest), value=-torch.inf)[:, place]
        inside = torch.isfinite(ends[..., 0])
        spans = torch.where(inside, ends[..., 0], 0) + _logsumexp(after, inside)
        total = torch.logsumexp(torch.where(inside, spans, -1e30), 1)
        return torch.logaddexp(total, none)

    def log_likelihood(self, x: Tensor, spans: Tensor) -> Tensor:
        """log p of the first and last positions (b, 2), or of no answer where they are -1: (b,)."""
        ends, none = self.scores(x)
        rows = torch.arange(len(x), device=x.device)
        held = spans.clamp_min(0)
        own = ends[rows, held[:, 0], 0] + ends[rows, held[:, 1], 1]
        absent = spans[:, 0] < 0
        return torch.where(absent, none, torch.where(absent, 0, own)) - self.log_partition(ends, none)


def _logsumexp(values: Tensor, rows: Tensor) -> Tensor:
    """log-sum-exp over the last axis, 0 in rows that are not asked for, so that no gradient is NaN."""
    return torch.logsumexp(torch.where(rows.unsqueeze(2), values, 0), 2)
