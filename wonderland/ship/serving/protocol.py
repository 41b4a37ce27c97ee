"""HTTP on a connection: uvicorn's protocol with bounded headers, bounded time for them, and a shutdown that loses no request."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wonderland.ship.serving.guard import error_body

HEADERS = 1 << 16  # bytes of a request line with its headers
SECONDS = 10.0  # until these are complete
DISCARDED = 1 << 28  # bytes of a body that was refused, which are read and dropped so that its sender can read why
IDLE = 1.0  # seconds in which a connection that is shut down may still bring a request that was on its way
REASONS = {400: b"Bad Request", 408: b"Request Timeout", 431: b"Request Header Fields Too Large"}


class Protocol(HttpToolsProtocol):
    """One connection."""

    head = 0  # bytes received since the last complete headers
    in_head = True
    discarded = 0  # bytes of refused bodies
    draining = False
    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.timer = self.loop.call_later(SECONDS, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.in_head:
            self.head += len(data)
            if self.timer is None:
                self.timer = self.loop.call_later(SECONDS, self._head_is_late)
        super().data_received(data)
        if self.in_head and self.head > HEADERS and not self.transport.is_closing():
            self._refuse(431, f"The headers are longer than {HEADERS >> 10} KiB.")

    def on_headers_complete(self) -> None:
        self.in_head, self.head = False, 0
        self._stop_timer()
        super().on_headers_complete()
        if self.draining and self.cycle is not None:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        if self.cycle.response_complete:
            self.discarded += len(body)
            if self.discarded > DISCARDED:
                self.transport.close()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.in_head = True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "This is not a valid HTTP request.")

    def shutdown(self) -> None:
        """Finish what is running. An idle connection stays a moment, since a request may be on its way to us."""
        self.draining = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(IDLE, self._close_if_idle)
        else:
            self.cycle.keep_alive = False

    def _close_if_idle(self) -> None:
        if (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing():
            self.transport.close()

    def _head_is_late(self) -> None:
        self.timer = None
        if not self.transport.is_closing():
            self._refuse(408, f"The headers did not come within {SECONDS:g} seconds.")

    def _stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _refuse(self, status: int, sentence: str) -> None:
        body = error_body(status, sentence)
        head = b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(head % (status, REASONS[status], len(body)) + body)
        self.transport.close()
