"""Make a GPT-2 and a BERT checkpoint, fine-tune them with six methods, merge, save and load again."""

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
    """A GPT-2 trained on the old chain, as a checkpoint folder."""
    torch.manual_seed(0)
    model = models.Decoder(
        VOCAB,
        DIM,
        2,
        mixer=nn.Attention.spec(heads=4, bias=True),
        channel=nn.MLP.spec(bias=True),
        position=nn.Learned.spec(length=64),
    )
    finetune(model, lambda step: language_batch(OLD, step), steps=STEPS, lr=3e-3)
    checkpoints.save_pretrained(model, folder)


def bert(folder: Path) -> None:
    """A BERT trained by masking on the old and the new chain, as a checkpoint folder."""
    torch.manual_seed(0)
    trunk = models.Encoder.spec(
        vocab=VOCAB + 1, dim=DIM, depth=2, mixer=nn.Attention.spec(heads=4, bias=True), segments=2
    )
    model = models.MaskedLM(trunk)

    def masked_batch(step: int) -> tuple[Tensor, Tensor]:
        both = torch.cat([text(OLD, 16, step), text(NEW, 16, step + 10**6)])
        generator = torch.Generator().manual_seed(step)
        return models.mask_tokens(
            both, mask_token=VOCAB, vocab=VOCAB + 1, special=(0, 1), probability=0.3, generator=generator
        )

    finetune(model, masked_batch, steps=2 * STEPS, lr=2e-3)
    checkpoints.save_pretrained(model, folder)


def language_batch(order: Tensor, step: int, rows: int = 32) -> tuple[Tensor, Tensor]:
    """A batch for a language model: tokens, and the token after each."""
    tokens = text(order, rows, step)
    return tokens[:, :-1], tokens[:, 1:]


def classification_batch(step: int, rows: int = 32) -> tuple[Tensor, Tensor]:
    """A batch for a classifier: which of the two chains generated a row."""
    half = rows // 2
    both = torch.cat([text(OLD, half, step), text(NEW, half, step + 10**6)])
    return both[:, : LENGTH // 4], torch.arange(rows) // half


def excess_loss(model: Any) -> float:
    """The loss on fresh text of the new chain above its entropy, in nats per token."""
    x, y = language_batch(NEW, 10**7, rows=512)
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()
    return loss - best()


def accuracy(model: Any) -> float:
    """The accuracy on fresh rows."""
    x, y = classification_batch(10**7, rows=1024)
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def trained_parameters(model: Any) -> int:
    """The number of trained parameters."""
    return sum(value.numel() for value in model.parameters() if value.requires_grad)


def language(folder: Path) -> tuple[list[Claim], list[tuple[str, str, str]], dict[str, list[tuple[float, float]]]]:
    """GPT-2 fine-tuned to the new chain by six methods."""
    gpt2(folder / "gpt2")
    start = checkpoints.load_pretrained(folder / "gpt2")
    total = sum(value.numel() for value in start.parameters())
    rows = [("as it was", "0", f"{excess_loss(start):.3f}")]
    losses, sizes, points = {}, {}, []
    for name, method in METHODS.items():
        model = checkpoints.load_pretrained(folder / "gpt2")
        torch.manual_seed(1)
        rate = {"full": 1e-3}.get(name, 1e-2)
        model = finetune(model, lambda step: language_batch(NEW, step), method=method, steps=STEPS, lr=rate)
        losses[name], sizes[name] = excess_loss(model), trained_parameters(model)
        rows.append((name, f"{sizes[name]:,} of {total:,}", f"{losses[name]:.3f}"))
        points.append((sizes[name], max(losses[name], 1e-3)))
        if name.startswith("LoRA"):
            tuned = model
    plain = models.merge(tuned)
    checkpoints.save_pretrained(plain, folder / "merged")
    again = checkpoints.load_pretrained(folder / "merged")
    x, _ = language_batch(NEW, 1)
    with torch.no_grad():
        largest = (again(x) - tuned(x)).abs().max().item()
    models.save_adapter(tuned, folder / "lora.safetensors")
    other = models.load_adapter(checkpoints.load_pretrained(folder / "gpt2"), folder / "lora.safetensors").eval()
    with torch.no_grad():
        same = torch.equal(other(x), tuned(x))
    claims = [
        above("GPT-2 before: loss on the new chain above the best, nats", excess_loss(start), 1.0),
        below("full: loss above the best", losses["full"], 0.03),
        below("LoRA of rank 4: loss above the best", losses["LoRA, rank 4"], 0.05),
        below("LoRA of rank 4: share of trained parameters", sizes["LoRA, rank 4"] / total, 0.12),
        below("bottleneck: loss above the best", losses["bottleneck, width 8"], 0.1),
        below("merged, saved, loaded: largest difference of a logit", largest, 1e-4),
        equal("the adapter saved alone gives the same bits", same, True),
    ]
    return claims, rows, {"loss above the best": sorted(points)}


def sentences(folder: Path) -> tuple[list[Claim], list[tuple[str, str, str]]]:
    """A new head on BERT, alone and with LoRA."""
    bert(folder / "bert")
    rows, accuracies = [], {}
    for name, method in {"head only": "head", "LoRA and head": nn.LoRA.spec(rank=4)}.items():
        trunk = copy.deepcopy(checkpoints.load_pretrained(folder / "bert").trunk)
        torch.manual_seed(1)
        model = models.SequenceClassifier(trunk, 2, pool="mean")
        options = {} if method == "head" else {"also": "head*"}
        model = finetune(model, classification_batch, method=method, steps=STEPS, lr=5e-3, **options)
        accuracies[name] = accuracy(model)
        rows.append((f"BERT, {name}", f"{trained_parameters(model):,}", f"{100 * accuracies[name]:.1f} %"))
    claims = [
        above("BERT, which of two chains generated 7 tokens, head only: accuracy", accuracies["head only"], 0.6),
        above("the same with LoRA of rank 4: accuracy", accuracies["LoRA and head"], 0.95),
    ]
    return claims, rows


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    with tempfile.TemporaryDirectory() as place:
        claims, rows, points = language(Path(place))
        more, pairs = sentences(Path(place))
    picture = lines(
        points,
        marks=points,
        title="Loss and number of trained parameters of each method",
        x_label="trained parameters",
        y_label="loss above the best, nats",
        log_x=True,
        log_y=True,
    )
    report = table(("method", "trained parameters", "loss above the best, or accuracy"), [*rows, *pairs])
    return [*claims, *more], report, {"methods": picture}


def main(given: list[str] | None = None) -> int:
    """Exit code: 0 if every stated number is reached, 1 if one is missed."""
    return run("finetune", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
