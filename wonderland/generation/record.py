"""The record of a run: what each row has written so far, and when it ends."""

from typing import Any

from wonderland.generation.constraint import Constraint
from wonderland.generation.stops import Stops, Tail
from wonderland.generation.written import Token, Written


class Record:
    """Takes tokens row by row; `ended` says of each row why it ended, "" while it goes on."""

    def __init__(self, size: int, count: int, stops: Stops, constraint: Constraint | None = None):
        self.count, self.stops, self.constraint = count, stops, constraint
        self.tokens: list[list[int]] = [[] for _ in range(size)]
        self.ended = [""] * size
        self.at: list[Any] = [None if constraint is None else constraint.start] * size
        self._texts: list[list[bytes]] = [[] for _ in range(size)]
        self._tails = [Tail(stops.strings) for _ in range(size)]

    def take(self, row: int, token: int) -> Token:
        """Note one token more of a row."""
        stops = self.stops
        if token in stops.tokens:
            return self._note(row, token, self._tails[row].rest(), "stop")
        self.tokens[row].append(token)
        left = self.count - len(self.tokens[row])
        text, ended = b"", ""
        if stops.pieces is not None:
            text, found = self._tails[row].push(stops.pieces[token])
            ended = "stop" if found else ""
        if self.constraint is not None:
            self.at[row] = self.constraint.after(self.at[row], token)
            ended = "constraint" if self.constraint.final(self.at[row], left) else ""
        if not ended and left == 0:
            ended = "count"
            text += self._tails[row].rest()
        return self._note(row, token, text, ended)

    def written(self) -> Written:
        """All of it."""
        texts = [] if self.stops.pieces is None else [b"".join(parts) for parts in self._texts]
        return Written(self.tokens, self.ended, texts)

    def _note(self, row: int, token: int, text: bytes, ended: str) -> Token:
        self.ended[row] = ended
        if text:
            self._texts[row].append(text)
        return Token(row, token, text, ended)
