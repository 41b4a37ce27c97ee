"""What each kernel brings to programs that users run: the same program with the kernel and without it, turn and turn about.

    python -m bench.kernels                     every kernel
    python -m bench.kernels --only wkv,steps    some of them
    python -m bench.kernels --markdown          as the table of docs/kernels.md

"Without" means that the op takes its own path in plain torch; all other kernels stay on. The gain is the median over rounds
of the time without by the time with the kernel. One thread, float32, glibc's mmap and trim thresholds raised.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import wonderland.nn
from bench.race import setting
from wonderland import ops, optim
from wonderland.generation import sample
from wonderland.models import Decoder, Encoder
from wonderland.nn import (
    GRU, LRU, LSTM, MLP, RNN, RWKV, S4D, S5, Attention, Block, CausalConvolution, Learned, LiGRU, Mamba, RMSNorm, Stack,
)  # fmt: skip
from wonderland.ops import native

KERNELS = Path(native.__file__).parent / "kernels"
Run = Callable[[], object]


class Kernel(NamedTuple):
    """A kernel: its source files, how it is switched off, and the races that use it."""

    files: tuple[str, ...]
    off: Callable[[], Any]
    races: dict[str, Callable[[], Run]]


class _Native:
    """`ops.native` where no kernel can be used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(native, name)

    def usable(self, *tensors: Any) -> bool:
        return False


def without(*modules: str) -> Callable[[], Any]:
    """Switch kernels off in these modules, which ask `native.usable` before they use one."""

    @contextmanager
    def off() -> Iterator[None]:
        with ExitStack() as stack:
            for module in modules:
                stack.enter_context(patch(f"wonderland.{module}.native", _Native()))
            yield

    return off


def swapped(target: str, other: Any) -> Callable[[], Any]:
    """Put something else in the place of a function."""
    return lambda: patch(target, other)


def trained(model: nn.Module, batch: int, length: int, vocab: int = 65) -> Run:
    """A training step of a language model: forward, loss, backward, clipping and AdamW."""
    model.train()
    optimizer = optim.clipped(optim.AdamW(list(model.parameters()), lr=1e-3), norm=1.0)
    tokens, targets = torch.randint(vocab, (2, batch, length))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten()).backward()
        optimizer.step()

    return step


def decoder(batch: int = 12, length: int = 64, **arguments: Any) -> Callable[[], Run]:
    given = {"vocab": 65, "dim": 128, "depth": 4, **arguments}
    return lambda: trained(Decoder(**given), batch, length)


def whole(mixer: Any, batch: int, length: int, dim: int = 128, depth: int = 2) -> Callable[[], Run]:
    """Forward and backward of a stack of blocks, as in bench.mixers."""

    def make() -> Run:
        model, x = Stack(dim, depth, Block.spec(mixer=mixer), norm=False), torch.randn(batch, length, dim)

        def run() -> None:
            model.zero_grad()
            model(x).sum().backward()

        return run

    return make


def layer(mixer: Any, batch: int, length: int, dim: int = 128) -> Callable[[], Run]:
    """Forward and backward of one layer, as in bench.recurrent."""

    def make() -> Run:
        model, x = mixer.build(dim=dim), torch.randn(batch, length, dim, requires_grad=True)

        def run() -> None:
            model.zero_grad()
            model(x).sum().backward()

        return run

    return make


def written(rows: int = 1, **arguments: Any) -> Callable[[], Run]:
    """32 tokens after 16, greedily, as in bench.language."""

    def make() -> Run:
        model, prompt = Decoder(65, 128, 4, **arguments).eval(), torch.randint(65, (rows, 16))
        return lambda: sample(model, prompt, 32, temperature=0)

    return make


GPT = {"mixer": Attention.spec(heads=4), "channel": MLP.spec(), "position": Learned.spec(length=64)}
CORPUS = {"mixer": Attention.spec(heads=4, position=wonderland.nn.Rotary.spec(), window=128)}
TANH = MLP.spec(activation="gelu_tanh", bias=True)
STEP_CASES = {
    "GPT writes 32 tokens, batch 1": written(mixer=Attention.spec(heads=4), channel=MLP.spec()),
    "Mamba writes": written(mixer=Mamba.spec(), norm=RMSNorm.spec()),
    "RWKV writes": written(mixer=RWKV.spec()),
    "GRU writes": written(mixer=GRU.spec()),
}


def hidden_off() -> Any:
    return patch("wonderland.ops.hidden.usable", lambda *a, **k: False)


def blocks_off() -> Any:
    stack = ExitStack()
    stack.enter_context(patch("wonderland.nn.mixers.attention.Attention.link", lambda *a: None))
    stack.enter_context(patch("wonderland.nn.channel.mlp.MLP.link", lambda *a: None))
    return stack


def all_off() -> Any:
    stack = ExitStack()
    stack.enter_context(blocks_off())
    stack.enter_context(hidden_off())
    return stack


def chain_off() -> Any:
    return patch("wonderland.nn.blocks.stack.untouched", lambda *a: False)


