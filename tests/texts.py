"""Small finished runs on text, fitted once for each test process."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import wonderland

FIRST = ["The fox", "A hare", "The old tortoise", "One crow", "My goose", "The grey wolf"]
THEN = ["ran over the hill", "sat by the river", "slept under a tree", "looked for the moon", "ate all the corn"]
LAST = ["and went home.", "and said nothing.", "until it was dark.", "as the others did."]


def rhyme(lines: int = 60, seed: int = 0) -> str:
    """Lines that are easy to learn."""
    random = np.random.default_rng(seed)
    return "".join(f"{random.choice(FIRST)} {random.choice(THEN)} {random.choice(LAST)}\n" for _ in range(lines))


@cache
def language() -> wonderland.Run:
    """A language model of rhymes."""
    folder = Path(mkdtemp(prefix="wonderland-language-"))
    (folder / "rhyme.txt").write_text(rhyme(400))
    return wonderland.fit(folder / "rhyme.txt", out=folder / "run", steps=100, context=32, batch_size=12)


@cache
def names() -> wonderland.Run:
    """A language model of made-up names, a line each."""
    random = np.random.default_rng(0)
    made = ["".join(random.choice(["ba", "lo", "mi", "ka", "ren", "tu"], random.integers(1, 4))) for _ in range(400)]
    folder = Path(mkdtemp(prefix="wonderland-names-"))
    (folder / "names.txt").write_text("\n".join(made))
    return wonderland.fit(folder / "names.txt", out=folder / "run", steps=60, lines=True, batch_size=8)


def labelled(rows: int = 240, seed: int = 0) -> list[tuple[str, str]]:
    """Texts and what they are about."""
    random = np.random.default_rng(seed)
    topics = {
        "animals": ["fox", "hare", "crow", "wolf"],
        "weather": ["rain", "snow", "wind", "sun"],
        "food": ["bread", "corn", "soup", "tea"],
    }
    found = []
    for _ in range(rows):
        topic = random.choice(list(topics))
        words = random.permutation(
            [*random.choice(topics[topic], 2), *random.choice(["the", "a", "was", "not", "here", "so"], 4)]
        )
        found.append((str(topic), " ".join(words)))
    return found


@cache
def topics() -> wonderland.Run:
    """A classifier of texts from a CSV file."""
    folder = Path(mkdtemp(prefix="wonderland-topics-"))
    (folder / "topics.csv").write_text("label,text\n" + "".join(f"{label},{text}\n" for label, text in labelled()))
    return wonderland.fit(folder / "topics.csv", out=folder / "run", epochs=6)
