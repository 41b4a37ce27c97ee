"""What each kernel gains in programs that users run: the same program with the kernel and without it, in turns.

    python -m bench.kernels                     every kernel, with one thread and with two
    python -m bench.kernels --only wkv,scan     some of them
    python -m bench.kernels --markdown          as the table of docs/kernels.md

"Without" means that the op takes its own path in plain torch, while all other kernels stay on. A gain is the median over
rounds of the time without the kernel divided by the time with it; float32, glibc's mmap and trim thresholds raised. Where
other programs run, rounds in which they took a core away are left out (a star: there were no others); set GOMP_SPINCOUNT=0
there, so that threads that wait for each other do not take one.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import nn

from bench.race import setting
from wonderland import optim
from wonderland.generation import sample
from wonderland.models import Decoder
from wonderland.nn import (
    GRU,
    LRU,
    LSTM,
    MLP,
    RNN,
    RWKV,
    S5,
    Attention,
    Block,
    CausalConvolution,
    Learned,
    LiGRU,
    Mamba,
    RMSNorm,
    Rotary,
    Stack,
)
from wonderland.ops import kernel_cache

DIM = 128
QUIET = 0.02  # the share of a round that threads may wait for a core
Program = Callable[[], object]
Switch = Callable[[], AbstractContextManager[Any]]


class Kernel(NamedTuple):
    """A kernel: its sources in ops/kernels, the switch that turns it off, and the races that use it.

    `rebuild` says that the switch acts when a program is built, and not when it runs.
    """

    files: tuple[str, ...]
    off: Switch
    races: dict[str, Callable[[], Program]]
    rebuild: bool = False


class NoKernels:
    """`ops.native` for an op that is to find no kernel."""

    def __getattr__(self, name: str) -> Any:
        return getattr(native, name)

    def usable(self, *tensors: Any) -> bool:
        return False


def without(*modules: str) -> Switch:
    """Turns kernels off in modules that ask `native.usable`."""

    def switch() -> ExitStack:
        stack = ExitStack()
        for module in modules:
            stack.enter_context(patch(f"wonderland.{module}.native", NoKernels()))
        return stack

    return switch


def instead(function: str, returned: Any) -> Switch:
    """Turns off what a function decides, by what it returns."""
    return lambda: patch(f"wonderland.{function}", lambda *_, **__: returned)


def training(batch: int, length: int, **model: Any) -> Callable[[], Program]:
    """A training step of a character model as in bench.language: forward, loss, backward, clipping and AdamW."""

    def build() -> Program:
        decoder = Decoder(**{"vocab": 65, "dim": DIM, "depth": 4, **model}).train()
        optimizer = optim.clipped(optim.AdamW(list(decoder.parameters()), lr=1e-3), norm=1.0)
        tokens, targets = torch.randint(65, (2, batch, length))

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(decoder(tokens).flatten(0, 1), targets.flatten()).backward()
            optimizer.step()

        return step

    return build


def blocks(mixer: Any, batch: int, length: int, *, backward: bool = True) -> Callable[[], Program]:
    """Two blocks as in bench.mixers, forward and backward or forward alone."""

    def build() -> Program:
        return _passes(Stack(DIM, 2, Block.spec(mixer=mixer), norm=False), batch, length, backward)

    return build


def layer(mixer: Any, batch: int, length: int) -> Callable[[], Program]:
    """One layer as in bench.recurrent and bench.attention, forward and backward."""
    return lambda: _passes(mixer.build(dim=DIM), batch, length, True)


def _passes(module: nn.Module, batch: int, length: int, backward: bool) -> Program:
    x = torch.randn(batch, length, DIM)

    def run() -> None:
        module.zero_grad()
        module(x).sum().backward()

    def forward() -> None:
        with torch.no_grad():
            module(x)

    return run if backward else forward


def writing(**model: Any) -> Callable[[], Program]:
    """32 tokens after 16, greedily, at batch 1, as in bench.language."""

    def build() -> Program:
        decoder, prompt = Decoder(65, DIM, 4, **model).eval(), torch.randint(65, (1, 16))
        return lambda: sample(decoder, prompt, 32, temperature=0)

    return build


GPT = {"mixer": Attention.spec(heads=4), "channel": MLP.spec(), "position": Learned.spec(length=64)}
CORPUS = {"mixer": Attention.spec(heads=4, position=Rotary.spec(), window=128)}
CELLS = {
    "lstm": LSTM.spec(),
    "gru": GRU.spec(),
    "gru_before": GRU.spec(reset="before"),
    "ligru": LiGRU.spec(),
    "rnn": RNN.spec(),
}
KERNELS = {
    "decode_step": Kernel(
        (
            "decode_step.cpp", "decode_attention.h", "decode_mamba.h", "decode_pointwise.h", "decode_recurrent.h",
            "decode_rwkv.h", "small_products.h",
        ),
        instead("fast.compiled_step.unobserved", False),
        {
            "GPT writes 32 tokens": writing(mixer=Attention.spec(heads=4)),
            "Mamba writes 32 tokens": writing(mixer=Mamba.spec(), norm=RMSNorm.spec()),
            "RWKV writes 32 tokens": writing(mixer=RWKV.spec()),
            "GRU writes 32 tokens": writing(mixer=GRU.spec()),
        },
    ),
    "fused_block": Kernel(
        ("fused_block.cpp", "fused_block.h", "fused_attention_block.h", "fused_mlp_block.h", "gemm.h"),
        instead("nn.contract.fast_path.residual_block", None),
        {
            "nanoGPT training step (12, 64)": training(12, 64, **GPT),
            "corpus recipe, training step (12, 128)": training(12, 128, **CORPUS),
            "small GPT, training step (64, 16), dim 64": training(64, 16, dim=64),
        },
    ),
    "short_attention": Kernel(
        ("short_attention.cpp", "attention_heads.h"),
        without("ops.short_attention"),
        {
            "attention (4, 256)": layer(Attention.spec(heads=4), 4, 256),
            "corpus recipe with dropout, training step (12, 128)": training(12, 128, dropout=0.1, **CORPUS),
        },
    ),
    "selective_scan": Kernel(
        ("selective_scan.cpp",),
        without("ops.selective_scan"),
        {
            "Mamba (4, 512), both": blocks(Mamba.spec(), 4, 512),
            "Mamba (4, 512), forward": blocks(Mamba.spec(), 4, 512, backward=False),
        },
    ),
    "short_convolution": Kernel(
        ("short_convolution.cpp",),
        without("ops.short_convolution"),
        {
            "Mamba (4, 512), both": blocks(Mamba.spec(), 4, 512),
            "Mamba (4, 512), forward": blocks(Mamba.spec(), 4, 512, backward=False),
            "depthwise convolution (4, 512), both": blocks(CausalConvolution.spec(depthwise=True), 4, 512),
        },
    ),
    "wkv": Kernel(("wkv.cpp",), without("ops.wkv"), {"RWKV (4, 512), both": blocks(RWKV.spec(), 4, 512)}),
    "scan": Kernel(
        ("scan.cpp",),
        without("ops.scan"),
        {"S5 (4, 512), both": blocks(S5.spec(), 4, 512), "LRU (4, 512), both": blocks(LRU.spec(), 4, 512)},
    ),
    **{
        cell: Kernel(
            (f"{cell}.cpp",), without("ops.recurrence"), {f"{spec.name} (4, 512), both": layer(spec, 4, 512)}
        )
        for cell, spec in CELLS.items()
    },
    "optimizers": Kernel(
        ("optimizers.cpp",),
        without("optim.passes", "optim.compose"),
        {
            "nanoGPT training step (12, 64)": training(12, 64, **GPT),
            "small GPT, training step (4, 16), dim 64": training(4, 16, dim=64),
        },
        rebuild=True,
    ),
}  # fmt: skip


def gain(kernel: Kernel, build: Callable[[], Program], seconds: float) -> str:
    """The median ratio of the times without and with a kernel, and the middle half of the rounds.

    Rounds in which a thread of this process waited for a core are left out; where nearly all did, they count, with a star.
    """
    run = build()
    with kernel.off():
        plain = build() if kernel.rebuild else run
        plain()
        plain()
    run()
    run()
    quiet: list[float] = []
    ratios: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(ratios) < 5:
        fast, waited = timed(run)
        with kernel.off():
            slow, waited_too = timed(plain)
        ratios.append(slow / fast)
        if waited < QUIET * fast and waited_too < QUIET * slow:
            quiet.append(slow / fast)
    enough = len(quiet) >= 5
    low, middle, high = statistics.quantiles(quiet if enough else ratios, n=4)
    return f"{middle:.2f}x ({low:.2f} to {high:.2f}){'' if enough else ' *'}"


def timed(run: Program) -> tuple[float, float]:
    """Seconds that a program takes, and that threads of this process were ready and waited for a core meanwhile."""
    before, began = waiting(), time.perf_counter()
    run()
    took = time.perf_counter() - began
    return took, waiting() - before


def waiting() -> float:
    """Seconds that the threads of this process have waited for a core; 0 where the system does not count them."""
    try:
        stats = [(task / "schedstat").read_text().split()[1] for task in Path("/proc/self/task").iterdir()]
    except (OSError, IndexError):
        return 0.0
    return 1e-9 * sum(map(int, stats))


def lines(files: tuple[str, ...]) -> int:
    return sum(len((kernel_cache.SOURCES / name).read_text().splitlines()) for name in files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(KERNELS), help="some of: " + ", ".join(KERNELS))
    parser.add_argument("--seconds", type=float, default=5.0, help="for each race")
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/kernels.md")
    options = parser.parse_args()
    threads = [int(count) for count in options.threads.split(",")]
    setting(threads[0], True, 0)
    if options.markdown:
        heads = " | ".join(f"gain, threads: {count}" for count in threads)
        print(f"| kernel | C++ lines | race | {heads} |")
        print(f"|---|---:|---|{'---|' * len(threads)}")
    for name in options.only.split(","):
        kernel = KERNELS[name]
        for race, build in kernel.races.items():
            cells = []
            for count in threads:
                torch.set_num_threads(count)
                torch.manual_seed(0)
                cells.append(gain(kernel, build, options.seconds))
            if options.markdown:
                print(f"| `{kernel.files[0]}` | {lines(kernel.files)} | {race} | {' | '.join(cells)} |", flush=True)
            else:
                print(f"{name:18}{race:54}{'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
