"""Counters of the server in the text format of Prometheus, summed over all worker processes."""

import mmap
import time
from collections.abc import Sequence

import numpy as np

STATUSES = (200, 400, 401, 403, 404, 405, 408, 411, 413, 415, 421, 422, 429, 431, 500, 503)
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SINGLE = ("rows", "batches", "batched_requests", "tokens", "started")


class Metrics:
    """A row of counters for each worker, in memory that the workers share; each writes its own row, so that none waits.

    Create it before the workers are forked; `worker` is the row of this process.

    >>> metrics = Metrics(["predict"], workers=1)
    >>> metrics.request("predict", 200, 0.004)
    >>> print("\\n".join(line for line in metrics.text().splitlines() if line.startswith("wonderland_requests_total")))
    wonderland_requests_total{route="predict",status="200"} 1
    """

    def __init__(self, routes: Sequence[str], workers: int = 1):
        self.routes = {route: i for i, route in enumerate([*routes, "other"])}
        self.status = {status: i for i, status in enumerate(STATUSES)}
        self.width = len(STATUSES) + len(BOUNDS) + 2  # statuses, buckets and the last one, seconds
        size = len(SINGLE) + len(self.routes) * self.width
        self._memory = mmap.mmap(-1, max(1, workers) * size * 8)
        self.counts = np.frombuffer(self._memory, np.float64).reshape(max(1, workers), size)
        self.worker = 0
        self.started = time.time()

    def add(self, name: str, value: float = 1) -> None:
        """Count one of the numbers that have no route."""
        self.counts[self.worker, SINGLE.index(name)] += value

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        start = len(SINGLE) + self.routes.get(route, self.routes["other"]) * self.width
        row = self.counts[self.worker]
        row[start + self.status.get(status, self.status[500] if status >= 500 else self.status[400])] += 1
        place = int(np.searchsorted(BOUNDS, seconds))
        row[start + len(STATUSES) + place] += 1
        row[start + self.width - 1] += seconds

    def text(self) -> str:
        """All counters, as Prometheus reads them."""
        total = self.counts.sum(0)
        single: dict[str, float] = dict(zip(SINGLE, total.tolist(), strict=False))
        lines = []
        for name, about in (
            ("rows", "Rows predicted"),
            ("batches", "Batches computed"),
            ("batched_requests", "Requests in these batches"),
            ("tokens", "Tokens generated"),
        ):
            lines += _head(f"wonderland_{name}_total", "counter", about)
            lines.append(f"wonderland_{name}_total {single[name]:.0f}")
        lines += _head("wonderland_start_time_seconds", "gauge", "When the server was started, in seconds since 1970")
        lines.append(f"wonderland_start_time_seconds {self.started:.3f}")
        lines += _head("wonderland_requests_total", "counter", "Requests answered, by route and status")
        blocks = {name: total[len(SINGLE) + i * self.width :][: self.width] for name, i in self.routes.items()}
        for name, block in blocks.items():
            for status, count in zip(STATUSES, block, strict=False):
                if count:
                    lines.append(f'wonderland_requests_total{{route="{_label(name)}",status="{status}"}} {count:.0f}')
        lines += _head("wonderland_request_seconds", "histogram", "Time until a request was answered, by route")
        for name, block in blocks.items():
            buckets = block[len(STATUSES) : -1].cumsum()
            if not buckets[-1]:
                continue
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), buckets, strict=True):
                lines.append(f'wonderland_request_seconds_bucket{{route="{_label(name)}",le="{bound}"}} {count:.0f}')
            lines.append(f'wonderland_request_seconds_sum{{route="{_label(name)}"}} {block[-1]:.6f}')
            lines.append(f'wonderland_request_seconds_count{{route="{_label(name)}"}} {buckets[-1]:.0f}')
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP {name} {about}.", f"# TYPE {name} {kind}"]


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
