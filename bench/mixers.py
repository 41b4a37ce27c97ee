"""Mamba and RWKV compared with their peers: whole sequences, single steps, and growth of time and memory with length.

    python -m bench.mixers                     everything, with the default allocator
    python -m bench.mixers --raised            with glibc's thresholds raised for both sides
    python -m bench.mixers --only mamba,steps  some of: mamba, fallback, rwkv, wkv, steps, growth

Needs the extra `bench` (transformers, mambapy). Outputs are compared before anything is timed; ratios are theirs divided by ours.
"""

import argparse
import subprocess
import sys
import time
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from bench.race import HEADER, both, forward, race, setting
from wonderland import ops
from wonderland.checkpoints import from_gpt2
from wonderland.models import Decoder
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.stack import Stack
from wonderland.nn.contract.state import consuming
from wonderland.nn.mixers.mamba import Mamba
from wonderland.nn.mixers.rwkv import RWKV, RWKVChannel
from wonderland.nn.norms.norm import RMSNorm

warnings.filterwarnings("ignore")
DIM, DEPTH, STATES = 128, 2, 16
LENGTHS = (1024, 2048, 4096, 8192, 16384)


def mamba_pair() -> tuple[nn.Module, nn.Module]:
    """Two Mamba layers, ours and mambapy's, with equal weights."""
    from mambapy.mamba import Mamba as Peer
    from mambapy.mamba import MambaConfig

    theirs = Peer(MambaConfig(d_model=DIM, n_layers=DEPTH, d_state=STATES, pscan=True))
    block = Block.spec(mixer=Mamba.spec(state_size=STATES), norm=RMSNorm.spec(eps=1e-5))
    ours = Stack(DIM, DEPTH, block, norm=False)
    for mine, other in zip(ours.blocks, theirs.layers, strict=True):
        mine.mixer.load_published(other.mixer.state_dict())
        mine.norms[0].weight.data.copy_(other.norm.weight)
    return ours, theirs


def rwkv_pair(vocab: int = 65, depth: int = DEPTH) -> tuple[Decoder, nn.Module]:
    """An RWKV language model, ours and that of transformers, with equal weights."""
    from transformers import RwkvConfig, RwkvForCausalLM

    ends = {"bos_token_id": None, "eos_token_id": None}
    config = RwkvConfig(vocab_size=vocab, hidden_size=DIM, num_hidden_layers=depth, context_length=1024, **ends)
    theirs = RwkvForCausalLM(config).train()
    ours = Decoder(vocab, DIM, depth, mixer=RWKV.spec(), channel=RWKVChannel.spec(), tie=False)
    body = theirs.rwkv
    with torch.no_grad():
        # Their first block normalises the embedding; it acts on single tokens, so it is folded into the table.
        ours.embedding.weight.copy_(body.blocks[0].pre_ln(body.embeddings.weight))
        ours.head.weight.copy_(theirs.head.weight)
        for mine, other in zip(ours.stack.blocks, body.blocks, strict=True):
            mine.mixer.load_published(other.attention.state_dict())
            mine.channel.load_published(other.feed_forward.state_dict())
            for norm, published in zip(mine.norms, (other.ln1, other.ln2), strict=True):
                norm.load_state_dict(published.state_dict())
        ours.stack.norm.load_state_dict(body.ln_out.state_dict())
    return ours, theirs


