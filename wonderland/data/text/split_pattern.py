"""Regular expressions of tokenizers: only those that take time linear in the length of any text are admitted.

An alternative of a pattern is admitted if everything that follows its first unbounded repetition may be left out. Such an
alternative succeeds as soon as it reaches the repetition, so the matcher never has to go back. A few alternatives of published tokenizers
are of another form and known to be harmless where they stand, since a later alternative takes the same text.
"""

from collections.abc import Iterator

from wonderland.core import WonderlandError

LONGEST = 4000
MOST_REPEATS = 1000
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_KNOWN = {
    r"\s+(?!\S)",
    r"\s*[\r\n]+",
    r"\s*[\r\n]",
    *(
        start + _UPPER + "*" + _LOWER + "+" + end
        for start in (r"[^\r\n\p{L}\p{N}]?", "")
        for end in ("", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?")
    ),
}
# What must stand somewhere after a known alternative, so that its text is taken in any case.
_COVER = (r"\s+", _UPPER + "+" + _LOWER + "*")


def check_pattern(pattern: str) -> None:
    """Refuse a pattern that may take more than linear time.

    >>> check_pattern(r" ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s+(?!\\S)|\\s+")
    >>> check_pattern("(a+)+$")
    Traceback (most recent call last):
    wonderland.core.errors.WonderlandError: The pattern '(a+)+$' is refused: its alternative '(a+)+$' may take more than linear time.
    """
    if len(pattern) > LONGEST:
        raise WonderlandError(f"A pattern of {len(pattern):,} characters is longer than {LONGEST:,}.")
    alternatives = list(split_alternatives(pattern))
    for place, alternative in enumerate(alternatives):
        if alternative in _KNOWN and any(cover in later for later in alternatives[place + 1 :] for cover in _COVER):
            continue
        try:
            reader = _Reader(alternative)
            reader.sequence(inside=False)
            fine = reader.place == len(alternative) and bool(alternative)
        except (_Refused, RecursionError):
            fine = False
        if not fine:
            raise WonderlandError(
                f"The pattern {pattern[:60]!r} is refused: its alternative {alternative[:60]!r} may take more than linear time."
            )


def split_alternatives(pattern: str) -> Iterator[str]:
    """The alternatives of a pattern, cut at each | outside of groups and classes."""
    depth = square = start = place = 0
    while place < len(pattern):
        letter = pattern[place]
        if letter == "\\":
            place += 1
        elif letter == "[":
            square += 1
        elif letter == "]" and square:
            square -= 1
        elif not square and letter in "()":
            depth += 1 if letter == "(" else -1
        elif letter == "|" and not square and not depth:
            yield pattern[start:place]
            start = place + 1
        place += 1
    yield pattern[start:]


class _Refused(Exception):
    """The pattern is outside of the admitted form."""


class _Reader:
    """Reads one alternative: atoms with quantifiers."""

    def __init__(self, text: str):
        self.text, self.place = text, 0

    def peek(self) -> str:
        return self.text[self.place] if self.place < len(self.text) else ""

    def take(self) -> str:
        if self.place >= len(self.text):
            raise _Refused
        self.place += 1
        return self.text[self.place - 1]

    def sequence(self, inside: bool) -> int:
        """Atoms up to the end of a group or of the text; returns the largest number of characters that it needs to look at."""
        work, unbounded = 1, False
        while self.peek() not in ("", "|", ")"):
            size = self.atom()
            least, most = self.quantifier()
            if unbounded and least:
                raise _Refused
            if most is None:
                if inside or size > 1:
                    raise _Refused
                unbounded = True
            else:
                work += size * most
            if work > MOST_REPEATS:
                raise _Refused
        return work

    def atom(self) -> int:
        letter = self.take()
        if letter == "[":
            self.character_class()
        elif letter == "(":
            return self.group()
        elif letter == "\\":
            self.escape()
        elif letter in "*+?{}^$]":
            raise _Refused
        return 1

    def group(self) -> int:
        if self.peek() == "?":
            self.take()
            flags = ""
            while self.peek() and self.peek() in "imx-":
                flags += self.take()
            if self.take() != ":":
                raise _Refused
        total = 0
        while True:
            total += self.sequence(inside=True)
            end = self.take()
            if end == ")":
                return total
            if end != "|":
                raise _Refused

    def character_class(self) -> None:
        """A class of characters; classes within it are allowed."""
        if self.peek() == "^":
            self.take()
        if self.peek() == "]":
            raise _Refused
        while (letter := self.take()) != "]":
            if letter == "\\":
                self.escape()
            elif letter == "[":
                if self.peek() == ":":
                    raise _Refused
                self.character_class()
            elif letter == "&" and self.peek() == "&":
                raise _Refused

    def escape(self) -> None:
        letter = self.take()
        if letter in "pP":
            if self.take() != "{":
                raise _Refused
            while (part := self.take()) != "}":
                if not ((part.isalnum() and part.isascii()) or part in "_^"):
                    raise _Refused
        elif letter in "xu":
            digits = 2 if letter == "x" else 4
            if letter == "x" and self.peek() == "{":
                self.take()
                while (part := self.take()) != "}":
                    if part not in "0123456789abcdefABCDEF":
                        raise _Refused
                return
            if any(self.take() not in "0123456789abcdefABCDEF" for _ in range(digits)):
                raise _Refused
        elif letter.isalnum() and letter not in "sSdDwWnrtfv":
            raise _Refused

    def quantifier(self) -> tuple[int, int | None]:
        """The least and the most repetitions of the atom before; None for no bound."""
        letter = self.peek()
        if letter not in ("*", "+", "?", "{"):
            return 1, 1
        self.take()
        bounds: tuple[int, int | None] = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(letter, (1, 1))
        if letter == "{":
            body = ""
            while (part := self.take()) != "}":
                body += part
            least, comma, most = body.partition(",")
            if (
                not all(
                    number.isascii() and number.isdigit() and len(number) < 6 for number in filter(None, (least, most))
                )
                or not least + most
            ):
                raise _Refused
            bounds = int(least or 0), (int(most) if most else None) if comma else int(least)
        if self.peek() in ("?", "+"):  # lazy or possessive
            self.take()
        if self.peek() in ("*", "+", "?", "{") and self.peek():
            raise _Refused
        return bounds
