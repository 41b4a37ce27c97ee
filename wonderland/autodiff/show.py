"""Displays of a trace: a text table, and an HTML page with memory over time."""

from collections import Counter
from html import escape
from typing import Any

from wonderland.autodiff import code, cost, memory

MAX_ROWS = 2000
_CSS = """
.wl-trace { font: 14px/1.45 system-ui, sans-serif; color: #1c2430; max-width: 1180px; margin: 0 auto; }
.wl-trace h1 { font-size: 22px; margin: 18px 0 4px; } .wl-trace h2 { font-size: 16px; margin: 26px 0 8px; }
.wl-trace .sum { color: #5a6675; margin: 0 0 14px; }
.wl-trace .cards { display: flex; gap: 12px; flex-wrap: wrap; }
.wl-trace .card { border: 1px solid #dbe1e8; border-radius: 8px; padding: 8px 14px; min-width: 120px; background: #fff; }
.wl-trace .card b { display: block; font-size: 19px; } .wl-trace .card span { color: #5a6675; font-size: 12px; }
.wl-trace table { border-collapse: collapse; width: 100%; font-size: 12.5px; }
.wl-trace th { text-align: left; color: #5a6675; font-weight: 600; border-bottom: 1px solid #c9d1da; padding: 4px 8px; }
.wl-trace td { border-bottom: 1px solid #eef1f5; padding: 3px 8px; vertical-align: top; }
.wl-trace th.n { text-align: right; }
.wl-trace td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.wl-trace code { font: 12px/1.4 ui-monospace, monospace; white-space: pre-wrap; word-break: break-word; }
.wl-trace .bar { background: #4a7fb5; height: 9px; border-radius: 2px; min-width: 1px; }
.wl-trace .line { color: #7a8694; white-space: nowrap; }
.wl-trace .scroll { overflow-x: auto; }
"""


def format_count(number: float) -> str:
    """A count as text: "1.2 M"."""
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{int(number)}"


def rows(trace: Any) -> list[dict[str, str]]:
    """The table cells of each step, by column."""
    cells = []
    live = memory.timeline(trace.inputs, trace.steps, trace.outputs, [value for value, _ in trace.constants])
    for number, (step, moment) in enumerate(zip(trace.steps, live, strict=True)):
        cells.append(
            {
                "step": str(number),
                "program": code.statement(step, trace.names),
                "gives": ", ".join(value.describe() for value in step.outputs),
                "operations": format_count(cost.flops(step)),
                "moves": memory.format_bytes(cost.bytes_moved(step)),
                "alive": memory.format_bytes(moment.live),
                "module": step.module,
                "line": code.file_line(step.line),
            }
        )
    return cells


def table(trace: Any) -> str:
    """Text in columns, one line for each step."""
    lines = [
        {name: name for name in ("step", "program", "gives", "operations", "moves", "alive", "line")},
        *rows(trace),
    ]
    widths = {name: max(len(line[name]) for line in lines) for name in lines[0]}
    widths["program"] = min(widths["program"], 70)
    text = []
    for line in lines:
        cells = []
        for name, width in widths.items():
            cell = line[name] if len(line[name]) <= width else line[name][: width - 3] + "..."
            cells.append(cell.rjust(width) if name in ("operations", "moves", "alive", "step") else cell.ljust(width))
        text.append("  ".join(cells).rstrip())
    peak = memory.format_bytes(trace.peak)
    return "\n".join(
        [
            *text,
            "",
            f"{len(trace.steps)} steps, {format_count(trace.flops)} operations, {memory.format_bytes(trace.bytes)} moved, peak {peak}",
        ]
    )


def fragment(trace: Any) -> str:
    """The trace as a piece of HTML, for notebooks."""
    cards = {
        "steps": f"{len(trace.steps):,}",
        "operations": format_count(trace.flops),
        "moved": memory.format_bytes(trace.bytes),
        "peak memory": memory.format_bytes(trace.peak),
        "inputs": str(len(trace.inputs)),
        "constants": str(len(trace.constants)),
    }
    shown = "".join(
        f'<div class="card"><b>{escape(value)}</b><span>{name}</span></div>' for name, value in cards.items()
    )
    return (
        f'<div class="wl-trace"><style>{_CSS}</style><h1>{escape(trace.name)}</h1>'
        f'<p class="sum">Every operator that the program ran, in order.</p><div class="cards">{shown}</div>'
        f"<h2>Memory over time</h2>{_chart(trace)}<h2>Where the work is</h2>{_shares(trace)}"
        f"<h2>Steps</h2>{_steps(trace)}</div>"
    )


