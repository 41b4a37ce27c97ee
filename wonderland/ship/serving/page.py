"""The page of a server: what it serves and how it is asked, without scripts."""

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid; border-radius: .4rem; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
.wide { overflow-x: auto; }
"""
_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def overview(runs: Sequence[dict[str, Any]]) -> str:
    """The page, for the descriptions of runs."""
    body = "".join(_run(run) for run in runs)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Wonderland server</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body><main>'
        "<h1>Wonderland server</h1><p>The interface is described in <a href='/openapi.json'>/openapi.json</a>; "
        "<a href='/v1/runs'>/v1/runs</a> lists the runs, <a href='/metrics'>/metrics</a> has counters for Prometheus, "
        f"<a href='/health'>/health</a> says that the server is ready.</p>{body}</main></body></html>"
    )


def _run(run: dict[str, Any]) -> str:
    fields = run["fields"]
    rows = "".join(
        f"<tr><td>{escape(field['name'])}</td><td>{escape(field['kind'])}</td>"
        f"<td>{escape(', '.join(field['levels'][:12]))}{' …' if len(field['levels']) > 12 else ''}</td></tr>"
        for field in fields[:100]
    )
    example = {field["name"]: field["levels"][0] if field["levels"] else None for field in fields}
    path = f"/v1/runs/{run['name']}/predict"
    request = json.dumps({"rows": [example]}, ensure_ascii=False)
    command = f"curl -s http://HOST{path} -H 'Content-Type: application/json' -d '{request}'"
    chat = "chat" in run["abilities"]
    also = "<p>It also answers <code>/v1/completions</code> and <code>/v1/chat/completions</code>.</p>" if chat else ""
    return (
        f"<h2>{escape(run['name'])}</h2><p>{escape(run['task'])}, version {escape(run['version'])}. "
        f"<code>POST {escape(path)}</code></p>{also}<pre tabindex='0'>{escape(command)}</pre>"
        f"<div class='wide' tabindex='0'><table><tr><th>field</th><th>kind</th><th>known values</th></tr>{rows}</table></div>"
    )
