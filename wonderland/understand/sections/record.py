"""Cost, configuration, and the commands that reproduce a run."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from wonderland.understand import page
from wonderland.understand.facts import Facts
from wonderland.understand.format import compact, escape, number, size

_MAX_CHARACTERS = 60_000
_COSTS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "parameters": ("Parameters", compact),
    "trainable": ("Trained parameters", compact),
    "model_bytes": ("Size of the model file", size),
    "flops": ("FLOPs for one example, forward", compact),
    "activation_bytes": ("Activation memory of one example in training", size),
    "steps": ("Steps run", number),
    "steps_planned": ("Steps planned", number),
    "epochs": ("Epochs", number),
    "threads": ("Threads", number),
    "device": ("Device", escape),
}


def cost(facts: Facts) -> str:
    """Parameters, FLOPs, memory and steps, in total and by layer."""
    costs = facts.get("cost") or {}
    rows = [[name, page.Number(show(costs[key]))] for key, (name, show) in _COSTS.items() if costs.get(key) is not None]
    rest = [key for key in costs if key not in _COSTS and key != "by_layer" and costs[key] is not None]
    rows += [[str(key).replace("_", " ").capitalize(), page.Number(page.show(costs[key]))] for key in rest[:20]]
    layers = [layer for layer in costs.get("by_layer") or () if isinstance(layer, Mapping)]
    if not rows and not layers:
        return ""
    body = page.table([], rows, "Cost")
    if layers:
        cells = [[v.get("name"), v.get("kind"), v.get("output"), v.get("parameters"), v.get("flops")] for v in layers]
        table = page.table(["layer", "kind", "output", "parameters", "FLOPs"], cells, "Cost by layer")
        body += f"<details><summary>Layer by layer ({number(len(layers))})</summary>{table}</details>"
    return body


def recipe(facts: Facts) -> str:
    """The whole configuration."""
    config = facts.get("config")
    if not config:
        return ""
    text = json.dumps(config, indent=2, ensure_ascii=False, default=str)
    if len(text) > _MAX_CHARACTERS:
        text = text[:_MAX_CHARACTERS] + "\n… cut here; the rest is in config.json."
    lines = text.count("\n") + 1
    return (
        page.p("The configuration of the run, written to <code>config.json</code> before the first step.")
        + f'<details><summary>config.json ({number(lines)} lines)</summary><pre tabindex="0">{escape(text)}</pre></details>'
    )


def reproduce(facts: Facts) -> str:
    """Commands, the fingerprint of the data, and versions."""
    body = ""
    for command in list(facts.get("commands") or ())[:20]:
        described = isinstance(command, Mapping)
        text = command.get("text") if described else ""
        line = str(command.get("command", "") if described else command)[:4000]
        body += (page.p(escape(text)) if text else "") + f'<pre class="command" tabindex="0">{escape(line)}</pre>'
    if body:
        body += page.p("Click a command to select all of it.", "quiet screen")
    if facts.get("fingerprint"):
        body += page.p(f"Fingerprint of the data: {page.code(facts['fingerprint'])}", "quiet")
    versions = facts.get("versions") or {}
    if versions:
        rows = [[str(name), page.Html(page.show(version))] for name, version in versions.items()]
        table = page.table(["package", "version"], rows, "Versions")
        body += f'<h3>Environment</h3><div class="narrow">{table}</div>'
    return body
