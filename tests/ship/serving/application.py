"""Requests to an application without a network: the ASGI messages of one request, and its answer."""

import asyncio
import json
from functools import cache
from typing import Any

from tests import runs
from wonderland.ship.predictor import Predictor
from wonderland.ship.serving.app import guarded, routes
from wonderland.ship.serving.limits import Limits
from wonderland.ship.serving.metrics import Metrics
from wonderland.ship.serving.serve import LOCAL

GOOD = {"age": 30, "income": 20000, "city": "Rome", "since": "2020-01-02"}


@cache
def predictors() -> tuple[Predictor, ...]:
    """A classifier of rows, a regression and a classifier of images, under short names."""
    return (
        Predictor(runs.classifier(), "mixed"),
        Predictor(runs.regressor(), "diabetes"),
        Predictor(runs.digits(), "digits"),
    )


def application(*chosen: Predictor, names: Any = LOCAL, keys: Any = None, **limits: Any):
    """An application with these runs, or the three above."""
    chosen = chosen or predictors()
    metrics = Metrics(routes([predictor.name for predictor in chosen]))
    return guarded(chosen, Limits(**limits), metrics, keys=keys, names=names)


def ask(app: Any, *requests: tuple) -> Any:
    """Send requests (method, path, content, headers), all at the same time; the answers as (status, headers, body).

    Content that is not bytes is sent as JSON, and JSON answers are read. One request gives one answer instead of a list.
    """

    async def all_of_them():
        return await asyncio.gather(*(_one(app, *request) for request in requests))

    answers = asyncio.run(all_of_them())
    return answers[0] if len(answers) == 1 else answers


async def _one(app: Any, method: str, path: str, content: Any = None, headers: dict[str, str] | None = None):
    path, _, query = path.partition("?")
    given = {"host": "localhost:8000", **(headers or {})}
    body = b"" if content is None else content
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
        given.setdefault("content-type", "application/json")
    given.setdefault("content-length", str(len(body)))
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(), "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()], "scheme": "http", "http_version": "1.1",
        "server": ("localhost", 8000), "root_path": "", "asgi": {"version": "3.0"},
    }  # fmt: skip
    sent: list[Any] = []
    given_already = False

    async def receive():
        nonlocal given_already
        if given_already:
            await asyncio.sleep(3600)
        given_already = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    head = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    answer = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], head, json.loads(answer) if "json" in head.get("content-type", "") else answer
