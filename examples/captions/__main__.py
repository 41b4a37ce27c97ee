"""A small contrastive image-text model finds the caption of new pictures, and a captioner writes them."""

import sys

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from examples.captions.pictures import WORDS, pictures
from examples.lab import Claim, above, run, table
from examples.lab.steps import learn
from wonderland.models import Encoder, SequenceClassifier
from wonderland.nn import MLP, Attention, Block, CrossAttention, Learned
from wonderland.tasks.losses import contrastive

ROWS, STEPS, DIM = 4000, 700, 48


def eyes() -> nn.Sequential:
    """Pictures to 36 places of features: (b, 3, 24, 24) -> (b, dim, 6, 6)."""
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, 2, 1), nn.ReLU(), nn.Conv2d(24, DIM, 3, 2, 1), nn.ReLU(), nn.Conv2d(DIM, DIM, 3, 1, 1)
    )


class ImageText(nn.Module):
    """Two encoders whose vectors of a picture and its caption are near each other (CLIP)."""

    def __init__(self):
        super().__init__()
        self.eyes, self.seen = eyes(), nn.Linear(36 * DIM, DIM)
        self.reader = SequenceClassifier(
            Encoder.spec(vocab=len(WORDS), dim=DIM, depth=1, mixer=Attention.spec(heads=4)), classes=DIM
        )

    def forward(self, images: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        return self.seen(self.eyes(images).flatten(1)), self.reader(tokens)


class Captioner(nn.Module):
    """A decoder whose blocks look at the places of a picture; pictures come as their features, with positions."""

    def __init__(self):
        super().__init__()
        self.eyes, self.place = eyes(), nn.Parameter(0.1 * torch.randn(36, DIM))
        self.embedding, self.position = nn.Embedding(len(WORDS), DIM), Learned(DIM, length=16)
        parts = {
            "mixer": Attention.spec(heads=4, causal=True),
            "cross": CrossAttention.spec(heads=4),
            "channel": MLP.spec(expansion=2),
        }
        self.blocks = nn.ModuleList(Block(DIM, **parts) for _ in range(2))
        self.head = nn.Linear(DIM, len(WORDS))

    def forward(self, images: Tensor, tokens: Tensor) -> Tensor:
        seen = self.eyes(images).flatten(2).transpose(1, 2) + self.place
        h = self.embedding(tokens)
        h = h + self.position.embed(torch.arange(tokens.shape[1])[None])
        for block in self.blocks:
            h = block(h, None, seen)
        return self.head(h)

    @torch.no_grad()
    def write(self, images: Tensor, longest: int = 11) -> list[str]:
        """The most probable word, one after the other, until the end."""
        tokens = torch.ones(len(images), 1, dtype=torch.int64)
        for _ in range(longest):
            tokens = torch.cat([tokens, self(images, tokens)[:, -1:].argmax(2)], 1)
        return [" ".join(WORDS[i] for i in row[1 : row.index(2) if 2 in row else None]) for row in tokens.tolist()]


def lab(steps: int = STEPS) -> tuple[list[Claim], str, dict[str, str]]:
    images, tokens, _ = pictures(ROWS, 0)
    new, asked, captions = pictures(400, 1)
    different = sorted(set(captions))
    torch.manual_seed(0)
    both = ImageText()
    learn(
        both,
        lambda index: contrastive(*both(images[index], tokens[index]), temperature=0.1, symmetric=True),
        ROWS,
        steps=steps,
        batch=64,
    )
    first = [captions.index(caption) for caption in different]
    with torch.no_grad():
        seen, read = both(new, asked)
    nearest = (F.normalize(seen, dim=1) @ F.normalize(read[first], dim=1).T).topk(5, 1).indices.tolist()
    truth = [different.index(caption) for caption in captions]
    recall = {k: sum(own in row[:k] for own, row in zip(truth, nearest, strict=True)) / len(truth) for k in (1, 5)}
    writer = Captioner()

    def loss(index: Tensor) -> Tensor:
        logits = writer(images[index], tokens[index, :-1])
        return F.cross_entropy(logits.flatten(0, 1), tokens[index, 1:].flatten(), ignore_index=0)

    learn(writer, loss, ROWS, steps=steps, batch=64)
    written = writer.write(new)
    exact = sum(a == b for a, b in zip(written, captions, strict=True)) / len(captions)
    rows = [("captions to choose from", str(len(different))), ("recall at 1", f"{recall[1]:.4f}"), ("recall at 5", f"{recall[5]:.4f}"),
            ("captions written exactly", f"{exact:.4f}"), ("for instance", written[0])]  # fmt: skip
    claims = [] if steps < STEPS else [
        above(f"recall at 5 among {len(different)} captions (by chance {5 / len(different):.3f})", recall[5], 0.9),
        above("captions of new pictures written exactly", exact, 0.8),
    ]  # fmt: skip
    return claims, table(("", "measured"), rows), {}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("captions", __doc__, lab, given, {"--steps": {"type": int, "default": STEPS}})


if __name__ == "__main__":
    sys.exit(main())
