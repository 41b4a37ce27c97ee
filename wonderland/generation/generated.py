"""Results of generation: single tokens as they come, and all tokens at the end."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Token(NamedTuple):
    """One generated token: its row, its id, the bytes it adds to the text (if pieces are known), and why the row ends, if it does.

    `text` holds back bytes that may begin a stop string until that is decided; it may end inside a character.
    `ended` is "" while the row goes on; "stop" after a stop token, which is `id`, or a stop string; "constraint" if the
    constraint allows nothing more; "count" at the largest number of tokens.
    """

    row: int
    id: int
    text: bytes = b""
    ended: str = ""


@dataclass(frozen=True)
class Generated:
    """All generated tokens, row by row.

    - `tokens`: the new tokens of each row, without its prompt and without the stop token that ended it.
    - `ended`: why each row ended: "stop", "constraint" or "count".
    - `texts`: the bytes of each row, cut before a stop string; empty if no pieces were given.
    - `scores`: the score of each row, for functions that choose by a score.
    """

    tokens: list[list[int]]
    ended: list[str]
    texts: list[bytes] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
