"""Byte pair encoding, written for reading: repeatedly join the most frequent pair of neighbouring symbols.

`Tokenizer` uses the `tokenizers` package, which is thousands of times as fast; this is the algorithm itself.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from wonderland.core import WonderlandError

Pair = tuple[str, str]


def learn_merges(words: Mapping[str, int], count: int) -> list[Pair]:
    r"""The merges that byte pair encoding learns from words and their counts, in order.

    .. math:: (a, b)^\star = \arg\max_{(a, b)} \sum_w n_w \, \#\{i : w_i = a,\, w_{i+1} = b\},
        \qquad \text{then replace } a\,b \text{ by } ab \text{ in every word}

    Of pairs that are equally frequent, the one met first wins, as in the book. Learning ends early when no pair is left.
    Book: D2L 15.6.2. Paper: Sennrich et al., 2016.

    >>> learn_merges({"fast_": 4, "faster_": 3, "tall_": 5, "taller_": 4}, 3)
    [('t', 'a'), ('ta', 'l'), ('tal', 'l')]
    """
    if count < 0 or any(number < 0 for number in words.values()):
        raise WonderlandError("learn_merges takes a number of merges and counts of words that are at least 0.")
    pieces = {word: list(word) for word in words}
    merges: list[Pair] = []
    for _ in range(count):
        pairs: Counter[Pair] = Counter()
        for word, split in pieces.items():
            for pair in itertools.pairwise(split):
                pairs[pair] += words[word]
        if not pairs:
            break
        best = max(pairs, key=lambda pair: pairs[pair])
        merges.append(best)
        pieces = {word: join(split, best) for word, split in pieces.items()}
    return merges


def join(pieces: Sequence[str], pair: Pair) -> list[str]:
    """`pieces` with every occurrence of a pair joined, from left to right.

    >>> join(["a", "a", "a", "b"], ("a", "a"))
    ['aa', 'a', 'b']
    """
    joined: list[str] = []
    i = 0
    while i < len(pieces):
        if i + 1 < len(pieces) and (pieces[i], pieces[i + 1]) == pair:
            joined.append(pair[0] + pair[1])
            i += 2
        else:
            joined.append(pieces[i])
            i += 1
    return joined


def apply_merges(word: str, merges: Iterable[Pair]) -> list[str]:
    """A word cut by learned merges, each applied in the order it was learned; symbols never seen stay as they are.

    Book: D2L 15.6.2, whose own `segment_BPE` looks for the longest known symbol instead; both give this answer.

    >>> apply_merges("tallest_", [("t", "a"), ("ta", "l"), ("tal", "l")])
    ['tall', 'e', 's', 't', '_']
    """
    pieces = list(word)
    for pair in merges:
        pieces = join(pieces, pair)
    return pieces


def longest_first(word: str, symbols: Iterable[str]) -> list[str]:
    """A word cut greedily into the longest known symbols from the left; where no symbol fits, '[UNK]' ends the result.

    This is D2L's `segment_BPE`, which splits differently from `apply_merges` in general. Book: D2L 15.6.2.

    >>> longest_first("tallest_", ["tall", "t", "e", "s", "_"])
    ['tall', 'e', 's', 't', '_']
    """
    known = set(symbols)
    symbols_of_word, start = [], 0
    while start < len(word):
        stop = next((stop for stop in range(len(word), start, -1) if word[start:stop] in known), None)
        if stop is None:
            return [*symbols_of_word, "[UNK]"]
        symbols_of_word.append(word[start:stop])
        start = stop
    return symbols_of_word
