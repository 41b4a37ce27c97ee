"""Language models compared with their peers: a training step, its share of peak FLOP/s, and generation of 128 tokens.

    python -m bench.language                     everything, with allocator thresholds as in training
    python -m bench.language --only generate     some of: train, wide, peak, generate
    python -m bench.language --default           with glibc's default thresholds, for both sides

The model is the small GPT of nanoGPT's recipe for a CPU: context 64, batch 12, 4 layers, 4 heads, width 128, 65 characters,
no dropout. Peers: transformers (GPT-2, Mamba, RWKV), and the plain PyTorch model below. Needs the extra `bench`.
Outputs and gradients are compared before anything is timed; ratios are theirs divided by ours.
"""

import argparse
import copy
import logging
import time
import warnings
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.mixers import rwkv_pair
from bench.race import HEADER, race, setting
from wonderland import optim
from wonderland.checkpoints import from_gpt2, from_mamba
from wonderland.generation import sample
from wonderland.models import Decoder
from wonderland.nn import Attention, Learned
from wonderland.nn.channel.mlp import MLP

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
VOCAB, DIM, DEPTH, HEADS, CONTEXT, BATCH = 65, 128, 4, 4, 64, 12
LR, BETAS, DECAY, CLIP = 1e-3, (0.9, 0.99), 0.1, 1.0
NEW, PROMPT = 128, 16


class PlainBlock(nn.Module):
    """A plain transformer block: one projection for queries, keys and values, torch's fused attention, an MLP."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM, bias=False), nn.Linear(DIM, DIM, bias=False)
        self.inward, self.outward = nn.Linear(DIM, 4 * DIM, bias=False), nn.Linear(4 * DIM, DIM, bias=False)
        self.gelu = nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = (part.view(b, t, HEADS, d // HEADS).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(d, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(b, t, d))
        return x + self.outward(self.gelu(self.inward(self.norm2(x))))


class Plain(nn.Module):
    """The plain PyTorch model; head and embedding share their weights."""

    def __init__(self):
        super().__init__()
        self.embedding, self.position = nn.Embedding(VOCAB, DIM), nn.Embedding(CONTEXT, DIM)
        self.blocks, self.norm = nn.ModuleList(PlainBlock() for _ in range(DEPTH)), nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.position(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def gpt(context: int = CONTEXT) -> Decoder:
    """Our model with the architecture of `Plain`."""
    position = Learned.spec(length=context)
    return Decoder(VOCAB, DIM, DEPTH, mixer=Attention.spec(heads=HEADS), channel=MLP.spec(), position=position)


def plain_pair() -> tuple[Decoder, Plain]:
    """Our model and the plain one, with equal weights."""
    ours, theirs = gpt(CONTEXT), Plain()
    pairs = [(theirs.embedding, ours.embedding), (theirs.position, ours.position), (theirs.norm, ours.stack.norm)]
    for other, mine in zip(theirs.blocks, ours.stack.blocks, strict=True):
        pairs += [(other.norm1, mine.norms[0]), (other.norm2, mine.norms[1]), (other.qkv, mine.mixer.project)]
        pairs += [
            (other.out, mine.mixer.out),
            (other.inward, mine.channel.inward),
            (other.outward, mine.channel.outward),
        ]
    with torch.no_grad():
        for other, mine in pairs:
            for target, weight in zip(other.parameters(), mine.parameters(), strict=True):
                target.copy_(weight)
    return ours, theirs


def gpt2_pair(context: int = CONTEXT) -> tuple[Decoder, nn.Module]:
    """Our model and transformers' GPT-2, with equal weights and without dropout."""
    from transformers import GPT2Config, GPT2LMHeadModel

    none = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": None, "eos_token_id": None}
    config = GPT2Config(vocab_size=VOCAB, n_positions=context, n_embd=DIM, n_layer=DEPTH, n_head=HEADS, **none)
    theirs = GPT2LMHeadModel(config).train()
    return from_gpt2(theirs), theirs


def batch() -> tuple[Tensor, Tensor]:
    rows = torch.randint(VOCAB, (BATCH, CONTEXT + 1))
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def decay_groups(model: nn.Module) -> list[dict[str, object]]:
    """Weight decay for matrices only, as in nanoGPT."""
    trained = [p for p in model.parameters() if p.requires_grad]
    return [
        {"params": [p for p in trained if p.dim() >= 2], "weight_decay": DECAY},
        {"params": [p for p in trained if p.dim() < 2], "weight_decay": 0.0},
    ]


def our_step(model: Decoder, tokens: Tensor, targets: Tensor):
    """A training step with this library: forward, loss, backward, clipping and AdamW."""
    optimizer = optim.clipped(optim.AdamW(decay_groups(model), lr=LR, betas=BETAS), norm=CLIP)

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        return loss

    return step


def plain_step(model: nn.Module, tokens: Tensor, targets: Tensor, *, fused: bool = False):
    """The same with torch's own clipping and AdamW."""
    optimizer = torch.optim.AdamW(decay_groups(model), lr=LR, betas=BETAS, fused=fused)

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        logits = model(tokens)
        logits = logits if isinstance(logits, Tensor) else logits.logits
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        return loss

    return step


def same_training(ours: nn.Module, theirs: nn.Module, tokens: Tensor, targets: Tensor) -> None:
    """Fail unless three steps on copies give the same losses."""
    step, plain = our_step(copy.deepcopy(ours), tokens, targets), plain_step(copy.deepcopy(theirs), tokens, targets)
    for _ in range(3):
        torch.testing.assert_close(step(), plain(), rtol=2e-4, atol=2e-4)


