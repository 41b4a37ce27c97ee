"""D2L 13 on a CPU: caches, intensity, precision, int8, batches against noise, and sums over processes. What needs a GPU says so."""

import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from examples.lab import Claim, above, below, equal, run, table
from examples.performance.processes import NUMBERS, measured
from wonderland.ops.integers import quantise, quantised_linear
from wonderland.understand import Machine, measure_machine, precisions

SIZES = (1 << 12, 1 << 16, 1 << 20, 1 << 24)  # numbers in an array: in the first caches, in the last, beyond
BATCHES = (1, 8, 64, 512)


def seconds(call: Callable[[], object], least: float = 0.05) -> float:
    """Processor time of a call; on a GPU a call returns before it is done, so its queue is waited for on both sides of the clock."""
    call()
    best, end = float("inf"), time.perf_counter() + least
    while time.perf_counter() < end or best == float("inf"):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        began = time.process_time()
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        best = min(best, time.process_time() - began)
    return best


def caches() -> list[tuple[int, float]]:
    """Bytes a second of an addition in place, by the size of the array."""
    rates = []
    for size in SIZES:
        x, repeats = torch.zeros(size), max(1, (1 << 18) // size)

        def turns(x: Tensor = x, repeats: int = repeats) -> None:
            for _ in range(repeats):
                x.add_(1.0)

        rates.append((4 * size, 8 * size * repeats / seconds(turns)))
    return rates


def intensity(machine: Machine) -> list[tuple[int, float, float]]:
    """Rows of a batch, operations a byte of a dense layer, and operations a second that it reaches."""
    weight, found = torch.randn(1024, 1024), []
    for rows in (1, 16, 256):
        x = torch.randn(rows, 1024)
        moved = 4 * (1024 * 1024 + 2 * rows * 1024)
        found.append((rows, 2 * rows * 1024**2 / moved, 2 * rows * 1024**2 / seconds(lambda x=x: x @ weight)))
    return found


def rounding() -> dict[str, float]:
    """Relative errors of a product with numbers of fewer bits, sums in float32 or 32-bit integers."""
    torch.manual_seed(0)
    x, weight = torch.randn(64, 256), torch.randn(128, 256)
    exact = x.double() @ weight.double().T

    def error(y: Tensor) -> float:
        return float((y.double() - exact).norm() / exact.norm())

    found = {"float32": error(x @ weight.T)}
    for kind in (torch.float16, torch.bfloat16):
        found[str(kind).removeprefix("torch.")] = error(x.to(kind).float() @ weight.to(kind).float().T)
    found["int8"] = error(quantised_linear(x, quantise(weight, bits=8)))
    found["int4"] = error(quantised_linear(x, quantise(weight, bits=4, group=32)))
    return found


def noise() -> list[tuple[int, float, float]]:
    """Examples a second, and the variance of the gradient, for each size of a batch of least squares."""
    torch.manual_seed(0)
    x = torch.randn(4096, 64)
    y = x @ torch.randn(64) + torch.randn(4096)
    layer, found = nn.Linear(64, 1), []

    def gradient(rows: Tensor) -> Tensor:
        layer.zero_grad()
        (layer(x[rows]).squeeze(1) - y[rows]).square().mean().backward()
        assert layer.weight.grad is not None
        return layer.weight.grad.flatten().clone()

    for batch in BATCHES:
        draws = torch.stack([gradient(torch.randint(4096, (batch,))) for _ in range(200)])
        rate = batch / seconds(lambda batch=batch: gradient(torch.arange(batch)))
        found.append((batch, rate, float(draws.var(0).sum())))
    return found


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    """Every part, its table, and what is stated of it."""
    machine = measure_machine()
    rates, products, errors, batches, lines = caches(), intensity(machine), rounding(), noise(), measured()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).eval()
    rows = {row.name: row for row in precisions(net, (torch.randn(64, 512),), ["float32", "bfloat16", "int8"])}
    sent = {name: [line[name]["bytes"] / (4 * NUMBERS) for line in lines] for name in ("naive", "ring", "server")}
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    x = torch.randn(8, 512)
    with torch.no_grad():
        gap = float((compiled(x) - net(x)).abs().max())
    claims = [
        below("a compiled program differs from the eager one by", gap, 1e-6),
        above("an array in cache moves more bytes a second than one beyond, times", max(r for _, r in rates) / rates[-1][1], 1.2),
        above("256 rows a batch reach more operations a second than one row, times", products[-1][2] / products[0][2], 1.5),
        below("error of float32", errors["float32"], 1e-6),
        below("error of float16 beside bfloat16, whose mantissa is three bits shorter", errors["float16"] / errors["bfloat16"], 0.2),
        below("error of int8", errors["int8"], 0.02),
        below("error of int4 in groups of 32", errors["int4"], 0.15),
        below("dynamic int8: bytes of the weights beside float32", rows["int8"].weight_bytes / rows["float32"].weight_bytes, 0.27),
        below("dynamic int8: error of the outputs", rows["int8"].error, 0.04),
        above("512 examples a batch are faster than one, examples a second times", batches[-1][1] / batches[0][1], 20),
        above("and the variance of their gradient is smaller, times", batches[0][2] / batches[-1][2], 250),
        equal("every way of adding up over three processes is right", all(v["right"] for line in lines for v in line.values()), True),
        below("the busiest process of the naive sum sends, times the data", max(sent["naive"]), 2.001),
        below("each process of the ring sends, times the data", max(sent["ring"]), 1.334),
        above("and no less", min(sent["ring"]), 1.332),
        below("a parameter server in three parts: the busiest sends, times the data", max(sent["server"]), 1.334),
    ]  # fmt: skip
    report = "\n\n".join([
        f"this machine: {machine.flops / 1e9:.0f} GFLOP/s, {machine.bandwidth / 1e9:.0f} GB/s, {machine.latency * 1e6:.1f} us a call",
        table(["bytes of the array", "GB/s"], [[f"{size:,}", f"{rate / 1e9:.1f}"] for size, rate in rates]),
        table(["rows", "operations a byte", "GFLOP/s"], [[str(n), f"{i:.1f}", f"{r / 1e9:.1f}"] for n, i, r in products]),
        table(["numbers", "error of a product"], [[name, f"{error:.1e}"] for name, error in errors.items()]),
        table(["precision of a network", "ms", "bytes of weights", "error"], [
            [name, f"{row.seconds * 1e3:.2f}", f"{row.weight_bytes:,}", f"{row.error:.1e}"] for name, row in rows.items()]),
        table(["batch", "examples a second", "variance of the gradient"], [[str(b), f"{r:,.0f}", f"{v:.3g}"] for b, r, v in batches]),
        table(["sum over three processes", "most bytes sent by one", "ms"], [
            *[[name, f"{max(line[name]['bytes'] for line in lines):,.0f}", f"{1e3 * max(line[name]['seconds'] for line in lines):.1f}"]
              for name in ("naive", "ring", "server")],
            ["gloo's own", "", f"{1e3 * max(line['gloo']['seconds'] for line in lines):.1f}"]]),
        "Without a GPU, work is not queued: calls return when they are done, and copies to a device do not overlap with it.",
    ])  # fmt: skip
    return claims, report, {}


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("performance", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
