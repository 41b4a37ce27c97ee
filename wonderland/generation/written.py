"""What generation gives back: tokens as they are written, and all of them at the end."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Token(NamedTuple):
    """One token as it is written: its row, its id, the text it adds (where pieces are known), and why the row ends, if it does.

    `text` leaves out what may belong to a stop string until that is decided; it may end inside a character.
    `ended` is "", or "stop" (a stop token, which is `id`, or a stop string), "constraint" (nothing may follow), "count".
    """

    row: int
    id: int
    text: bytes = b""
    ended: str = ""


@dataclass(frozen=True)
class Written:
    """All that was written, row by row.

    - `tokens`: the new tokens of each row, without its prompt and without the stop token that ended it.
    - `ended`: why each row ended: "stop", "constraint" or "count".
    - `texts`: the bytes written, cut before a stop string; empty where no pieces were given.
    - `scores`: where the choice was by a score, that of each row.
    """

    tokens: list[list[int]]
    ended: list[str]
    texts: list[bytes] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