def page(trace: Any) -> str:
    """The trace as a self-contained page; it loads no other resource."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(trace.name)} · Wonderland trace</title></head>"
        f'<body style="background:#f7f9fb;margin:0 18px 40px">{fragment(trace)}</body></html>\n'
    )


def _steps(trace: Any) -> str:
    names = ("step", "program", "gives", "operations", "moves", "alive", "module", "line")
    numbers = ("step", "operations", "moves", "alive")
    head = "".join(f"<th class='n'>{name}</th>" if name in numbers else f"<th>{name}</th>" for name in names)
    body = []
    for row in rows(trace)[:MAX_ROWS]:
        cells = []
        for name in names:
            text = escape(row[name])
            if name == "program":
                cells.append(f"<td><code>{text}</code></td>")
            elif name in ("operations", "moves", "alive", "step"):
                cells.append(f'<td class="n">{text}</td>')
            else:
                cells.append(f'<td class="{"line" if name in ("line", "module") else ""}">{text}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    more = len(trace.steps) - MAX_ROWS
    rest = f"<p>and {more:,} steps more</p>" if more > 0 else ""
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>{rest}'
    )


def _shares(trace: Any) -> str:
    work: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for step in trace.steps:
        name = cost.packet(step.target) or step.name
        work[name] += cost.flops(step)
        count[name] += 1
    whole = max(sum(work.values()), 1)
    body = ""
    for name, flops in work.most_common(10):
        share = 100 * flops / whole
        bar = f'<div class="bar" style="width:{max(share, 0.3):.1f}%"></div>'
        cells = f'<td><code>{escape(name)}</code></td><td class="n">{count[name]}</td><td class="n">{format_count(flops)}</td>'
        body += f'<tr>{cells}<td class="n">{share:.1f} %</td><td style="width:45%">{bar}</td></tr>'
    head = "<th>primitive</th><th class='n'>times</th><th class='n'>operations</th><th class='n'>share</th><th></th>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _chart(trace: Any) -> str:
    """Live memory at each step, as an area."""
    live = [moment.live for moment in trace.timeline()]
    if not live or not max(live):
        return "<p>No intermediate value takes memory.</p>"
    width, height, left, below = 1100, 180, 78, 26
    top = max(live)
    step = (width - left - 8) / max(len(live), 1)
    points = []
    for number, value in enumerate(live):
        y = 8 + (height - 8) * (1 - value / top)
        points.append(f"{left + number * step:.1f},{y:.1f} {left + (number + 1) * step:.1f},{y:.1f}")
    area = f"{left},{height} {' '.join(points)} {left + len(live) * step:.1f},{height}"
    at = live.index(top)
    ticks = ""
    for share in (0.0, 0.5, 1.0):
        y = 8 + (height - 8) * (1 - share)
        ticks += f'<line x1="{left}" x2="{width - 8}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dbe1e8"/>'
        ticks += f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{memory.format_bytes(top * share)}</text>'
    mark = left + (at + 0.5) * step
    side = "end" if mark > width / 2 else "start"
    label = f"peak at step {at}: {escape(cost.packet(trace.steps[at].target) or trace.steps[at].name)}"
    return (
        f'<svg viewBox="0 0 {width} {height + below}" role="img" aria-label="live memory at each step" '
        'style="width:100%;font:12px system-ui,sans-serif;fill:#5a6675">'
        f'{ticks}<polygon points="{area}" fill="#4a7fb5" fill-opacity="0.35" stroke="#2f5f8f" stroke-width="1"/>'
        f'<line x1="{mark:.1f}" x2="{mark:.1f}" y1="8" y2="{height}" stroke="#b5482f" stroke-dasharray="3 3"/>'
        f'<text x="{mark + (-6 if side == "end" else 6):.1f}" y="{height - 8}" text-anchor="{side}" fill="#b5482f">{label}</text>'
        f'<text x="{left}" y="{height + 18}">step 0</text>'
        f'<text x="{width - 8}" y="{height + 18}" text-anchor="end">step {len(live) - 1}</text></svg>'
    )
