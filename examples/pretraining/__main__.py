"""Pretrain a small BERT (masked words, next sentence) and a small T5 (spans taken out), and tune the first on few labels."""

import sys

import torch
import torch.nn.functional as F

from examples.lab import Claim, above, run, table
from examples.lab.steps import learn
from examples.pretraining.language import CUT, MASK, PAD, SENTINELS, START, TOPICS, VOCAB, pairs, sentences
from wonderland.models import Encoder, EncoderDecoder, MaskedLM, SequenceClassifier, mask_spans, mask_tokens
from wonderland.nn import Attention

STEPS, ROWS, FEW = 900, 6000, 24


def trunk() -> Encoder:
    """An encoder with segments and a pooler, as BERT has them."""
    return Encoder(VOCAB, 48, 2, mixer=Attention.spec(heads=4), segments=2, separator=CUT, pooler=True)


def bert(steps: int, seed: int = 0) -> tuple[MaskedLM, dict[str, float]]:
    """Masked words and next sentence together; measured on sentences that were not seen."""
    torch.manual_seed(seed)
    model = MaskedLM(trunk(), sentences=True)
    (rows, other), noise = pairs(ROWS, seed), torch.Generator().manual_seed(seed)

    def both(tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        masked, labels = mask_tokens(tokens, mask_token=MASK, vocab=VOCAB, special=(PAD, START, CUT), generator=noise)
        words, follows = model.both(masked)
        return words, labels, follows

    def loss(index: torch.Tensor) -> torch.Tensor:
        words, labels, follows = both(rows[index])
        return F.cross_entropy(words.flatten(0, 1), labels.flatten(), ignore_index=-100) + F.cross_entropy(
            follows, other[index]
        )

    learn(model, loss, ROWS, steps=steps, batch=64, lr=3e-3)
    new, truth = pairs(1000, seed + 100)
    with torch.no_grad():
        words, labels, follows = both(new)
        chosen = labels >= 0
        right = (words.argmax(2) == labels)[chosen].float().mean().item()
        usual = torch.mode(labels[chosen]).values
    return model, {
        "masked words": right,
        "most frequent word": (labels[chosen] == usual).float().mean().item(),
        "next sentence": (follows.argmax(1) == truth).float().mean().item(),
    }


def tuned(start: MaskedLM | None, seed: int = 0) -> float:
    """Accuracy of a classifier of topics from few labels, from a pretrained trunk or from random weights."""
    torch.manual_seed(seed)
    model = SequenceClassifier(trunk(), TOPICS, pool="mean")
    if start is not None:
        model.trunk.load_state_dict(start.trunk.state_dict())
    import numpy as np

    draw = np.random.default_rng(seed + 7)
    topics = draw.integers(0, TOPICS, FEW + 1000)
    tokens, topics = torch.from_numpy(sentences(len(topics), draw, topics)), torch.from_numpy(topics)
    tokens = torch.cat([torch.full((len(tokens), 1), START), tokens, torch.full((len(tokens), 1), CUT)], 1)
    learn(
        model,
        lambda index: F.cross_entropy(model(tokens[index]), topics[index]),
        FEW,
        steps=120,
        batch=16,
        lr=1e-3,
        seed=seed,
    )
    with torch.no_grad():
        return (model(tokens[FEW:]).argmax(1) == topics[FEW:]).float().mean().item()


def t5(steps: int, seed: int = 0) -> float:
    """Spans taken out and put back: the share of new texts whose repeated word is written right."""
    torch.manual_seed(seed)
    model = EncoderDecoder(VOCAB, 48, 2, heads=4, begin=PAD)
    import numpy as np

    rows = sentences(ROWS, np.random.default_rng(seed))
    noise = torch.Generator().manual_seed(seed)

    def corrupted(tokens: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        made = [
            mask_spans(row, sentinels=list(SENTINELS), probability=0.2, mean_length=1.0, generator=noise)
            for row in tokens
        ]
        return torch.tensor([source for source, _ in made]), torch.tensor([target for _, target in made])

    def loss(index: torch.Tensor) -> torch.Tensor:
        source, target = corrupted(rows[index].tolist())
        given = torch.cat([torch.full((len(target), 1), PAD), target[:, :-1]], 1)
        return F.cross_entropy(model(source, given).flatten(0, 1), target.flatten())

    learn(model, loss, ROWS, steps=steps, batch=64, lr=3e-3)
    new = sentences(500, np.random.default_rng(seed + 50))
    source = torch.from_numpy(new).clone()
    source[:, -1] = SENTINELS[0]
    given = torch.tensor([[PAD, SENTINELS[0]]]).expand(len(new), -1)
    with torch.no_grad():
        return float((model(source, given)[:, 1].argmax(1).numpy() == new[:, -1]).mean())


def lab(steps: int = STEPS) -> tuple[list[Claim], str, dict[str, str]]:
    model, told = bert(steps)
    few = {"pretrained": tuned(model), "random weights": tuned(None)}
    told |= {f"topics from {FEW} labels, {name}": value for name, value in few.items()} | {"spans put back": t5(steps)}
    claims = [] if steps < STEPS else [
        above("masked words right on new text, minus the most frequent word", told["masked words"] - told["most frequent word"], 0.3),
        above("next sentence", told["next sentence"], 0.95),
        above("topics from few labels, pretrained minus random weights", few["pretrained"] - few["random weights"], 0.1),
        above("a word that occurs twice, written where it was taken out", told["spans put back"], 0.95),
    ]  # fmt: skip
    return claims, table(("", "accuracy"), [(name, f"{value:.4f}") for name, value in told.items()]), {}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("pretraining", __doc__, lab, given, {"--steps": {"type": int, "default": STEPS}})


if __name__ == "__main__":
    sys.exit(main())