def same(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


def mamba(rounds: int) -> None:
    ours, theirs = mamba_pair()
    x = torch.randn(4, 512, DIM)
    same(ours(x), theirs(x))
    race("Mamba (4, 512) forward", forward(lambda: ours(x)), forward(lambda: theirs(x)), rounds, peer="mambapy")
    race("Mamba (4, 512) both", both(ours, lambda: ours(x)), both(theirs, lambda: theirs(x)), rounds, peer="mambapy")


def fallback(rounds: int) -> None:
    """Mamba without our kernels, in a process of its own."""
    import os

    if os.environ.get("WONDERLAND_NATIVE") != "0":
        command = [sys.executable, "-m", "bench.mixers", *sys.argv[1:], "--only", "fallback"]
        subprocess.run(command, env={**os.environ, "WONDERLAND_NATIVE": "0"}, check=True)
        return
    ours, theirs = mamba_pair()
    x = torch.randn(4, 512, DIM)
    same(ours(x), theirs(x))
    name = "Mamba (4, 512), plain torch,"
    race(f"{name} forward", forward(lambda: ours(x)), forward(lambda: theirs(x)), rounds, peer="mambapy")
    race(f"{name} both", both(ours, lambda: ours(x)), both(theirs, lambda: theirs(x)), rounds, peer="mambapy")


def rwkv(rounds: int) -> None:
    ours, theirs = rwkv_pair()
    for b in (4, 1):
        tokens = torch.randint(65, (b, 512))
        same(ours(tokens), theirs(tokens).logits)
        label = f"RWKV ({b}, 512)"
        run, peer = (lambda t=tokens: ours(t)), (lambda t=tokens: theirs(t).logits)
        race(f"{label} forward", forward(run), forward(peer), rounds, peer="transformers")
        race(f"{label} both", both(ours, run), both(theirs, peer), rounds, peer="transformers")


def wkv(rounds: int) -> None:
    from transformers.models.rwkv.modeling_rwkv import rwkv_linear_attention_cpu

    for b in (4, 1):
        k, v = torch.randn(b, 512, DIM, requires_grad=True), torch.randn(b, 512, DIM, requires_grad=True)
        decay, bonus = torch.randn(DIM, requires_grad=True), torch.randn(DIM, requires_grad=True)

        def ours(k=k, v=v, decay=decay, bonus=bonus) -> Tensor:
            return ops.wkv(k, v, -torch.exp(decay), bonus)[0]

        def theirs(k=k, v=v, decay=decay, bonus=bonus) -> Tensor:
            return rwkv_linear_attention_cpu(decay, bonus, k, v)[0]

        same(ours(), theirs())
        race(f"WKV ({b}, 512) forward", forward(ours), forward(theirs), rounds, peer="transformers")
        race(
            f"WKV ({b}, 512) both",
            lambda ours=ours: ours().sum().backward(),
            lambda theirs=theirs: theirs().sum().backward(),
            rounds,
            peer="transformers",
        )


STEPS = 32


def consecutive(step, initial):
    """STEPS tokens in a row, each from the state after the last one, as in generation."""

    def run() -> None:
        state = initial() if callable(initial) else initial
        for _ in range(STEPS):
            state = step(state)

    return run


def alternate(step, state):
    """One token at a time, with the peer's steps in between, so that caches are cold each time."""

    def run() -> None:
        nonlocal state
        state = step(state)

    return run


@torch.no_grad()
def steps(rounds: int) -> None:
    """Single tokens at batch 1 after 16 tokens: 32 in a row, then single ones alternating with the peer."""
    from transformers import GPT2Config, GPT2LMHeadModel, MambaConfig, MambaForCausalLM

    prompt, token = torch.randint(65, (1, 16)), torch.tensor([[3]])
    config = MambaConfig(vocab_size=65, hidden_size=DIM, num_hidden_layers=DEPTH, state_size=STATES)
    theirs = MambaForCausalLM(config).eval()
    norm = RMSNorm.spec(eps=config.layer_norm_epsilon)
    ours = Decoder(65, DIM, DEPTH, mixer=Mamba.spec(state_size=STATES), norm=norm, tie=True).eval()
    ours.embedding.weight.copy_(theirs.backbone.embeddings.weight)
    for mine, other in zip(ours.stack.blocks, theirs.backbone.layers, strict=True):
        mine.mixer.load_published(other.mixer.state_dict())
        mine.norms[0].weight.copy_(other.norm.weight)
    ours.stack.norm.weight.copy_(theirs.backbone.norm_f.weight)
    past = theirs(prompt, use_cache=True)
    logits, begin = ours.stream(prompt)
    same(logits, past.logits)

    def their_step(cache, theirs=theirs):
        return theirs(token, cache_params=cache, use_cache=True).cache_params

    def step(state, ours=ours):
        return ours.stream(token, state)[1]

    race(
        f"Mamba, {STEPS} steps",
        consecutive(step, begin),
        consecutive(their_step, past.cache_params),
        rounds,
        peer="transformers",
    )
    mine, other = alternate(step, begin), alternate(their_step, past.cache_params)
    race("Mamba, alternating steps", mine, other, rounds * STEPS, peer="transformers")
    stack, peer = mamba_pair()
    caches = [(torch.zeros(1, 2 * DIM, STATES), torch.zeros(1, 2 * DIM, 3)) for _ in range(DEPTH)]
    x = torch.randn(1, 1, DIM)
    begin = stack.start(1)
    same(stack.stream(x, begin)[0][:, 0], peer.step(x[:, 0], list(caches))[0])
    race(
        f"Mamba, {STEPS} steps without embedding and head",
        consecutive(lambda state: stack.stream(x, state)[1], begin),
        consecutive(lambda state: peer.step(x[:, 0], state)[1], lambda: list(caches)),
        rounds,
        peer="mambapy",
    )
    ours, theirs = (model.eval() for model in rwkv_pair())
    past = theirs(prompt, use_cache=True)
    logits, begin = ours.stream(prompt)
    same(logits, past.logits)

    def rwkv_step(state, ours=ours):
        return ours.stream(token, state)[1]

    def their_rwkv_step(state, theirs=theirs):
        return theirs(token, state=state, use_cache=True).state

    race(
        f"RWKV, {STEPS} steps",
        consecutive(rwkv_step, begin),
        consecutive(their_rwkv_step, past.state),
        rounds,
        peer="transformers",
    )
    mine, other = alternate(rwkv_step, begin), alternate(their_rwkv_step, past.state)
    race("RWKV, alternating steps", mine, other, rounds * STEPS, peer="transformers")
    theirs = GPT2LMHeadModel(GPT2Config(vocab_size=65, n_positions=256, n_embd=DIM, n_layer=DEPTH, n_head=4)).eval()
    ours = from_gpt2(theirs)
    logits, begin = ours.stream(prompt)
    same(logits, theirs(prompt).logits)

    def run() -> None:
        with consuming():
            state = begin
            for _ in range(STEPS):
                _, state = ours.stream(token, state)

    race(
        f"GPT-2, {STEPS} steps",
        run,
        consecutive(
            lambda cache, theirs=theirs: theirs(token, past_key_values=cache, use_cache=True).past_key_values,
            lambda: theirs(prompt, use_cache=True).past_key_values,
        ),
        rounds,
        peer="transformers",
    )


def growth(rounds: int) -> None:
    """Time and peak memory from 1,024 to 16,384 tokens, each length in a process of its own."""
    for name in ("Mamba", "RWKV"):
        measured = {}
        for t in LENGTHS:
            command = [sys.executable, "-m", "bench.mixers", "--measure", f"{name},{t}"]
            seconds, megabytes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-2:]
            measured[t] = float(seconds), float(megabytes)
            time_, memory = 1e3 * measured[t][0], measured[t][1]
            print(f"{name} (1, {t}) both: {time_:.1f} ms, {memory:.1f} MB above the start", flush=True)
        first, last = measured[LENGTHS[0]], measured[LENGTHS[-1]]
        print(f"{name} 1k to 16k: time {last[0] / first[0]:.1f}x, memory {last[1] / first[1]:.1f}x")


