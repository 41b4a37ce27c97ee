"""Guard: everything that is checked before a request reaches its route, and the form of every error."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from typing import Any

from pydantic_core import to_json

from wonderland.core import MIB, WonderlandError
from wonderland.ship.serving.batching import Overloaded
from wonderland.ship.serving.limits import Limits, Rate, host_of, knows_key
from wonderland.ship.serving.metrics import Metrics

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGI = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("wonderland.serve")
TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
SAFE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class Refused(Exception):
    """A request that is refused: its status, and a sentence for the client."""

    def __init__(self, status: int, sentence: str, headers: Iterable[tuple[bytes, bytes]] = ()):
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, list(headers)


def refusal_of(error: Exception) -> Refused:
    """What a client is told about an error."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, WonderlandError):
        return Refused(422, str(error))
    if isinstance(error, Overloaded):
        sentence = "The server has as many requests waiting as it can hold. Try again in a moment."
        return Refused(503, sentence, [(b"retry-after", b"1")])
    if isinstance(error, TimeoutError):
        return Refused(503, "The answer took longer than this server allows. Send less at a time.")
    return Refused(500, "The server failed at this request; its log says where.")


def error_body(status: int, sentence: str) -> bytes:
    """An error as JSON, in the form that clients of OpenAI's interface read."""
    kind = TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return to_json({"error": {"message": sentence, "type": kind, "param": None, "code": None}})


async def respond(
    send: Send,
    status: int,
    body: bytes,
    kind: bytes = b"application/json",
    headers: Iterable[tuple[bytes, bytes]] = (),
) -> None:
    """Send a whole response."""
    length = (b"content-length", str(len(body)).encode())
    head = [(b"content-type", kind), length, *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


class Guard:
    """An ASGI application around another one. It checks, in this order,

    the name in Host (a page of another site that resolves to this address is refused), Origin, the rate of the client, the key,
    and the size of the body, which is read here within a time, so that routes find it in `scope["content"]`. Every refusal and
    every error is JSON with a sentence. `public` are paths without a key; `names` are hosts that are answered to, None for all.
    """

    def __init__(
        self,
        app: ASGI,
        *,
        limits: Limits,
        metrics: Metrics,
        keys: list[bytes] | None = None,
        names: Collection[str] | None = None,
        public: Collection[str] = (),
        route_of: Callable[[str], str] = lambda path: "other",
        headers: Iterable[tuple[bytes, bytes]] = (),
    ):
        self.app, self.limits, self.metrics, self.keys = app, limits, metrics, keys
        self.names, self.public, self.route_of = names, frozenset(public), route_of
        self.headers = [*SAFE_HEADERS, *headers]
        self.rate = Rate(limits.rate)
        self.held = 0  # bytes of bodies in memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        start, status, started, taken = time.perf_counter(), 500, False, 0

        async def safe_send(message: MutableMapping[str, Any]) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                message["headers"] = [*message.get("headers", ()), *self.headers]
            await send(message)

        try:
            head = dict(scope["headers"])
            self.check(scope, head)
            if scope["method"] in ("POST", "PUT", "PATCH"):
                taken = self.reserve(head)
                scope["content"] = await self.read(receive, taken)
            await self.app(scope, replay(scope.get("content", b""), receive), safe_send)
        except ConnectionError:
            status = 400  # the client has left
        except Exception as error:
            refusal = refusal_of(error)
            if refusal.status == 500:
                log.exception("A request to %s failed.", ascii(scope["path"][:200]))
            if not started:  # a response that has begun can only be cut off
                await respond(
                    safe_send, refusal.status, error_body(refusal.status, refusal.sentence), headers=refusal.headers
                )
        finally:
            self.held -= taken
            self.metrics.request(self.route_of(scope["path"]), status, time.perf_counter() - start)

    def check(self, scope: Scope, head: dict[bytes, bytes]) -> None:
        """Host, origin, rate and key."""
        host = head.get(b"host", b"").decode("latin-1")
        if self.names is not None and host_of(host) not in self.names:
            raise Refused(421, "This server does not answer to that host name. Name it with --allow-host.")
        origin = head.get(b"origin")
        if origin is not None and origin.decode("latin-1").partition("://")[2].lower() != host.lower():
            raise Refused(403, "Pages of other sites may not use this server.")
        client = (scope.get("client") or ("", 0))[0]
        if not self.rate.allows(client):
            sentence = f"More than {self.limits.rate:g} requests a second came from this address. Slow down."
            raise Refused(429, sentence, [(b"retry-after", b"1")])
        if self.keys is not None and scope["path"] not in self.public:
            scheme, _, given = head.get(b"authorization", b"").partition(b" ")
            if scheme.lower() != b"bearer" or not knows_key(self.keys, given.strip()):
                sentence = "This server needs a key: send the header Authorization: Bearer KEY."
                raise Refused(401, sentence, [(b"www-authenticate", b"Bearer")])

    def reserve(self, head: dict[bytes, bytes]) -> int:
        """Bytes of memory kept for a body: what it announces, or the most that it may be."""
        announced = head.get(b"content-length")
        if announced is not None and not announced.isdigit():
            raise Refused(400, "Content-Length is not a number.")
        size = self.limits.body if announced is None else int(announced[:15])
        if size > self.limits.body:
            raise Refused(413, f"The body is larger than {self.limits.body / MIB:g} MiB.")
        if self.held + size > self.limits.memory:
            raise Overloaded
        self.held += size
        return size

    async def read(self, receive: Receive, size: int) -> bytes:
        """The whole body, within its time."""
        message = await self.receive(receive)
        body = message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)
        chunks, length = [body], len(body)
        deadline = time.monotonic() + self.limits.read
        while message.get("more_body"):
            message = await self.receive(receive, deadline)
            chunks.append(message.get("body", b""))
            length += len(chunks[-1])
            if length > size:
                sentence = f"The body is larger than {self.limits.body / MIB:g} MiB."
                raise Refused(413, sentence)
        return b"".join(chunks)

    async def receive(self, receive: Receive, deadline: float | None = None) -> MutableMapping[str, Any]:
        try:
            left = self.limits.read if deadline is None else deadline - time.monotonic()
            async with asyncio.timeout(max(0.0, left)):
                message = await receive()
        except TimeoutError:
            sentence = f"The body did not come within {self.limits.read:g} seconds."
            raise Refused(408, sentence, [(b"connection", b"close")]) from None
        if message["type"] == "http.disconnect":
            raise ConnectionResetError
        return message


def replay(content: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body which was read before, and then what else comes, such as that the client left."""
    given = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": content, "more_body": False}

    return again
