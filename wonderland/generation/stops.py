"""Stop tokens and stop strings: what ends a row. A stop string may begin and end inside tokens."""

from collections.abc import Iterable, Sequence
from typing import Any

from wonderland.core import WonderlandError


class Stops:
    """Tokens and strings that end a row. Strings are searched for in `pieces`, the bytes of each token.

    >>> Stops([2, "ab"], [b"x", b"a", b""]).tokens
    frozenset({2})
    """

    def __init__(self, stop: Any, pieces: Sequence[bytes] | None, vocab: int | None = None):
        items = [stop] if isinstance(stop, int | str | bytes) else [] if stop is None else stop
        if not isinstance(items, Iterable):
            raise WonderlandError(f"stop is a token id, a string, or a list of them, not a {type(stop).__name__}.")
        tokens, strings = set(), []
        for item in items:
            if isinstance(item, str | bytes):
                string = item.encode() if isinstance(item, str) else item
                if not string:
                    raise WonderlandError("A stop string is empty: it would end every text before it begins.")
                strings.append(string)
            elif isinstance(item, int) and not isinstance(item, bool):
                if item < 0 or (vocab is not None and item >= vocab):
                    raise WonderlandError(f"The stop token {item} is not in the vocabulary.")
                tokens.add(item)
            else:
                raise WonderlandError(f"stop is a token id, a string, or a list of them, and {item!r} is neither.")
        if strings and pieces is None:
            raise WonderlandError(
                "Stop strings are searched for in the text: give pieces, the bytes of each token "
                "(a tokenizer's pieces())."
            )
        self.tokens, self.strings, self.pieces = frozenset(tokens), tuple(strings), pieces


class StopFilter:
    """The text of one row without stop strings: holds back bytes at the end that may begin one.

    >>> text = StopFilter((b"end",))
    >>> text.push(b"weekend"), text.push(b"s")
    ((b'week', True), (b'', True))
    >>> text = StopFilter((b"end",))
    >>> text.push(b"a e"), text.push(b"nough")
    ((b'a ', False), (b'enough', False))
    """

    __slots__ = ("_held", "_strings", "ended")

    def __init__(self, strings: tuple[bytes, ...]):
        self._strings, self._held, self.ended = strings, b"", False

    def push(self, piece: bytes) -> tuple[bytes, bool]:
        """The bytes that are certain not to belong to a stop string, and whether one is complete; later bytes are dropped."""
        if self.ended:
            return b"", True
        text = self._held + piece
        starts = [start for string in self._strings if (start := text.find(string)) >= 0]
        if starts:
            self._held, self.ended = b"", True
            return text[: min(starts)], True
        keep = max((_overlap(text, string) for string in self._strings), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep], False

    def flush(self) -> bytes:
        """The bytes that were held back, for a row that ended for another reason."""
        held, self._held = self._held, b""
        return held


def _overlap(text: bytes, string: bytes) -> int:
    """The length of the longest suffix of a text that is a proper prefix of a string."""
    longest = min(len(text), len(string) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(string[:size])), 0)
