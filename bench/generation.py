"""The cost of generation apart from the model: choosing tokens, constraints, and the gain of speculative decoding.

    python -m bench.generation                 everything
    python -m bench.generation --only choose   some of: choose, constrain, speculate

`choose` times `generate` with a model that takes no time, so all of it is overhead. `constrain` compiles constraints for a
vocabulary of 50,000 pieces. `speculate` compares `speculate` with `generate`, with a draft that is nearly always right: the
large model's blocks add little to its embedding, which the draft shares, so the ratio is an upper bound of the gain.
"""

import argparse
import random
import statistics
import time

import torch

from wonderland import generation
from wonderland.generation import generate, speculate
from wonderland.models import Decoder


class Instant:
    """A language model that takes no time: cached random logits."""

    def __init__(self, vocab: int):
        self.vocab, self.logits = vocab, {}

    def stream(self, tokens, state=None, mask=None):
        key = tuple(tokens.shape)
        if key not in self.logits:
            self.logits[key] = 3 * torch.randn(*key, self.vocab)
        return self.logits[key], (tokens,)


SETTINGS = {
    "greedy": {"temperature": 0},
    "temperature": {"temperature": 0.8},
    "top-k": {"top_k": 50},
    "top-p": {"top_p": 0.9},
    "k, p, min-p": {"temperature": 0.8, "top_k": 50, "top_p": 0.9, "min_p": 0.05},
    "typical": {"typical": 0.9},
    "penalty": {"repetition_penalty": 1.2},
}


def best(run, times: int = 5) -> float:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def choose() -> None:
    print("microseconds per step, all overhead (best of 5)")
    print(f"{'':14}" + "".join(f"{f'vocab {vocab}, batch {b}':>24}" for vocab in (65, 50257) for b in (1, 16)))
    for name, options in SETTINGS.items():
        cells = []
        for vocab in (65, 50257):
            count = 200 if vocab == 65 else 10
            for b in (1, 16):
                model, prompts = Instant(vocab), torch.zeros(b, 4, dtype=torch.int64)
                generate(model, prompts, count, **options)
                cells.append(best(lambda: generate(model, prompts, count, **options)) / count * 1e6)  # noqa: B023
        print(f"{name:14}" + "".join(f"{cell:24.0f}" for cell in cells))


def vocabulary(size: int = 50_000) -> list[bytes]:
    """All bytes, and random pieces like those of a tokenizer: letters, digits and signs, half of them after a space."""
    rng, pieces = random.Random(0), {bytes([code]) for code in range(256)}
    while len(pieces) < size:
        alphabet = rng.choices(["abcdefghijklmnopqrstuvwxyz", "0123456789", '{}[]":,.\\/ \n'], [8, 1, 1])[0]
        pieces.add((b" " if rng.random() < 0.5 else b"") + "".join(rng.choices(alphabet, k=rng.randint(1, 9))).encode())
    return sorted(pieces)


CONSTRAINTS = {
    "a date": lambda pieces: generation.matching(r"\d{4}-\d{2}-\d{2}", pieces),
    "sentences": lambda pieces: generation.matching(r"([A-Z][a-z]+( [a-z]+)*\. ?)+", pieces),
    "a record": lambda pieces: generation.json_schema(
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 40},
                "age": {"type": "integer", "minimum": 0, "maximum": 130},
                "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 5},
            },
            "required": ["name", "age"],
        },
        pieces,
    ),
    "any JSON": lambda pieces: generation.json_schema({}, pieces),
}


def constrain() -> None:
    pieces = vocabulary()
    model = Instant(len(pieces))
    free = best(lambda: generate(model, [[0]], 60), 3) / 60
    print(f"constraints over {len(pieces):,} pieces; an unconstrained step takes {free * 1e3:.2f} ms")
    print(f"{'':14}{'compile (s)':>14}{'states':>10}{'ms per step':>12}")
    for name, make in CONSTRAINTS.items():
        start = time.perf_counter()
        constraint = make(pieces)
        took = time.perf_counter() - start
        steps: list[float] = []
        for seed in range(4):
            begin = time.perf_counter()
            generated = generate(model, [[0]], 60, constraint=constraint, seed=seed)
            steps.append((time.perf_counter() - begin) / max(len(generated.tokens[0]), 1))
        states = len(constraint.distance) - 1
        print(f"{name:14}{took:14.2f}{states:10}{statistics.median(steps) * 1e3:12.2f}")


def speculation() -> None:
    torch.manual_seed(0)
    print("tokens per second, 64 new tokens after 16, float32 (best of 3 rounds, interleaved)")
    for dim, depth in ((256, 6), (768, 12)):
        large = Decoder(vocab=256, dim=dim, depth=depth, layer_scale=1e-3).eval()
        draft = Decoder(vocab=256, dim=dim, depth=1, layer_scale=1e-3).eval()
        with torch.no_grad():
            draft.embedding.weight.copy_(large.embedding.weight.mul_(20))
        prompt = torch.randint(256, (1, 16))
        for name, options in (("greedy", {"temperature": 0}), ("temperature 1", {})):
            for ahead in (4, 8):
                plain, fast = [], []
                for _ in range(3):
                    plain.append(best(lambda: generate(large, prompt, 64, **options), 1))  # noqa: B023
                    fast.append(best(lambda: speculate(large, draft, prompt, 64, ahead=ahead, **options), 1))  # noqa: B023
                speculated = speculate(large, draft, prompt, 64, ahead=ahead, **options)
                print(
                    f"width {dim}, {depth} blocks, {name}, ahead {ahead}: generate {64 / min(plain):.0f}, "
                    f"speculate {64 / min(fast):.0f} ({min(plain) / min(fast):.2f}x), "
                    f"{speculated.accepted} of {speculated.proposed} proposals accepted"
                )


def main() -> None:
    parts = {"choose": choose, "constrain": constrain, "speculate": speculation}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts))
    for name in parser.parse_args().only:
        parts[name]()
        print()


if __name__ == "__main__":
    main()
