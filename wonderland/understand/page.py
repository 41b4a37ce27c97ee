"""The HTML of a report: frame, style sheet, and the elements that sections are made of."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from wonderland.understand import svg
from wonderland.understand.format import MISSING, escape, number

_MAX_ROWS = 200
_SHORT_TEXT = 20  # characters: a date with its time is never broken


def frame(title: str, header: str, sections: Sequence[tuple[str, str, str, str]]) -> str:
    """The whole page: header, navigation, and sections (anchor, link, heading, HTML)."""
    links = "".join(f'<a href="#{anchor}">{link}</a>' for anchor, link, _, _ in sections)
    nav = f'<nav aria-label="Sections"><div>{links}</div></nav>' if len(sections) > 1 else ""
    policy = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)} · Wonderland report</title>\n<style>{svg.CSS}{_CSS}</style>\n</head>\n"
        f'<body class="wl">\n{header}\n{nav}\n<main>\n'
        + "\n".join(f'<section id="{a}"><h2>{escape(name)}</h2>{body}</section>' for a, _, name, body in sections)
        + "\n</main>\n<footer>Made by Wonderland. This page is one file and loads nothing from the network.</footer>\n"
        "</body>\n</html>\n"
    )


def figure(chart: str, caption: str = "", *, head: str = "", wide: bool = False) -> str:
    """A chart with a heading above and a caption (HTML) below; a wide chart scrolls inside its own box."""
    above = f"<h3>{escape(head)}</h3>" if head else ""
    below = f"<figcaption>{caption}</figcaption>" if caption else ""
    box = ' class="wide" tabindex="0"' if wide else ""
    return f"{above}<figure><div{box}>{svg.without_style(chart)}</div>{below}</figure>"


def pair(*parts: str) -> str:
    """Parts side by side on wide screens."""
    parts = tuple(part for part in parts if part)
    return f'<div class="pair">{"".join(f"<div>{part}</div>" for part in parts)}</div>' if parts else ""


def p(text: str, classes: str = "") -> str:
    """A paragraph of text that is already HTML."""
    return f'<p class="{classes}">{text}</p>' if classes else f"<p>{text}</p>"


def show(value: Any, limit: int = 120) -> str:
    """A table cell as HTML: formatted numbers, and text cut to `limit` with break opportunities in long words."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        text = number(value, 4)
        return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text
    if isinstance(value, (list, tuple)) and all(isinstance(v, (int, float)) for v in value):
        return " × ".join(map(str, value))
    return breakable(
        truncate(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str), limit)
    )