def _peak_memory() -> int:
    """The peak resident memory of this process in KiB; getrusage would include that of its parent."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def measure(case: str) -> None:
    """Print seconds and megabytes of a case such as "Mamba,1024"."""
    name, t = case.split(",")
    mixer = {"Mamba": Mamba, "RWKV": RWKV}[name].spec()
    model = Stack(DIM, DEPTH, Block.spec(mixer=mixer), norm=False)
    x = torch.randn(1, int(t), DIM)
    small = torch.randn(1, 16, DIM)
    both(model, lambda: model(small))()
    before = _peak_memory()
    run = both(model, lambda: model(x))
    run()
    peak = (_peak_memory() - before) / 1024
    times = []
    for _ in range(5):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    print(min(times), peak)


PARTS = {"mamba": mamba, "fallback": fallback, "rwkv": rwkv, "wkv": wkv, "steps": steps, "growth": growth}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--raised", action="store_true", help="raise glibc's mmap and trim thresholds for both sides")
    parser.add_argument("--only", default=",".join(PARTS), help="some of: " + ", ".join(PARTS))
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    description = setting(options.threads, options.raised, options.rounds)
    if options.measure:
        measure(options.measure)
        return
    print(description)
    print(HEADER)
    for name in options.only.split(","):
        PARTS[name](options.rounds)


if __name__ == "__main__":
    main()
