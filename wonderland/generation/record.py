"""What each row has generated so far, and why it ended."""

from typing import Any

from wonderland.generation.constraint import Constraint
from wonderland.generation.generated import Generated, Token
from wonderland.generation.stops import StopFilter, Stops


class Record:
    """Collects the tokens of each row; `ended` holds the reason why a row ended, "" while it goes on."""

    def __init__(self, size: int, count: int, stops: Stops, constraint: Constraint | None = None):
        self.count, self.stops, self.constraint = count, stops, constraint
        self.tokens: list[list[int]] = [[] for _ in range(size)]
        self.ended = [""] * size
        self.constraint_states: list[Any] = [None if constraint is None else constraint.start] * size
        self._texts: list[list[bytes]] = [[] for _ in range(size)]
        self._stop_filters = [StopFilter(stops.strings) for _ in range(size)]

    def take(self, row: int, token: int) -> Token:
        """Record one more token of a row."""
        stops = self.stops
        if token in stops.tokens:
            return self._append(row, token, self._stop_filters[row].flush(), "stop")
        self.tokens[row].append(token)
        left = self.count - len(self.tokens[row])
        text, ended = b"", ""
        if stops.pieces is not None:
            text, complete = self._stop_filters[row].push(stops.pieces[token])
            ended = "stop" if complete else ""
        if self.constraint is not None:
            state = self.constraint.after(self.constraint_states[row], token)
            self.constraint_states[row] = state
            ended = "constraint" if self.constraint.final(state, left) else ""
        if not ended and left == 0:
            ended = "count"
            text += self._stop_filters[row].flush()
        return self._append(row, token, text, ended)

    def generated(self) -> Generated:
        """The result for all rows."""
        texts = [] if self.stops.pieces is None else [b"".join(parts) for parts in self._texts]
        return Generated(self.tokens, self.ended, texts)

    def _append(self, row: int, token: int, text: bytes, ended: str) -> Token:
        self.ended[row] = ended
        if text:
            self._texts[row].append(text)
        return Token(row, token, text, ended)
