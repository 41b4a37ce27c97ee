"""The record of a run: what it cost, what was decided, and how to repeat it."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from wonderland.understand import page
from wonderland.understand.facts import Facts
from wonderland.understand.format import compact, escape, number, size

_TEXT = 60_000
_COSTS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "parameters": ("Parameters", compact),
    "trainable": ("Parameters that were trained", compact),
    "model_bytes": ("Size of the model file", size),
    "flops": ("FLOPs for one example, forward", compact),
    "activation_bytes": ("Memory kept for one example in training", size),
    "steps": ("Steps done", number),
    "steps_planned": ("Steps planned", number),
    "epochs": ("Epochs", number),
    "threads": ("Threads", number),
    "device": ("Device", escape),
}


def cost(facts: Facts) -> str:
    """What was spent, and where, layer by layer."""
    found = facts.get("cost") or {}
    rows = [[name, page.Number(show(found[key]))] for key, (name, show) in _COSTS.items() if found.get(key) is not None]
    rest = [key for key in found if key not in _COSTS and key != "by_layer" and found[key] is not None]
    rows += [[str(key).replace("_", " ").capitalize(), page.Number(page.show(found[key]))] for key in rest[:20]]
    layers = [layer for layer in found.get("by_layer") or () if isinstance(layer, Mapping)]
    if not rows and not layers:
        return ""
    body = page.table([], rows, "Cost")
    if layers:
        cells = [[v.get("name"), v.get("kind"), v.get("output"), v.get("parameters"), v.get("flops")] for v in layers]
        table = page.table(["layer", "kind", "output", "parameters", "FLOPs"], cells, "Cost by layer")
        body += f"<details><summary>Layer by layer ({number(len(layers))})</summary>{table}</details>"
    return body


def recipe(facts: Facts) -> str:
    """The configuration in full."""
    config = facts.get("config")
    if not config:
        return ""
    text = json.dumps(config, indent=2, ensure_ascii=False, default=str)
    if len(text) > _TEXT:
        text = text[:_TEXT] + "\n… cut here; the whole text is in config.json."
    lines = text.count("\n") + 1
    return (
        page.p("Everything that was decided before the first step, as it stands in <code>config.json</code>.")
        + f'<details><summary>config.json ({number(lines)} lines)</summary><pre tabindex="0">{escape(text)}</pre></details>'
    )


def repeat(facts: Facts) -> str:
    """Commands, the fingerprint of the data, and versions."""
    body = ""
    for command in list(facts.get("commands") or ())[:20]:
        known = isinstance(command, Mapping)
        text = command.get("text") if known else ""
        line = str(command.get("command", "") if known else command)[:4000]
        body += (page.p(escape(text)) if text else "") + f'<pre class="command" tabindex="0">{escape(line)}</pre>'
    if body:
        body += page.p("A click marks a whole command, ready to copy.", "quiet screen")
    if facts.get("fingerprint"):
        body += page.p(f"Fingerprint of the data: {page.code(facts['fingerprint'])}", "quiet")
    versions = facts.get("versions") or {}
    if versions:
        rows = [[str(name), page.Html(page.show(version))] for name, version in versions.items()]
        table = page.table(["package", "version"], rows, "Versions")
        body += f'<h3>Environment</h3><div class="narrow">{table}</div>'
    return body
