"""Markov chains with known entropy: each token has one usual successor."""

import math

import torch
from torch import Tensor

TOKENS, LENGTH, SURE = 24, 32, 0.9
FIRST = 2  # 0 is padding, 1 begins a text


def successors(seed: int) -> Tensor:
    """The usual successor of each token: a random permutation."""
    return torch.randperm(TOKENS, generator=torch.Generator().manual_seed(seed))


def text(order: Tensor, rows: int, seed: int) -> Tensor:
    """Rows of tokens, each the usual successor of the one before with probability 0.9, else any: (rows, length + 1)."""
    generator = torch.Generator().manual_seed(seed)
    tokens = [torch.randint(TOKENS, (rows,), generator=generator)]
    for _ in range(LENGTH - 1):
        usual = torch.rand(rows, generator=generator) < SURE
        tokens.append(torch.where(usual, order[tokens[-1]], torch.randint(TOKENS, (rows,), generator=generator)))
    return torch.cat([torch.ones(rows, 1, dtype=torch.int64), torch.stack(tokens, 1) + FIRST], 1)


def best() -> float:
    """The entropy of the chain in nats per token, the lowest possible loss; the first token is uniform."""
    rest = (1 - SURE) / TOKENS
    later = -(SURE + rest) * math.log(SURE + rest) - (TOKENS - 1) * rest * math.log(rest)
    return (math.log(TOKENS) + (LENGTH - 1) * later) / LENGTH
