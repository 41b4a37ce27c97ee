"""The neural n-gram model: an MLP over the embeddings of the last few tokens."""

import torch
from torch import Tensor, nn

from wonderland.core import part
from wonderland.models.tokens import check_sizes, look_up
from wonderland.models.window import Window, check_begin, check_windows
from wonderland.nn.norms.batch_norm import BatchNorm


@part
class NeuralNgram(Window):
    r"""The next token from the embeddings of the last `window` tokens, through one hidden layer.

    .. math:: x = [E_{w_1}; \dots; E_{w_c}], \qquad y = W_2 \tanh(W_1 x + b_1) + b_2 \quad (+\, D x)

    - `window`: the number of tokens read. `norm`: a batch norm before the tanh, in place of b1.
    - `direct`: the skip connection D of the paper. `begin`: the token before the first one.

    Shapes: tokens (b, t) -> logits (b, t, vocab). Book: Alice 8.4; makemore, parts 2 and 3. Paper: Bengio et al., 2003.

    >>> model = NeuralNgram(vocab=27, window=3)
    >>> model(torch.zeros(2, 5, dtype=torch.int64)).shape, model.predict(torch.zeros(4, 3, dtype=torch.int64)).shape
    (torch.Size([2, 5, 27]), torch.Size([4, 27]))
    """

    def __init__(
        self,
        vocab: int,
        window: int = 3,
        *,
        dim: int = 10,
        hidden: int = 200,
        norm: bool = False,
        direct: bool = False,
        begin: int = 0,
    ):
        super().__init__()
        check_sizes("NeuralNgram", vocab=vocab, window=window, dim=dim, hidden=hidden)
        check_begin(begin, vocab, "NeuralNgram")
        self.vocab, self.window, self.begin = vocab, window, begin
        self.embedding = nn.Embedding(vocab, dim)
        self.inward = nn.Linear(window * dim, hidden, bias=not norm)
        self.norm = BatchNorm(hidden) if norm else None
        self.outward = nn.Linear(hidden, vocab)
        self.direct = nn.Linear(window * dim, vocab, bias=False) if direct else None

    def predict(self, windows: Tensor) -> Tensor:
        check_windows(windows, self.window, "NeuralNgram")
        x = look_up(windows, self.embedding.weight).flatten(1)
        h = self.inward(x)
        if self.norm is not None:
            h = self.norm.apply_to(h)
        y = self.outward(torch.tanh(h))
        return y if self.direct is None else y + self.direct(x)
