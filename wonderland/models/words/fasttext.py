"""fastText: a word vector is a mean of subword vectors, so that unknown words have vectors too."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.models.tokens import check_range, check_sizes
from wonderland.models.words.word2vec import Word2Vec


def subwords(word: str, shortest: int = 3, longest: int = 6) -> list[str]:
    """The character n-grams of a word between the marks `<` and `>`, as in fastText.

    >>> subwords("where", 3, 3)
    ['<wh', 'whe', 'her', 'ere', 're>']
    """
    if not isinstance(word, str) or not word:
        raise WonderlandError(f"subwords takes a word with at least one letter, not {word!r}.")
    if not 1 <= shortest <= longest:
        raise WonderlandError(f"subwords takes lengths from 1, the shortest first, not {shortest} and {longest}.")
    marked = f"<{word}>"
    pieces = []
    for start in range(len(marked)):
        for size in range(shortest, longest + 1):
            piece = marked[start : start + size]
            # A mark alone is not an n-gram of the word.
            if len(piece) == size and not (size == 1 and piece in "<>" and start in (0, len(marked) - 1)):
                pieces.append(piece)
    return pieces


def bucket(piece: str, buckets: int) -> int:
    """The bucket of an n-gram: FNV-1a over its bytes modulo `buckets`, as in fastText.

    >>> hex(bucket("a", 2**32))
    '0xe40c292c'
    """
    code = 2166136261
    for byte in piece.encode():
        # fastText hashes signed bytes.
        code = ((code ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
    return code % buckets


@part
class FastText(Word2Vec):
    r"""word2vec with subwords: the vector v is the mean of the word's own vector and those of its character n-grams.

    .. math:: v_w = \frac{1}{1 + |G_w|} \Bigl(z_w + \sum_{g \in G_w} z_{h(g)}\Bigr)

    n-grams share `buckets` vectors through a hash h. `vector(word)` works for any word: one that is not among `words` has only its
    n-grams. Book: D2L 15.6. Paper: Bojanowski et al., 2017.

    >>> model = FastText(["where", "here"], dim=4, buckets=50)
    >>> model.vector("there").shape
    torch.Size([4])
    """

    bags: Tensor
    starts: Tensor

    def __init__(
        self,
        words: Sequence[str],
        dim: int = 100,
        *,
        buckets: int = 100_000,
        shortest: int = 3,
        longest: int = 6,
        tree: Sequence[int] | None = None,
    ):
        check_sizes("FastText", buckets=buckets)
        if len(set(words)) != len(words):
            raise WonderlandError("The words of a FastText have to be different, and one occurs twice.")
        super().__init__(len(words), dim, tree=tree)
        self.numbers = {word: number for number, word in enumerate(words)}
        self.buckets, self.shortest, self.longest = buckets, shortest, longest
        # One table: first the buckets of n-grams, then the words.
        self.inward = nn.Embedding(buckets + len(words), dim)
        nn.init.uniform_(self.inward.weight, -0.5 / dim, 0.5 / dim)
        bags = [self._bag(word) for word in words]
        ends = torch.tensor([0, *map(len, bags)]).cumsum(0)
        self.register_buffer("bags", torch.tensor([piece for bag in bags for piece in bag]), persistent=False)
        self.register_buffer("starts", ends, persistent=False)

    @property
    def vectors(self) -> Tensor:
        return self.look(torch.arange(self.vocab, device=self.starts.device)).detach()

    def look(self, words: Tensor) -> Tensor:
        flat = words.reshape(-1)
        check_range(flat.unsqueeze(0), self.vocab)
        sizes = self.starts[flat + 1] - self.starts[flat]
        # The meta device has no values: one entry for each row stands for however many there are.
        row = torch.repeat_interleave(sizes, output_size=len(sizes) if sizes.is_meta else None)
        ends = sizes.cumsum(0)
        index = torch.arange(len(row), device=row.device) - (ends - sizes)[row] + self.starts[flat][row]
        return self._mean(self.bags[index], ends - sizes).view(*words.shape, -1)

    @torch.no_grad()
    def vector(self, word: str) -> Tensor:
        """The vector (dim,) of any word, known or not; 0 for an unknown word that is shorter than all n-grams."""
        integers = {"dtype": torch.int64, "device": self.starts.device}
        return self._mean(torch.tensor(self._bag(word), **integers), torch.zeros(1, **integers))[0]

    def _bag(self, word: Any) -> list[int]:
        """The rows of the table whose mean is the vector of a word."""
        pieces = [bucket(piece, self.buckets) for piece in subwords(word, self.shortest, self.longest)]
        own = self.numbers.get(word)
        return pieces if own is None else [self.buckets + own, *pieces]

    def _mean(self, rows: Tensor, starts: Tensor) -> Tensor:
        return F.embedding_bag(rows, self.inward.weight, starts, mode="mean")