def train(rounds: int) -> None:
    tokens, targets = batch()
    for name, pair in (("transformers GPT-2", gpt2_pair), ("plain loop", plain_pair)):
        ours, theirs = pair()
        same_training(ours, theirs, tokens, targets)
        for fused in (False, True):
            peer = f"{name}, AdamW {'fused' if fused else 'default'}"
            step, other = our_step(ours, tokens, targets), plain_step(theirs, tokens, targets, fused=fused)
            race("GPT 4 x 128, (12, 64), training step", step, other, rounds, peer=peer)


def wide(rounds: int) -> None:
    """A training step at width 384 with 512 tokens, beside the plain loop with both forms of AdamW."""
    global VOCAB, DIM, HEADS, CONTEXT, BATCH
    before = VOCAB, DIM, HEADS, CONTEXT, BATCH
    VOCAB, DIM, HEADS, CONTEXT, BATCH = 2048, 384, 6, 512, 2
    try:
        tokens, targets = batch()
        ours, theirs = plain_pair()
        same_training(ours, theirs, tokens, targets)
        for fused in (False, True):
            peer = f"plain loop, AdamW {'fused' if fused else 'default'}"
            step, other = our_step(ours, tokens, targets), plain_step(theirs, tokens, targets, fused=fused)
            race("GPT 4 x 384, (2, 512), training step", step, other, max(3, rounds // 2), peer=peer)
    finally:
        VOCAB, DIM, HEADS, CONTEXT, BATCH = before


def peak(rounds: int) -> None:
    """The FLOP/s of a training step as a share of those of a matrix product; only matrix products are counted."""
    ours, _ = plain_pair()
    tokens, targets = batch()
    step = our_step(ours, tokens, targets)
    weights = sum(p.numel() for name, p in ours.named_parameters() if p.dim() == 2 and "position" not in name)
    # Backward costs twice the forward pass. Causal attention has two products of half a square forward, and five backward.
    square = DEPTH * BATCH * 2 * CONTEXT * CONTEXT * DIM
    work = 6 * weights * BATCH * CONTEXT + 7 * square / 2
    # PaLM's model FLOPs, the usual measure, count whole squares and no recomputation.
    palm = 6 * weights * BATCH * CONTEXT + 6 * square
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    a @ b, step(), step()
    products, steps = [], []
    # Five of each in a row, as steps follow each other in training. A single product is short, so its best time is reached
    # sooner than that of a step: hence more rounds than elsewhere, and the quartiles of the shares within rounds.
    for _ in range(4 * rounds):
        for call, times in ((lambda: a @ b, products), (step, steps)):
            times.append(min(timed(call) for _ in range(5)))
    best, speed = 2 * 1024**3 / min(products), work / min(steps)
    shares = sorted(work / seconds / (2 * 1024**3 / product) for seconds, product in zip(steps, products, strict=True))
    low, high = shares[len(shares) // 4], shares[3 * len(shares) // 4]
    print(
        f"matrix products {best / 1e9:.0f} GFLOP/s, training step {speed / 1e9:.0f}: {speed / best:.0%} "
        f"(quartiles of the rounds {low:.0%} to {high:.0%}); "
        f"by PaLM's count of model FLOPs {palm / work * speed / best:.0%}"
    )


def timed(call: Callable[[], object]) -> float:
    """The seconds that a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def their_generation(model: nn.Module, prompt: Tensor):
    """Greedy generation of transformers, with its cache."""
    options = {"attention_mask": torch.ones_like(prompt), "pad_token_id": 0, "do_sample": False, "use_cache": True}

    def run() -> Tensor:
        return model.generate(prompt, max_new_tokens=NEW, min_new_tokens=NEW, **options)[:, prompt.shape[1] :]

    return run


def mamba_pair() -> tuple[Decoder, nn.Module]:
    from transformers import MambaConfig, MambaForCausalLM

    ends = {"bos_token_id": None, "eos_token_id": None}
    config = MambaConfig(vocab_size=VOCAB, hidden_size=DIM, num_hidden_layers=DEPTH, state_size=16, **ends)
    theirs = MambaForCausalLM(config).eval()
    return from_mamba(theirs), theirs


def generate(rounds: int) -> None:
    """128 tokens after 16, greedily, with equal weights; the texts are compared first."""
    cases = (
        ("GPT-2", lambda: gpt2_pair(256), 1),
        ("GPT-2", lambda: gpt2_pair(256), 16),
        ("Mamba", mamba_pair, 1),
        ("RWKV", lambda: rwkv_pair(VOCAB, DEPTH), 1),
    )
    for name, pair, rows in cases:
        ours, theirs = (model.eval() for model in pair())
        prompt = torch.randint(VOCAB, (rows, PROMPT))
        our_generation = partial(sample, ours, prompt, NEW, temperature=0)
        other = their_generation(theirs, prompt)
        with torch.no_grad():
            logits = theirs(prompt).logits
        torch.testing.assert_close(ours(prompt), logits, rtol=1e-4, atol=1e-4)
        equal = (our_generation() == other()).float().mean()
        if equal < 0.9:  # random weights give near ties, after which texts differ
            raise SystemExit(f"{name}: only {equal:.0%} of the tokens are equal")
        label = f"{name}, {NEW} tokens, batch {rows}"
        race(label, our_generation, other, max(3, rounds // 2), peer="transformers generate")


PARTS = {"train": train, "wide": wide, "peak": peak, "generate": generate}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--default", action="store_true", help="keep glibc's default mmap and trim thresholds")
    parser.add_argument("--only", default=",".join(PARTS), help="some of: " + ", ".join(PARTS))
    options = parser.parse_args()
    print(setting(options.threads, not options.default, options.rounds))
    print(HEADER)
    for name in options.only.split(","):
        PARTS[name](options.rounds)


if __name__ == "__main__":
    main()
