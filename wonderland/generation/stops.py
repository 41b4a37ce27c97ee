"""Where writing ends: at a token, or at a string that may begin and end inside tokens."""

from collections.abc import Iterable, Sequence
from typing import Any

from wonderland.core import WonderlandError


class Stops:
    """Tokens and strings that end a row. Strings are looked for in the bytes that tokens write (`pieces`).

    >>> Stops([2, "ab"], [b"x", b"a", b""]).tokens
    frozenset({2})
    """

    def __init__(self, stop: Any, pieces: Sequence[bytes] | None, vocab: int | None = None):
        given = [stop] if isinstance(stop, int | str | bytes) else [] if stop is None else stop
        if not isinstance(given, Iterable):
            raise WonderlandError(f"stop is a token id, a string, or a list of them, not a {type(stop).__name__}.")
        tokens, strings = set(), []
        for one in given:
            if isinstance(one, str | bytes):
                string = one.encode() if isinstance(one, str) else one
                if not string:
                    raise WonderlandError("A stop string is empty: it would end every text before it begins.")
                strings.append(string)
            elif isinstance(one, int) and not isinstance(one, bool):
                if one < 0 or (vocab is not None and one >= vocab):
                    raise WonderlandError(f"The stop token {one} is not in the vocabulary.")
                tokens.add(one)
            else:
                raise WonderlandError(f"stop is a token id, a string, or a list of them, and {one!r} is neither.")
        if strings and pieces is None:
            raise WonderlandError(
                "Stop strings are looked for in the text: give pieces, the bytes that each token writes "
                "(a tokenizer's pieces())."
            )
        self.tokens, self.strings, self.pieces = frozenset(tokens), tuple(strings), pieces


class Tail:
    """The end of one row's text: what may be shown already, and what is held back because a stop string may begin there.

    >>> tail = Tail((b"end",))
    >>> tail.push(b"weekend"), tail.push(b"s")
    ((b'week', True), (b'', True))
    >>> tail = Tail((b"end",))
    >>> tail.push(b"a e"), tail.push(b"nough")
    ((b'a ', False), (b'enough', False))
    """

    __slots__ = ("_held", "_strings", "ended")

    def __init__(self, strings: tuple[bytes, ...]):
        self._strings, self._held, self.ended = strings, b"", False

    def push(self, piece: bytes) -> tuple[bytes, bool]:
        """The bytes that are now certain, and whether a stop string is complete; nothing comes after it."""
        if self.ended:
            return b"", True
        text = self._held + piece
        found = [at for string in self._strings if (at := text.find(string)) >= 0]
        if found:
            self._held, self.ended = b"", True
            return text[: min(found)], True
        keep = max((_overlap(text, string) for string in self._strings), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep], False

    def rest(self) -> bytes:
        """What was held back, when writing ends for another reason."""
        held, self._held = self._held, b""
        return held


def _overlap(text: bytes, string: bytes) -> int:
    """The longest end of a text with which a string begins, short of all of it."""
    longest = min(len(text), len(string) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(string[:size])), 0)