FUSED = {
    "nanoGPT step (12, 64)": decoder(**GPT),
    "corpus recipe step (12, 128)": decoder(length=128, **CORPUS),
    "small GPT (64, 16) dim 64": decoder(batch=64, length=16, dim=64, mixer=Attention.spec(heads=4), channel=MLP.spec()),
    "RWKV step (4, 128)": decoder(batch=4, length=128, mixer=RWKV.spec()),
    "dropout recipe (12, 128)": decoder(length=128, dropout=0.1, **CORPUS),
}
KERNEL = {
    "gelu": Kernel(("gelu.cpp",), without("ops.gelu"), {
        "GPT-2 step, dropout": decoder(dropout=0.1, mixer=Attention.spec(heads=4, bias=True), channel=TANH),
        "GPT-2 step": decoder(mixer=Attention.spec(heads=4, bias=True), channel=TANH)}),
    "layer_norm": Kernel(("layer_norm.cpp",), without("ops.layer_norm"), {
        "corpus recipe, dropout": decoder(length=128, dropout=0.1, **CORPUS), "RWKV step": decoder(mixer=RWKV.spec()),
        "GRU step": decoder(mixer=GRU.spec())}),
    "rms_norm": Kernel(("rms_norm.cpp",), without("ops.rms_norm"), {
        "Mamba step": decoder(batch=4, length=128, mixer=Mamba.spec(), norm=RMSNorm.spec()),
        "LLaMA step dropout": decoder(dropout=0.1, norm=RMSNorm.spec(), channel=wonderland.nn.GLU.spec()),
        "LLaMA step": decoder(norm=RMSNorm.spec(), channel=wonderland.nn.GLU.spec())}),
    "blend": Kernel(("blend.cpp",), without("ops.blend"), {"RWKV (4, 512)": whole(RWKV.spec(), 4, 512), "RWKV step": decoder(batch=4, length=128, mixer=RWKV.spec()), "RWKV (1,512)": whole(RWKV.spec(), 1, 512)}),
    "wkv": Kernel(("wkv.cpp",), without("ops.wkv"), {"RWKV (4, 512)": whole(RWKV.spec(), 4, 512)}),
    "selective_scan": Kernel(("selective_scan.cpp",), without("ops.selective_scan"), {"Mamba (4, 512)": whole(Mamba.spec(), 4, 512)}),
    "short_convolution": Kernel(("short_convolution.cpp",), without("ops.short_convolution"), {"Mamba (4, 512)": whole(Mamba.spec(), 4, 512), "CausalConv depthwise": whole(CausalConvolution.spec(depthwise=True), 4, 512)}),
    "scan": Kernel(("scan.cpp",), without("ops.scan"), {"S5 (4, 512)": whole(S5.spec(), 4, 512), "LRU (4, 512)": whole(LRU.spec(), 4, 512), "S4D": whole(S4D.spec(), 4, 512), "plain min": whole(wonderland.nn.AFT.spec(form="simple"), 4, 512)}),
    "short_attention": Kernel(("short_attention.cpp",), without("ops.short_attention", "nn.mixers.attention"), {
        "attention (4, 256)": layer(Attention.spec(heads=4), 4, 256), "dropout GPT (12,64)": decoder(dropout=0.1, **GPT), "Encoder": layer(Attention.spec(heads=4, causal=False), 32, 64), "attention (32, 16)": layer(Attention.spec(heads=4), 32, 16)}),
    **{cell: Kernel((f"{cell}.cpp",), without("ops.recurrence"), {f"{cell} (4, 512)": layer(spec, 4, 512)})
       for cell, spec in {"lstm": LSTM.spec(), "gru": GRU.spec(), "gru_before": GRU.spec(reset="before"), "ligru": LiGRU.spec(), "rnn": RNN.spec()}.items()},
    "steps": Kernel(("steps.cpp",), swapped("wonderland.ops.steps.unobserved", lambda: False), STEP_CASES),
    "optimizers": Kernel(("optimizers.cpp",), without("optim.passes", "optim.compose"), {"nanoGPT": decoder(**GPT), "small": decoder(batch=4, length=16, dim=64, depth=3, mixer=Attention.spec(heads=2))}),
    "hidden(at_once)": Kernel(("hidden.h",), hidden_off, FUSED),
    "blocks": Kernel(("branches.cpp",), blocks_off, FUSED),
    "all fused": Kernel(("branches.cpp",), all_off, FUSED),
    "chain": Kernel(("branches.cpp",), chain_off, FUSED),
}


def timed(run):
    t = time.perf_counter(); run(); return time.perf_counter() - t


def main():
    p = argparse.ArgumentParser(); p.add_argument("--only", default=",".join(KERNEL)); p.add_argument("--seconds", type=float, default=6); p.add_argument("--threads", type=int, default=1)
    o = p.parse_args()
    print(setting(o.threads, True, 0))
    for name in o.only.split(","):
        k = KERNEL[name]
        for label, make in k.races.items():
            torch.manual_seed(0)
            run = make()
            with k.off(): build = make() if name == "optimizers" else run; build(); build()
            run(); run()
            rs = []; end = time.perf_counter() + o.seconds
            while time.perf_counter() < end or len(rs) < 5:
                a = timed(run)
                with k.off(): b = timed(build)
                rs.append(b / a)
            q = statistics.quantiles(rs, n=4)
            print(f"{name:20}{label:34}{statistics.median(rs):6.2f}x ({q[0]:.2f} to {q[2]:.2f}) n={len(rs)} {a*1e3:.1f} ms", flush=True)


main()
