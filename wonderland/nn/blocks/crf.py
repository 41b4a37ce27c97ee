"""CRF: a chain of tags whose neighbours depend on each other, as the last layer of a tagger."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.nn.blocks.heads import check_sequence
from wonderland.nn.contract.arguments import Checked, at_least_one
from wonderland.nn.contract.mixer import hide
from wonderland.ops import crf


@part
class CRF(Checked, nn.Module):
    r"""A linear-chain conditional random field over the tags of a sequence.

    .. math::
        p(y \mid u) = \frac{1}{Z} \exp\Bigl(a_{y_1} + \sum_i u_{i, y_i} + \sum_{i > 1} T_{y_{i-1}, y_i} + b_{y_n}\Bigr)

    `forward` gives the log-probability of each tag at each position, all others summed out; `log_likelihood` that of a whole
    sequence of tags, which training maximises; `decode` the most probable one.

    Shapes: scores (b, t, tags) -> (b, t, tags), 0 where masked. Book: D2L 16.6. Paper: Lafferty et al., 2001.

    >>> chain = CRF(tags=3)
    >>> chain(torch.zeros(1, 4, 3)).exp().sum(2)
    tensor([[1.0000, 1.0000, 1.0000, 1.0000]], grad_fn=<SumBackward1>)
    """

    no_decay = frozenset({"transitions", "first", "last"})

    def __init__(self, tags: int):
        super().__init__()
        at_least_one("CRF", tags=tags)
        self.dim = tags
        self.transitions = nn.Parameter(torch.zeros(tags, tags))
        self.first = nn.Parameter(torch.zeros(tags))
        self.last = nn.Parameter(torch.zeros(tags))

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        always = (laws.batch_independence, laws.padding_invariance, laws.gradients, laws.determinism, laws.save_load)
        return (*always, laws.finiteness, laws.compiles)

    def forward(self, scores: Any, mask: Any = None) -> Tensor:
        return crf.log_marginals(self._scores(scores, mask), self.transitions, self.first, self.last, mask)

    def log_likelihood(self, scores: Tensor, tags: Tensor, mask: Tensor | None = None) -> Tensor:
        """log p(tags | scores) of each row: (b,). Tags where the mask is False are not read."""
        scores, chain = self._scores(scores, mask), (self.transitions, self.first, self.last)
        return crf.path_score(scores, tags, *chain, mask) - crf.log_partition(scores, *chain, mask)

    def decode(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        """The most probable tags of each row: (b, t), -1 where masked."""
        return crf.best_path(self._scores(scores, mask), self.transitions, self.first, self.last, mask)[0]

    def _scores(self, scores: Any, mask: Any) -> Tensor:
        check_sequence(scores, self.dim, mask, "CRF", self.transitions)
        return hide(scores, mask)
