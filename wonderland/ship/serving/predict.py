"""The route that predicts: JSON, CSV or files in, JSON or CSV out."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qs

from pydantic_core import to_json

from wonderland.core import WonderlandError
from wonderland.ship.predictor import Predictor
from wonderland.ship.serving.batching import Batcher
from wonderland.ship.serving.guard import Receive, Refused, Scope, Send, respond
from wonderland.ship.serving.inputs import UPLOADED, Inputs
from wonderland.ship.serving.limits import Limits
from wonderland.ship.serving.metrics import Metrics

LARGE = 1 << 16  # bytes; a larger body is read in the thread, so that others are not kept waiting
MOST_FILES = 64


class Predict:
    """Predictions of one run, for requests whose body the guard has read."""

    def __init__(self, predictor: Predictor, pool: ThreadPoolExecutor, limits: Limits, metrics: Metrics):
        self.predictor, self.pool, self.limits, self.metrics = predictor, pool, limits, metrics
        self.inputs = Inputs(predictor.fields)
        self.upload = next((field.name for field in predictor.fields if field.kind in UPLOADED), None)
        self.batcher = Batcher(predictor.answer, pool, on_batch=self._count)
        self.head = {"run": predictor.name, "version": predictor.version}

    def _count(self, requests: int, rows: int) -> None:
        self.metrics.add("batches")
        self.metrics.add("batched_requests", requests)
        self.metrics.add("rows", rows)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        content: bytes = scope["content"]
        given = next((value for name, value in scope["headers"] if name == b"content-type"), b"").decode("latin-1")
        kind = given.partition(";")[0].strip().lower()
        level = _level(scope)
        if kind == "application/json":
            rows, own = await self._large(content, self.inputs.read, content)
            level = level if own is None else own
        elif kind == "text/csv":
            await self._csv(content, level, send)
            return
        else:
            rows = self._files(kind, given, content)
        async with asyncio.timeout(self.limits.answer):
            answers = await self._answers(rows, level)
        body = {**self.head, "level": self.predictor.level if level is None else level, "predictions": answers}
        await respond(send, 200, to_json(body))

    async def _answers(self, rows: list[dict[str, Any]], level: float | None) -> list[Any]:
        """Answers for rows, together with those of other requests, unless rows belong together."""
        if not self.predictor.run.encoder.together:
            return await self.batcher(rows, level)
        self._count(1, len(rows))
        return await asyncio.get_running_loop().run_in_executor(self.pool, self.predictor.answer, rows, level)

    async def _large(self, content: bytes, function: Any, *arguments: Any) -> Any:
        """A function of the body, in a thread where that is large."""
        if len(content) < LARGE:
            return function(*arguments)
        return await asyncio.to_thread(function, *arguments)

    async def _csv(self, content: bytes, level: float | None, send: Send) -> None:
        """The rows of a CSV text, predicted in chunks between which other requests get their turn."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self.limits.answer):
            chunks = await asyncio.to_thread(self.predictor.answer_table, content, level)
            answers = [await loop.run_in_executor(self.pool, chunks.predict, start) for start in chunks.starts]
        self._count(1, len(chunks))
        await respond(send, 200, b"".join(answers), b"text/csv; charset=utf-8")

    def _files(self, kind: str, given: str, content: bytes) -> list[dict[str, Any]]:
        """Rows from uploaded files: the body itself, or the parts of a form."""
        if self.upload is None or len(self.predictor.fields) > 1:
            raise Refused(415, "Send application/json, or text/csv.")
        if kind == "multipart/form-data":
            files = parts(given, content)
            if not 0 < len(files) <= MOST_FILES:
                raise Refused(422, f"A form has from 1 to {MOST_FILES} files.")
            return [{self.upload: file} for file in files]
        if kind.partition("/")[0] in UPLOADED or kind == "application/octet-stream":
            return [{self.upload: content}]
        raise Refused(415, "Send application/json, multipart/form-data, or the file itself with its own type.")


def _level(scope: Scope) -> float | None:
    """The level in the query string."""
    query = scope.get("query_string", b"").decode("latin-1")
    try:
        values = parse_qs(query, keep_blank_values=True, max_num_fields=100).get("level") if query else None
    except ValueError as error:
        raise Refused(400, "The address has too many parameters.") from error
    if not values:
        return None
    try:
        level = float(values[-1])
    except ValueError:
        level = float("nan")
    if not 0 < level < 1:
        raise WonderlandError(
            f"The level of sets and intervals is between 0 and 1, such as 0.9, not {values[-1][:40]!r}."
        )
    return level


def parts(content_type: str, content: bytes) -> list[bytes]:
    """The contents of the parts of a form.

    >>> body = b'--x\\r\\nContent-Disposition: form-data; name="file"\\r\\n\\r\\nabc\\r\\n--x--\\r\\n'
    >>> parts("multipart/form-data; boundary=x", body)
    [b'abc']
    """
    header = BytesParser(policy=HTTP).parsebytes(
        b"Content-Type: " + content_type.encode("latin-1", "replace") + b"\r\n\r\n"
    )
    boundary = header.get_boundary()
    if not boundary or len(boundary) > 200:
        raise Refused(400, "The form has no boundary in its Content-Type.")
    pieces = (b"\r\n" + content).split(b"\r\n--" + boundary.encode("latin-1", "replace"), MOST_FILES + 2)
    files = []
    for piece in pieces[1:]:
        if piece.startswith(b"--"):
            return files
        _, blank, body = piece.partition(b"\r\n\r\n")
        if not blank:
            break
        files.append(body)
    raise Refused(400, "The form is cut short, or has too many parts.")
