r"""Regular expressions, read into trees: the part of Python's `re` that describes a set of texts and nothing else.

Literals, `.`, classes (`[a-z]`, `[^"]`), escapes (`\d \w \s \D \W \S`, `\n \t \r \f \v \0`, `\xhh`, `\uhhhh`, and any
punctuation), `*`, `+`, `?`, `{m}`, `{m,}`, `{,n}`, `{m,n}` (also with a `?` behind, which changes what is found but not what
matches), `|`, groups `( )`, `(?: )`, `(?P<name> )`, and `^`, `$` at the ends of the expression or of its outermost branches.
Everything else (references back, looking around, flags, word boundaries) is refused in a sentence.

`\d`, `\w`, `\s` stand for ASCII characters; what is not a digit (`\D`, `[^\d]`) is none in all of Unicode. So a text that
matches here matches for Python with and without `re.ASCII`, and for JSON Schema.
"""

from dataclasses import dataclass
from typing import Any, NoReturn

from wonderland.core import WonderlandError
from wonderland.generation.grammar.characters import (
    ANY,
    Ranges,
    ascii_class,
    common,
    complement,
    unicode_class,
    union,
)
from wonderland.generation.grammar.expressions import Chars, Either, Expression, Then, Times

LONGEST = 10_000
MOST_TIMES = 1000
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
_DEEPEST = 50


@dataclass(frozen=True)
class _Set:
    """Characters that are certainly meant, and those that some reader of the expression may mean."""

    certain: Ranges
    possible: Ranges

    def other(self) -> "_Set":
        return _Set(complement(self.possible), complement(self.certain))


def parse(pattern: Any, *, search: bool = False) -> Expression:
    r"""The texts that an expression matches from end to end; with `search`, those in which it is found somewhere.

    >>> parse("a|b")
    Either(parts=(Then(parts=(Chars(ranges=((97, 97),)),)), Then(parts=(Chars(ranges=((98, 98),)),))))
    """
    if not isinstance(pattern, str):
        raise WonderlandError(f"A regular expression is a string, not a {type(pattern).__name__}.")
    if len(pattern) > LONGEST:
        raise WonderlandError(f"The regular expression has {len(pattern):,} characters: at most {LONGEST:,} are read.")
    return _Reader(pattern, search).whole()


