"""Limits of a server, and who may use it: sizes, times, rates, the key, and the names it answers to."""

import hashlib
import hmac
import ipaddress
import os
import stat
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from wonderland.core import MIB, WonderlandError, read_bytes

SHORTEST_KEY = 16
MOST_CLIENTS = 10_000


@dataclass(frozen=True)
class Limits:
    """What a server takes at most.

    `body` bytes of one request, `memory` bytes of the bodies of all requests at a time; seconds to send a body (`read`) and until an
    answer (`answer`); `rate` requests a second of one client address, 0 for any number; `connections` at a time; `tokens` of one
    generated text, and `generating` requests that wait for one.
    """

    body: int = 16 * MIB
    memory: int = 256 * MIB
    read: float = 20.0
    answer: float = 60.0
    rate: float = 0.0
    connections: int = 1_024
    tokens: int = 4_096
    generating: int = 32


def read_keys(path: str | Path) -> list[bytes]:
    """The digests of the keys in a file, one a line; a file that others may read, and short keys, are refused."""
    path = Path(path)
    content = read_bytes(path, MIB)
    if os.name == "posix" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise WonderlandError(f"Other users may read the key in {path}. Run: chmod 600 {path}")
    keys = [line.strip() for line in content.splitlines() if line.strip()]
    if not keys:
        raise WonderlandError(f"{path} holds no key. Write one line of at least {SHORTEST_KEY} characters into it.")
    if any(len(key) < SHORTEST_KEY for key in keys):
        raise WonderlandError(f"A key in {path} is shorter than {SHORTEST_KEY} characters, which can be guessed.")
    return [hashlib.sha256(key).digest() for key in keys]


def knows_key(keys: list[bytes], given: bytes) -> bool:
    """Whether a key is one of those known by their digests, in a time that says nothing about them.

    >>> knows_key([hashlib.sha256(b"a secret of mine").digest()], b"a secret of mine")
    True
    """
    digest = hashlib.sha256(given).digest()
    return sum(hmac.compare_digest(digest, key) for key in keys) > 0  # all of them, whichever fits


def is_loopback(host: str) -> bool:
    """Whether a server that listens on this host is reached from this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """The name in a Host header, without its port.

    >>> host_of("LocalHost:8000"), host_of("[::1]:80"), host_of("a.example")
    ('localhost', '::1', 'a.example')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.rpartition(":")[0].lower() if header.count(":") == 1 else header.lower()


class Rate:
    """A bucket of requests for each client address, filled at `rate` a second, with room for those of two seconds.

    >>> rate = Rate(1.0)
    >>> [rate.allows("a", now) for now in (0.0, 0.0, 0.0, 1.0, 1.1)]
    [True, True, False, True, False]
    """

    def __init__(self, rate: float):
        self.rate, self.room = rate, max(1.0, 2 * rate)
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, client: str, now: float | None = None) -> bool:
        """Take one request out of the bucket of a client, if there is one."""
        if not self.rate:
            return True
        now = time.monotonic() if now is None else now
        left, before = self.buckets.pop(client, (self.room, now))
        left = min(self.room, left + (now - before) * self.rate)
        self.buckets[client] = (left - 1 if left >= 1 else left, now)
        if len(self.buckets) > MOST_CLIENTS:
            self.buckets.popitem(last=False)
        return left >= 1
