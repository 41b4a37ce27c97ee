"""Equations and doctests of docstrings for the site: LaTeX becomes MathML, which browsers draw without scripts."""

import re
from typing import Any

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

INLINE = re.compile(r":math:`([^`]+)`")


class Equations(Preprocessor):
    """Replaces `.. math::` blocks and `:math:` roles by MathML, and lines that begin with >>> by blocks of Python."""

    def run(self, lines: list[str]) -> list[str]:
        out: list[str] = []
        i = 0
        while i < len(lines):
            line = lines[i]
            if line.strip() == ".. math::":
                i, block = self.indented(lines, i + 1)
                out += ["", self.stored(" ".join(block), "block"), ""]
            elif line.startswith(">>>"):
                end = next((k for k in range(i, len(lines)) if not lines[k].strip()), len(lines))
                out += ["```pycon", *lines[i:end], "```"]
                i = end
            else:
                out.append(INLINE.sub(lambda found: self.stored(found[1], "inline"), line))
                i += 1
        return out

    def indented(self, lines: list[str], start: int) -> tuple[int, list[str]]:
        """The end of the indented block at `start`, and its lines without blanks."""
        end = start
        while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" ")):
            end += 1
        return end, [line.strip() for line in lines[start:end] if line.strip()]

    def stored(self, latex: str, display: str) -> str:
        return self.md.htmlStash.store(convert(latex, display=display))


class EquationsExtension(Extension):
    def extendMarkdown(self, md: Markdown) -> None:
        # Before fenced code is found (25) and whitespace is normalised away, so that its own fences count.
        md.preprocessors.register(Equations(md), "equations", 27)


def makeExtension(**options: Any) -> EquationsExtension:
    return EquationsExtension(**options)