class _Reader:
    def __init__(self, pattern: str, search: bool):
        self.text, self.at, self.search, self.depth = pattern, 0, search, 0

    def whole(self) -> Expression:
        branches = [self.outer_branch()]
        while self.take("|"):
            branches.append(self.outer_branch())
        if self.at < len(self.text):
            self.refuse("a ) without its (")
        return branches[0] if len(branches) == 1 else Either(tuple(branches))

    def outer_branch(self) -> Expression:
        gap = Times(Chars(ANY), 0, None)
        before = () if self.take("^") or not self.search else (gap,)
        inner = self.sequence()
        after = () if self.take("$") or not self.search else (gap,)
        return Then((*before, *inner, *after))

    def branches(self) -> Expression:
        found = [Then(self.sequence())]
        while self.take("|"):
            found.append(Then(self.sequence()))
        return found[0] if len(found) == 1 else Either(tuple(found))

    def sequence(self) -> tuple[Expression, ...]:
        found = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if self.text[self.at] == "$" and self.depth == 0 and self.text[self.at + 1 : self.at + 2] in ("", "|"):
                break
            found.append(self.repeated())
        return tuple(found)

    def repeated(self) -> Expression:
        part = self.single()
        begin = self.at
        times = self.times()
        if times is None:
            return part
        if self.at < len(self.text) and self.text[self.at] == "+":
            self.refuse("a possessive repetition", self.at)
        self.take("?")
        again = self.at
        if self.times() is not None:
            self.refuse("a repetition of a repetition without a group", again)
        least, most = times
        if most is not None and most < least:
            self.refuse(f"a repetition from {least} to {most} times", begin)
        if max(least, most or 0) > MOST_TIMES:
            self.refuse(f"more than {MOST_TIMES} repetitions", begin)
        return Times(part, least, most)

    def times(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return bounds
        begin = self.at
        if not self.take("{"):
            return None
        low = self.digits()
        high = self.digits() if (comma := self.take(",")) else low
        if not self.take("}") or (low == "" and high == ""):
            self.refuse(r"a { that begins no repetition (a literal one is \{)", begin)
        return int(low or 0), None if comma and high == "" else int(high)

    def digits(self) -> str:
        begin = self.at
        while self.at < len(self.text) and self.text[self.at] in "0123456789" and self.at - begin < 9:
            self.at += 1
        return self.text[begin : self.at]

    def single(self) -> Expression:
        begin, one = self.at, self.text[self.at]
        self.at += 1
        if one == "(":
            return self.group(begin)
        if one == "[":
            return Chars(self.braces(begin).certain)
        if one == ".":
            return Chars(complement(((10, 10),)))
        if one == "\\":
            return Chars(self.escape(begin, inside=False).certain)
        if one in "*+?":
            self.refuse(f"a {one} with nothing to repeat", begin)
        if one == "{":
            self.refuse(r"a { with nothing to repeat (a literal one is \{)", begin)
        if one in "^$":
            self.refuse(rf"a {one} elsewhere than at the ends (a literal one is \{one})", begin)
        return Chars(self.character(one, begin))

    def group(self, begin: int) -> Expression:
        if self.take("?"):
            named = self.take("P<")
            if named:
                end = self.text.find(">", self.at)
                if end < 0 or not self.text[self.at : end].isidentifier():
                    self.refuse("a group whose name has no end", begin)
                self.at = end + 1
            elif not self.take(":"):
                self.refuse("a group with ? that is neither (?: ) nor (?P<name> )", begin)
        self.depth += 1
        if self.depth > _DEEPEST:
            self.refuse(f"groups nested more than {_DEEPEST} deep", begin)
        found = self.branches()
        self.depth -= 1
        if not self.take(")"):
            self.refuse("a ( without its )", begin)
        return found

    def braces(self, begin: int) -> _Set:
        inverted = self.take("^")
        certain: list[tuple[int, int]] = []
        possible: list[tuple[int, int]] = []
        first = True
        while first or not self.take("]"):
            if self.at >= len(self.text):
                self.refuse("a [ without its ]", begin)
            first = False
            low = self.member()
            if self.text[self.at : self.at + 1] == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                at = self.at
                self.at += 1
                high = self.member()
                ends = [one.certain for one in (low, high)]
                if any(len(end) != 1 or end[0][0] != end[0][1] for end in ends) or ends[0][0][0] > ends[1][0][0]:
                    self.refuse("a range that does not go from one character up to another", at)
                # A range across the surrogates leaves them out.
                span = common(((ends[0][0][0], ends[1][0][0]),), ANY)
                low = _Set(span, span)
            certain += low.certain
            possible += low.possible
        found = _Set(union(certain), union(possible))
        found = found.other() if inverted else found
        if not found.certain:
            self.refuse("a class without any character", begin)
        return found

    def member(self) -> _Set:
        begin, one = self.at, self.text[self.at]
        self.at += 1
        if one == "\\":
            return self.escape(begin, inside=True)
        exact = self.character(one, begin)
        return _Set(exact, exact)

    def escape(self, begin: int, *, inside: bool) -> _Set:
        if self.at >= len(self.text):
            self.refuse("a \\ at the end", begin)
        one = self.text[self.at]
        self.at += 1
        if one in "dwsDWS":
            found = _Set(ascii_class(one.lower()), unicode_class(one.lower()))
            found = found if one.islower() else found.other()
            if not found.certain:
                self.refuse("a class without any character", begin)
            return found
        if one in "xu":
            size = 2 if one == "x" else 4
            digits = self.text[self.at : self.at + size]
            if len(digits) < size or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                self.refuse(f"\\{one} without {size} hexadecimal digits", begin)
            self.at += size
            exact = self.character(chr(int(digits, 16)), begin)
        elif one in _CONTROLS or (one == "b" and inside):
            if one == "0" and self.text[self.at : self.at + 1].isdigit():
                self.refuse("an octal escape", begin)
            exact = self.character("\b" if one == "b" else _CONTROLS[one], begin)
        elif one.isascii() and one.isalnum():
            self.refuse(f"\\{one}", begin)
        else:
            exact = self.character(one, begin)
        return _Set(exact, exact)

    def character(self, one: str, begin: int) -> Ranges:
        if 0xD800 <= ord(one) <= 0xDFFF:
            self.refuse("half of a surrogate pair", begin)
        return ((ord(one), ord(one)),)

    def take(self, sign: str) -> bool:
        if self.text.startswith(sign, self.at):
            self.at += len(sign)
            return True
        return False

    def refuse(self, what: str, at: int | None = None) -> NoReturn:
        at = self.at if at is None else at
        raise WonderlandError(
            f"The regular expression has {what} at character {at} ({self.text[at : at + 12]!r}): "
            "what is understood are literals, classes, ., *, +, ?, {m,n}, |, groups and escapes."
        )
