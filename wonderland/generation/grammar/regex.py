r"""A parser of regular expressions: the part of Python's `re` that describes a regular language.

Literals, `.`, classes (`[a-z]`, `[^"]`), escapes (`\d \w \s \D \W \S`, `\n \t \r \f \v \0`, `\xhh`, `\uhhhh`, and any
punctuation), `*`, `+`, `?`, `{m}`, `{m,}`, `{,n}`, `{m,n}` (also lazy, with a `?`, which makes no difference for a
full match), `|`, groups `( )`, `(?: )`, `(?P<name> )`, and `^`, `$` at the ends of the expression or of its outermost branches.
Everything else (backreferences, lookaround, flags, word boundaries) is refused.

Readers of expressions disagree on whether `\d`, `\w` and `\s` mean ASCII or Unicode. Here they stand for ASCII characters, and
their complements (`\D`, `[^\d]`) exclude all of Unicode's, so a text that matches here matches in Python with and without
`re.ASCII`, and in JSON Schema.
"""

from dataclasses import dataclass
from typing import Any, NoReturn

from wonderland.core import WonderlandError
from wonderland.generation.grammar.characters import (
    ANY,
    Ranges,
    ascii_class,
    complement,
    intersection,
    unicode_class,
    union,
)
from wonderland.generation.grammar.expressions import CharSet, Concat, Expression, Repeat, Union

MAX_LENGTH = 10_000
MAX_REPEATS = 1000
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
_MAX_DEPTH = 50


@dataclass(frozen=True)
class _Set:
    """A character class: `certain` for every reader of the expression, `possible` for at least one (see above)."""

    certain: Ranges
    possible: Ranges

    def complement(self) -> "_Set":
        return _Set(complement(self.possible), complement(self.certain))


def parse(pattern: Any, *, search: bool = False) -> Expression:
    r"""The tree of an expression that matches whole texts; with `search`, of one that matches anywhere in a text.

    >>> parse("a|b")
    Union(parts=(Concat(parts=(CharSet(ranges=((97, 97),)),)), Concat(parts=(CharSet(ranges=((98, 98),)),))))
    """
    if not isinstance(pattern, str):
        raise WonderlandError(f"A regular expression is a string, not a {type(pattern).__name__}.")
    if len(pattern) > MAX_LENGTH:
        raise WonderlandError(
            f"The regular expression has {len(pattern):,} characters: at most {MAX_LENGTH:,} are allowed."
        )
    return _Parser(pattern, search).pattern()


