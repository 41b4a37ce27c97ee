"""Make a GPT-2 and a BERT checkpoint, fine-tune them in six ways, merge, save back and load again."""

import copy
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from examples.finetune.chains import FIRST, LENGTH, TOKENS, best, successors, text
from examples.lab import Claim, above, below, equal, lines, run, table
from wonderland import models, nn
from wonderland.train import finetune

VOCAB, DIM, STEPS = TOKENS + FIRST, 48, 300
OLD, NEW = successors(1), successors(2)
METHODS: dict[str, Any] = {
    "full": "full",
    "LoRA, rank 4": nn.LoRA.spec(rank=4),
    "bottleneck, width 8": nn.Bottleneck.spec(width=8),
    "bias only": nn.BiasTuning.spec(),
    "(IA)^3": nn.IA3.spec(),
    "prompt of 8": models.PromptTuned.spec(length=8),
}


def gpt2(folder: Path) -> None:
    """A GPT-2 that has learned the old chain, as a checkpoint folder."""
    torch.manual_seed(0)
    model = models.Decoder(
        VOCAB,
        DIM,
        2,
        mixer=nn.Attention.spec(heads=4, bias=True),
        channel=nn.MLP.spec(bias=True),
        position=nn.Learned.spec(length=64),
    )
    finetune(model, lambda step: words(OLD, step), steps=STEPS, lr=3e-3)
    checkpoints.save_pretrained(model, folder)


def bert(folder: Path) -> None:
    """A BERT that has filled holes in the old and the new chain, as a checkpoint folder."""
    torch.manual_seed(0)
    trunk = models.Encoder.spec(
        vocab=VOCAB + 1, dim=DIM, depth=2, mixer=nn.Attention.spec(heads=4, bias=True), segments=2
    )
    model = models.MaskedLM(trunk)

    def holes(step: int) -> tuple[Tensor, Tensor]:
        both = torch.cat([text(OLD, 16, step), text(NEW, 16, step + 10**6)])
        draw = torch.Generator().manual_seed(step)
        return models.mask_tokens(both, mask_token=VOCAB, vocab=VOCAB + 1, special=(0, 1), probability=0.3, generator=draw)

    finetune(model, holes, steps=2 * STEPS, lr=2e-3)
    checkpoints.save_pretrained(model, folder)


def words(order: Tensor, step: int, rows: int = 32) -> tuple[Tensor, Tensor]:
    """A batch for a language model: tokens, and the token after each."""
    found = text(order, rows, step)
    return found[:, :-1], found[:, 1:]


def kinds(step: int, rows: int = 32) -> tuple[Tensor, Tensor]:
    """A batch for a classifier: which of the two chains wrote a row."""
    half = rows // 2
    both = torch.cat([text(OLD, half, step), text(NEW, half, step + 10**6)])
    return both[:, : LENGTH // 4], torch.arange(rows) // half


def above_best(model: Any) -> float:
    """The loss on fresh text of the new chain less the best there is, in nats a token."""
    x, y = words(NEW, 10**7, rows=512)
    with torch.no_grad():
        found = torch.nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()
    return found - best()


def accuracy(model: Any) -> float:
    """The share of fresh rows whose chain is told."""
    x, y = kinds(10**7, rows=1024)
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def learning(model: Any) -> int:
    """How many numbers learn."""
    return sum(value.numel() for value in model.parameters() if value.requires_grad)


def language(folder: Path) -> tuple[list[Claim], list[tuple[str, str, str]], dict[str, list[tuple[float, float]]]]:
    """Six ways to a new chain."""
    gpt2(folder / "gpt2")
    start = checkpoints.load_pretrained(folder / "gpt2")
    total = sum(value.numel() for value in start.parameters())
    rows = [("as it was", "0", f"{above_best(start):.3f}")]
    found, sizes, points = {}, {}, []
    for name, method in METHODS.items():
        model = checkpoints.load_pretrained(folder / "gpt2")
        torch.manual_seed(1)
        rate = {"full": 1e-3}.get(name, 1e-2)
        model = finetune(model, lambda step: words(NEW, step), method=method, steps=STEPS, lr=rate)
        found[name], sizes[name] = above_best(model), learning(model)
        rows.append((name, f"{sizes[name]:,} of {total:,}", f"{found[name]:.3f}"))
        points.append((sizes[name], max(found[name], 1e-3)))
        if name.startswith("LoRA"):
            tuned = model
    plain = models.merge(tuned)
    checkpoints.save_pretrained(plain, folder / "merged")
    again = checkpoints.load_pretrained(folder / "merged")
    x, _ = words(NEW, 1)
    with torch.no_grad():
        apart = (again(x) - tuned(x)).abs().max().item()
    models.save_adapter(tuned, folder / "lora.safetensors")
    other = models.load_adapter(checkpoints.load_pretrained(folder / "gpt2"), folder / "lora.safetensors").eval()
    with torch.no_grad():
        same = torch.equal(other(x), tuned(x))
    claims = [
        above("GPT-2 before: loss on the new chain above the best, nats", above_best(start), 1.0),
        below("full: loss above the best", found["full"], 0.03),
        below("LoRA of rank 4: loss above the best", found["LoRA, rank 4"], 0.05),
        below("LoRA of rank 4: share of the numbers that learn", sizes["LoRA, rank 4"] / total, 0.12),
        below("bottleneck: loss above the best", found["bottleneck, width 8"], 0.1),
        below("merged, saved, loaded: largest difference of a logit", apart, 1e-4),
        equal("the adapter saved alone gives the same bits", same, True),
    ]
    return claims, rows, {"loss above the best": sorted(points)}


def sentences(folder: Path) -> tuple[list[Claim], list[tuple[str, str, str]]]:
    """A new head on BERT: alone, and with LoRA under it."""
    bert(folder / "bert")
    rows, found = [], {}
    for name, method in {"head only": "head", "LoRA and head": nn.LoRA.spec(rank=4)}.items():
        trunk = copy.deepcopy(checkpoints.load_pretrained(folder / "bert").trunk)
        torch.manual_seed(1)
        model = models.SequenceClassifier(trunk, 2, pool="mean")
        how = {} if method == "head" else {"also": "head*"}
        model = finetune(model, kinds, method=method, steps=STEPS, lr=5e-3, **how)
        found[name] = accuracy(model)
        rows.append((f"BERT, {name}", f"{learning(model):,}", f"{100 * found[name]:.1f} %"))
    claims = [
        above("BERT, which of two chains wrote 7 tokens, head only: accuracy", found["head only"], 0.6),
        above("the same with LoRA of rank 4: accuracy", found["LoRA and head"], 0.95),
    ]
    return claims, rows


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    with tempfile.TemporaryDirectory() as place:
        claims, rows, points = language(Path(place))
        more, pairs = sentences(Path(place))
    picture = lines(
        points,
        marks=points,
        title="What a method learns, and what it costs",
        x_label="numbers that learn",
        y_label="loss above the best, nats",
        log_x=True,
        log_y=True,
    )
    report = table(("method", "numbers that learn", "loss above the best, or accuracy"), [*rows, *pairs])
    return [*claims, *more], report, {"methods": picture}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("finetune", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
