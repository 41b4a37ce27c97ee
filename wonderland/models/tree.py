"""The tree model: a window of tokens merged pairwise, level by level, into one vector, as in WaveNet."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.tokens import check_sizes, look_up
from wonderland.models.window import Window, check_begin, check_windows
from wonderland.nn.norms.batch_norm import BatchNorm


@part
class Tree(Window):
    r"""The next token from the last :math:`2^L` tokens, merged pairwise in L levels.

    .. math:: h^0_i = E_{x_i}, \qquad h^{l+1}_i = \tanh(\mathrm{BN}(W_l [h^l_{2i};\; h^l_{2i+1}])), \qquad y = W h^L + b

    Over a whole text neighbouring windows share their subtrees, so level l is a causal convolution with kernel size 2 and
    dilation :math:`2^l`, as in WaveNet; `forward` computes it that way. In training its batch norms average over all positions,
    those of `predict` only over the given windows, as in makemore.

    - `levels`: L, the window has 2^levels tokens. `begin`: the token before the first one.

    Shapes: tokens (b, t) -> logits (b, t, vocab). Book: makemore, part 5; Alice 8.2.3. Paper: van den Oord et al., 2016.

    >>> model = Tree(vocab=27, levels=3)
    >>> model(torch.zeros(2, 5, dtype=torch.int64)).shape, model.predict(torch.zeros(4, 8, dtype=torch.int64)).shape
    (torch.Size([2, 5, 27]), torch.Size([4, 27]))
    """

    def __init__(self, vocab: int, levels: int = 3, *, dim: int = 24, hidden: int = 128, begin: int = 0):
        super().__init__()
        check_sizes("Tree", vocab=vocab, levels=levels, dim=dim, hidden=hidden)
        check_begin(begin, vocab, "Tree")
        if levels > 16:
            raise WonderlandError(f"A Tree has at most 16 levels, which is a window of 65,536 tokens, not {levels}.")
        self.vocab, self.levels, self.window, self.begin = vocab, levels, 2**levels, begin
        self.embedding = nn.Embedding(vocab, dim)
        widths = [dim, *[hidden] * (levels - 1)]
        self.joints = nn.ModuleList(nn.Linear(2 * width, hidden, bias=False) for width in widths)
        self.norms = nn.ModuleList(BatchNorm(hidden) for _ in widths)
        self.head = nn.Linear(hidden, vocab)
        # Initial weights that preserve the variance of the signal, and a head that starts near a uniform distribution.
        for joint in self.joints:
            nn.init.normal_(joint.weight, std=joint.in_features**-0.5)  # pyright: ignore
        nn.init.normal_(self.head.weight, std=0.1 * hidden**-0.5)
        nn.init.zeros_(self.head.bias)

    def predict(self, windows: Tensor) -> Tensor:
        check_windows(windows, self.window, "Tree")
        h = look_up(windows, self.embedding.weight)
        for joint, norm in zip(self.joints, self.norms, strict=True):
            # Neighbours are adjacent in memory, so concatenating them is a view.
            h = torch.tanh(norm.apply_to(joint(h.view(len(h), h.shape[1] // 2, -1))))  # pyright: ignore
        return self.head(h.squeeze(1))

    def all_logits(self, full: Tensor) -> Tensor:
        h = look_up(full[:, 1:], self.embedding.weight)
        for level, (joint, norm) in enumerate(zip(self.joints, self.norms, strict=True)):
            dilation = 2**level
            weight: Tensor = joint.weight  # pyright: ignore
            earlier, later = weight.chunk(2, 1)
            h = F.linear(h[:, :-dilation], earlier) + F.linear(h[:, dilation:], later)
            h = torch.tanh(norm.apply_to(h))  # pyright: ignore
        return self.head(h)
