"""Writer: incremental decoding; text from tokens that come one at a time, never half a character."""

import codecs
from collections.abc import Iterable

from wonderland.core import WonderlandError


class Writer:
    """Decodes ids one by one: `push(id)` returns the characters that are complete now, `close()` the rest.

    The results of `push` and `close` joined are the text of all tokens; bytes that form no character become U+FFFD.

    >>> writer = Writer([b"\\xc3", b"\\xa9", b"a"])
    >>> writer.push(0), writer.push(1), writer.push(2), writer.close()
    ('', 'é', 'a', '')
    """

    def __init__(self, pieces: list[bytes], *, strip: bool = False):
        self.pieces = pieces
        self._strip = self.strips = strip
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The text that this token completes; it may be empty."""
        if not 0 <= token < len(self.pieces):
            raise WonderlandError(f"Token {token} is not in the vocabulary: tokens are 0 to {len(self.pieces) - 1}.")
        return self.feed(self.pieces[token])

    def feed(self, piece: bytes) -> str:
        """The text that these bytes complete."""
        if self._strip and piece:
            self._strip = False
            piece = piece.removeprefix(b" ")
        return self._decoder.decode(piece)

    def extend(self, tokens: Iterable[int]) -> str:
        """The text that several tokens complete."""
        return "".join(self.push(token) for token in tokens)

    def close(self) -> str:
        """The rest of the text: an incomplete character becomes U+FFFD."""
        return self._decoder.decode(b"", final=True)