def truncate(text: str, limit: int) -> str:
    """The text, cut to at most `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def breakable(text: Any) -> str:
    """Escaped text in which long words may break: after one of _/.- or else every 18 characters."""
    pieces = []
    for word in re.split(r"(\s+)", str(text)):
        parts = re.findall(r"[^_/.\-]{0,17}[_/.\-]|[^_/.\-]{1,18}", word) if len(word) > 18 else [word]
        pieces.append("<wbr>".join(map(escape, parts)))
    return "".join(pieces)


class Html(str):
    """Text that is HTML already."""


class Number(Html):
    """A formatted number, aligned right."""


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], label: str, *, first: bool = True) -> str:
    """A table that scrolls horizontally, with numbers aligned right. An empty `head` means names and values."""
    rows = [list(row) for row in rows]
    if not rows:
        return ""
    classes = [_column_class(column) for column in zip(*rows, strict=True)]
    top = "".join(
        f'<th scope="col"{m}>{breakable(truncate(str(n), 80))}</th>' for n, m in zip(head, classes, strict=bool(head))
    )
    body = []
    for row in rows[:_MAX_ROWS]:
        cells = [v if isinstance(v, Html) else show(v) for v in row]
        tags = ['th scope="row"' if first and i == 0 else "td" for i in range(len(cells))]
        parts = (f"<{t}{m}>{c}</{t[:2]}>" for t, m, c in zip(tags, classes, cells, strict=True))
        body.append(f"<tr>{''.join(parts)}</tr>")
    more = p(f"… and {number(len(rows) - _MAX_ROWS)} more.", "quiet") if len(rows) > _MAX_ROWS else ""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}"><table{"" if head else " class=kv"}>'
        f"{f'<thead><tr>{top}</tr></thead>' if head else ''}<tbody>{''.join(body)}</tbody></table></div>{more}"
    )


def _column_class(column: Sequence[Any]) -> str:
    """The CSS class of a column: numbers, long text, short text that does not wrap, or none."""
    if all(v is None or isinstance(v, (int, float, Number)) for v in column):
        return ' class="n"'
    if all(v is None or (isinstance(v, str) and not isinstance(v, Html) and len(v) <= _SHORT_TEXT) for v in column):
        return ' class="o"'
    return ' class="w"' if any(isinstance(v, str) and len(v) > 40 for v in column) else ""


def code(text: Any) -> str:
    """Text as code."""
    return f"<code>{breakable(text)}</code>"


_CSS = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-padding-top:4rem}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;overflow-wrap:break-word}
header,main,nav div,footer{max-width:1000px;margin:0 auto;padding:0 20px}
header{padding-top:56px;padding-bottom:36px}
h1{font-size:clamp(1.9rem,5vw,2.6rem);line-height:1.15;letter-spacing:-.02em;margin:.2em 0 .45em;overflow-wrap:anywhere}
h2{font-size:1.45rem;line-height:1.25;letter-spacing:-.01em;margin:0 0 1.1rem}
h3{font-size:1rem;margin:1.8rem 0 .6rem}
p{margin:0 0 1rem;max-width:68ch}
.eyebrow{color:var(--muted);font-size:.82rem;letter-spacing:.06em;text-transform:uppercase;margin:0}
.verdict{font-size:clamp(1.1rem,2.6vw,1.35rem);line-height:1.5;max-width:46ch;margin-bottom:1.6rem}
.quiet,figcaption,footer{color:var(--muted);font-size:.88rem;line-height:1.5}
header dl{display:flex;flex-wrap:wrap;gap:.5rem 2.2rem;margin:0}
header dl div{min-width:0}
header dt{color:var(--muted);font-size:.82rem}
header dd{margin:0;overflow-wrap:anywhere}
nav{position:sticky;top:0;z-index:1;background:var(--paper);border-block:1px solid var(--line)}
nav div{display:flex;gap:1.5rem;overflow-x:auto;white-space:nowrap;scrollbar-width:none}
nav div::-webkit-scrollbar{display:none}
nav a{color:var(--muted);text-decoration:none;font-size:.92rem;padding:.72rem 0}
nav a:hover,nav a:focus{color:var(--ink);text-decoration:underline;text-underline-offset:.35em}
section{padding:48px 0;border-bottom:1px solid var(--line)}
section:last-child{border-bottom:0}
.pair{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:2rem 3rem;align-items:start}
.pair+h3,.pair+p,.pair+.pair{margin-top:2.2rem}
.pair h3:first-child{margin-top:0}
.tiles{display:grid;grid-template-columns:repeat(4,minmax(0,1fr));gap:12px;margin:0}
.tile{background:var(--soft);border-radius:10px;padding:14px 16px}
.tile dt{color:var(--muted);font-size:.85rem}
.tile dd{margin:0}
.tile strong{display:block;font-size:1.55rem;line-height:1.35;font-weight:600;letter-spacing:-.01em;
font-variant-numeric:tabular-nums}
.tile span{display:block;color:var(--muted);font-size:.78rem;line-height:1.35}
figure{margin:0 0 1.2rem}
figure>.wide{overflow-x:auto}
.sample pre{background:var(--soft);border-radius:10px;padding:14px 16px;margin:0 0 .4rem;white-space:pre-wrap;overflow-wrap:anywhere;
font:14px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;max-height:26rem;overflow-y:auto}
.sample .given{color:var(--muted)}
figure svg.wl{display:block;width:100%;max-width:520px;height:auto}
figure .wide svg.wl{min-width:620px;max-width:820px}
figcaption{margin-top:.6rem;max-width:68ch}
.pair figure+h3{margin-top:1.8rem}
.scroll{overflow-x:auto;margin:0 0 1rem}
table{border-collapse:collapse;width:100%;font-size:.9rem;line-height:1.45}
table.kv,.narrow{max-width:560px}
th,td{text-align:left;padding:.5rem 1.1rem .5rem 0;border-bottom:1px solid var(--line);vertical-align:top;
font-weight:400;max-width:26rem}
tr>:last-child{padding-right:2px}
th.w,td.w{min-width:11rem}
thead th{color:var(--muted);font-size:.82rem;vertical-align:bottom}
th.n,td.n{text-align:right;font-variant-numeric:tabular-nums}
td.n,td.o{white-space:nowrap}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;font-size:.86em}
pre{background:var(--soft);border-radius:8px;padding:14px 16px;overflow-x:auto;margin:0 0 1rem;line-height:1.5}
pre.command{user-select:all;-webkit-user-select:all;white-space:pre-wrap;overflow-wrap:anywhere}
summary{cursor:pointer;padding:.5rem 0;font-weight:500}
.gallery{display:grid;grid-template-columns:repeat(auto-fill,minmax(104px,1fr));gap:20px 16px}
.gallery figure{margin:0;min-width:0}
.gallery img{display:block;width:96px;height:96px;object-fit:contain;image-rendering:pixelated;
border:1px solid var(--line);border-radius:8px;background:var(--soft)}
.gallery figcaption{margin-top:.35rem;line-height:1.4;overflow-wrap:anywhere}
.gallery b{color:var(--ink)}
.gallery.wide{grid-template-columns:repeat(auto-fill,minmax(min(100%,300px),1fr))}
.gallery.wide img{width:100%;height:auto}
footer{padding-top:28px;padding-bottom:56px}
@media (max-width:760px){.pair{grid-template-columns:minmax(0,1fr)}header{padding-top:32px}section{padding:36px 0}
.tiles{grid-template-columns:repeat(2,minmax(0,1fr))}.tile{padding:12px 14px}.tile strong{font-size:1.35rem}}
@media print{nav,.screen{display:none}section{break-inside:avoid}}
"""
