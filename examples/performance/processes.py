"""Sums over processes on gloo, a parameter server, and a pipeline: bytes that are sent, and seconds."""

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn

from wonderland.core import read_json, write_json

NUMBERS, TURNS = 1 << 20, 3


class Counted:
    """Sends and receives tensors, and counts the bytes that are sent."""

    def __init__(self) -> None:
        self.bytes = 0

    def send(self, x: Tensor, to: int) -> None:
        self.bytes += x.numel() * x.element_size()
        dist.send(x.contiguous(), to)

    def exchange(self, x: Tensor, to: int, into: Tensor, source: int) -> None:
        self.bytes += x.numel() * x.element_size()
        waiting = dist.isend(x.contiguous(), to)
        dist.recv(into, source)
        waiting.wait()


def naive(x: Tensor, rank: int, count: int, line: Counted) -> Tensor:
    """All send to the first, which adds up and sends back."""
    if rank:
        line.send(x, 0)
        dist.recv(x, 0)
        return x
    other = torch.empty_like(x)
    for source in range(1, count):
        dist.recv(other, source)
        x += other
    for to in range(1, count):
        line.send(x, to)
    return x


def ring(x: Tensor, rank: int, count: int, line: Counted) -> Tensor:
    """n - 1 steps in which each process adds a piece of its neighbour, n - 1 in which sums are passed on."""
    pieces, after, before = list(x.tensor_split(count)), (rank + 1) % count, (rank - 1) % count
    for adds in (True, False):
        for step in range(count - 1):
            place = (rank - step + (not adds)) % count
            other = torch.empty_like(pieces[(place - 1) % count])
            line.exchange(pieces[place], after, other, before)
            goes = (place - 1) % count
            pieces[goes].copy_(pieces[goes] + other if adds else other)
    return x


def server(x: Tensor, rank: int, count: int, line: Counted) -> Tensor:
    """Each process keeps a part of the values: all push their gradients of it, and pull the sum."""
    pieces = list(x.tensor_split(count))
    for owner in range(count):
        if rank == owner:
            other = torch.empty_like(pieces[owner])
            for source in range(count):
                if source != owner:
                    dist.recv(other, source)
                    pieces[owner] += other
            for to in range(count):
                if to != owner:
                    line.send(pieces[owner], to)
        else:
            line.send(pieces[owner], owner)
            dist.recv(pieces[owner], owner)
    return x


def pipeline(rank: int, line: Counted, rows: int, pieces: int) -> Tensor | None:
    """Two stages of a network: the second computes one piece of the batch while the first computes the next."""
    torch.manual_seed(rank)
    stage, x = nn.Sequential(nn.Linear(256, 256), nn.ReLU()), torch.ones(rows, 256)
    outputs = []
    with torch.no_grad():
        for piece in x.split(rows // pieces):
            if rank == 0:
                line.send(stage(piece), 1)
            elif rank == 1:
                received = torch.empty(rows // pieces, 256)
                dist.recv(received, 0)
                outputs.append(stage(received))
    return torch.cat(outputs) if outputs else None


def _worker(rank: int, count: int, folder: str) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count)
    found: dict[str, Any] = {}
    for name, way in (("naive", naive), ("ring", ring), ("server", server)):
        line = Counted()
        began = time.perf_counter()
        for _ in range(TURNS):
            total = way(torch.full((NUMBERS,), float(rank + 1)), rank, count, line)
        found[name] = {
            "bytes": line.bytes / TURNS, "seconds": (time.perf_counter() - began) / TURNS,
            "right": bool((total == count * (count + 1) / 2).all()),
        }  # fmt: skip
        dist.barrier()
    began = time.perf_counter()
    for _ in range(TURNS):
        x = torch.full((NUMBERS,), float(rank + 1))
        dist.all_reduce(x)
    found["gloo"] = {
        "seconds": (time.perf_counter() - began) / TURNS,
        "right": bool((x == count * (count + 1) / 2).all()),
    }
    line, outputs = Counted(), []
    for pieces in (1, 8):
        dist.barrier()
        outputs.append(pipeline(rank, line, 512, pieces))
    found["pipeline"] = {"bytes": line.bytes, "right": rank != 1 or torch.allclose(outputs[0], outputs[1], atol=1e-5)}
    write_json(Path(folder) / f"{rank}.json", found)
    dist.barrier()
    dist.destroy_process_group()


def measured(count: int = 3) -> list[dict[str, Any]]:
    """What each of several processes sent, and how long it took."""
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(_worker, (count, folder), nprocs=count, start_method="spawn")  # pyright: ignore
        return [read_json(Path(folder) / f"{rank}.json") for rank in range(count)]