class _Parser:
    """A recursive descent parser: each method reads one rule of the grammar at position `at`."""

    def __init__(self, pattern: str, search: bool):
        self.text, self.at, self.search, self.depth = pattern, 0, search, 0

    def pattern(self) -> Expression:
        branches = [self.outer_branch()]
        while self.take("|"):
            branches.append(self.outer_branch())
        if self.at < len(self.text):
            self.refuse("a ) without a (")
        return branches[0] if len(branches) == 1 else Union(tuple(branches))

    def outer_branch(self) -> Expression:
        anything = Repeat(CharSet(ANY), 0, None)
        before = () if self.take("^") or not self.search else (anything,)
        inner = self.sequence()
        after = () if self.take("$") or not self.search else (anything,)
        return Concat((*before, *inner, *after))

    def branches(self) -> Expression:
        branches = [Concat(self.sequence())]
        while self.take("|"):
            branches.append(Concat(self.sequence()))
        return branches[0] if len(branches) == 1 else Union(tuple(branches))

    def sequence(self) -> tuple[Expression, ...]:
        parts = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if self.text[self.at] == "$" and self.depth == 0 and self.text[self.at + 1 : self.at + 2] in ("", "|"):
                break
            parts.append(self.repeated())
        return tuple(parts)

    def repeated(self) -> Expression:
        part = self.single()
        begin = self.at
        bounds = self.repetition()
        if bounds is None:
            return part
        if self.at < len(self.text) and self.text[self.at] == "+":
            self.refuse("a possessive repetition", self.at)
        self.take("?")
        after = self.at
        if self.repetition() is not None:
            self.refuse("a repetition of a repetition without a group", after)
        least, most = bounds
        if most is not None and most < least:
            self.refuse(f"a repetition from {least} to {most} times", begin)
        if max(least, most or 0) > MAX_REPEATS:
            self.refuse(f"more than {MAX_REPEATS} repetitions", begin)
        return Repeat(part, least, most)

    def repetition(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return bounds
        begin = self.at
        if not self.take("{"):
            return None
        low = self.digits()
        high = self.digits() if (comma := self.take(",")) else low
        if not self.take("}") or (low == "" and high == ""):
            self.refuse(r"a { that is not a repetition (a literal one is \{)", begin)
        return int(low or 0), None if comma and high == "" else int(high)

    def digits(self) -> str:
        begin = self.at
        while self.at < len(self.text) and self.text[self.at] in "0123456789" and self.at - begin < 9:
            self.at += 1
        return self.text[begin : self.at]

    def single(self) -> Expression:
        begin, sign = self.at, self.text[self.at]
        self.at += 1
        if sign == "(":
            return self.group(begin)
        if sign == "[":
            return CharSet(self.character_class(begin).certain)
        if sign == ".":
            return CharSet(complement(((10, 10),)))
        if sign == "\\":
            return CharSet(self.escape(begin, inside=False).certain)
        if sign in "*+?":
            self.refuse(f"a {sign} with nothing to repeat", begin)
        if sign == "{":
            self.refuse(r"a { with nothing to repeat (a literal one is \{)", begin)
        if sign in "^$":
            self.refuse(rf"a {sign} that is not at the start or end (a literal one is \{sign})", begin)
        return CharSet(self.character(sign, begin))

    def group(self, begin: int) -> Expression:
        if self.take("?"):
            named = self.take("P<")
            if named:
                end = self.text.find(">", self.at)
                if end < 0 or not self.text[self.at : end].isidentifier():
                    self.refuse("a group without a valid name", begin)
                self.at = end + 1
            elif not self.take(":"):
                self.refuse("a group with ? that is neither (?: ) nor (?P<name> )", begin)
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.refuse(f"groups nested more than {_MAX_DEPTH} deep", begin)
        inner = self.branches()
        self.depth -= 1
        if not self.take(")"):
            self.refuse("a ( without a )", begin)
        return inner

    def character_class(self, begin: int) -> _Set:
        inverted = self.take("^")
        certain: list[tuple[int, int]] = []
        possible: list[tuple[int, int]] = []
        first = True
        while first or not self.take("]"):
            if self.at >= len(self.text):
                self.refuse("a [ without a ]", begin)
            first = False
            low = self.member()
            if self.text[self.at : self.at + 1] == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                at = self.at
                self.at += 1
                high = self.member()
                ends = [low.certain, high.certain]
                if any(len(end) != 1 or end[0][0] != end[0][1] for end in ends) or ends[0][0][0] > ends[1][0][0]:
                    self.refuse("a range that does not go from one character up to another", at)
                # A range across the surrogates excludes them.
                span = intersection(((ends[0][0][0], ends[1][0][0]),), ANY)
                low = _Set(span, span)
            certain += low.certain
            possible += low.possible
        members = _Set(union(certain), union(possible))
        members = members.complement() if inverted else members
        if not members.certain:
            self.refuse("a class without any character", begin)
        return members

    def member(self) -> _Set:
        begin, sign = self.at, self.text[self.at]
        self.at += 1
        if sign == "\\":
            return self.escape(begin, inside=True)
        exact = self.character(sign, begin)
        return _Set(exact, exact)

    def escape(self, begin: int, *, inside: bool) -> _Set:
        if self.at >= len(self.text):
            self.refuse("a \\ at the end", begin)
        sign = self.text[self.at]
        self.at += 1
        if sign in "dwsDWS":
            members = _Set(ascii_class(sign.lower()), unicode_class(sign.lower()))
            members = members if sign.islower() else members.complement()
            if not members.certain:
                self.refuse("a class without any character", begin)
            return members
        if sign in "xu":
            size = 2 if sign == "x" else 4
            digits = self.text[self.at : self.at + size]
            if len(digits) < size or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                self.refuse(f"\\{sign} without {size} hexadecimal digits", begin)
            self.at += size
            exact = self.character(chr(int(digits, 16)), begin)
        elif sign in _CONTROLS or (sign == "b" and inside):
            if sign == "0" and self.text[self.at : self.at + 1].isdigit():
                self.refuse("an octal escape", begin)
            exact = self.character("\b" if sign == "b" else _CONTROLS[sign], begin)
        elif sign.isascii() and sign.isalnum():
            self.refuse(f"\\{sign}", begin)
        else:
            exact = self.character(sign, begin)
        return _Set(exact, exact)

    def character(self, sign: str, begin: int) -> Ranges:
        if 0xD800 <= ord(sign) <= 0xDFFF:
            self.refuse("half of a surrogate pair", begin)
        return ((ord(sign), ord(sign)),)

    def take(self, sign: str) -> bool:
        if self.text.startswith(sign, self.at):
            self.at += len(sign)
            return True
        return False

    def refuse(self, problem: str, at: int | None = None) -> NoReturn:
        at = self.at if at is None else at
        raise WonderlandError(
            f"The regular expression has {problem} at character {at} ({self.text[at : at + 12]!r}): "
            "only literals, classes, ., *, +, ?, {m,n}, |, groups and escapes are supported."
        )
