"""A made-up language: sentences of a topic, whose verb agrees with its subject and whose object is of the topic."""

import numpy as np
import torch
from torch import Tensor

PAD, START, CUT, MASK = 0, 1, 2, 3
TOPICS, NOUNS, VERBS, TIMES = 6, 8, 4, 10
NOUN, VERB, TIME = 4, 4 + TOPICS * NOUNS * 2, 4 + TOPICS * NOUNS * 2 + TOPICS * VERBS * 2
SENTINELS = tuple(range(TIME + TIMES, TIME + TIMES + 8))
VOCAB = TIME + TIMES + 8
LENGTH = 5  # words of a sentence: time, subject, verb, object, time again


def sentences(count: int, draw: np.random.Generator, topics: np.ndarray | None = None) -> np.ndarray:
    """Sentences of topics (n, 5): the verb has the number of its subject, and the last word repeats the first."""
    topics = draw.integers(0, TOPICS, count) if topics is None else topics
    plural = draw.integers(0, 2, (2, count))
    noun = NOUN + (topics * NOUNS + draw.integers(0, NOUNS, (2, count))) * 2 + plural
    verb = VERB + (topics * VERBS + draw.integers(0, VERBS, count)) * 2 + plural[0]
    time = TIME + draw.integers(0, TIMES, count)
    return np.stack([time, noun[0], verb, noun[1], time], 1)


def pairs(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Rows [START] a [CUT] b [CUT] (n, 13), and 1 where b is of another topic, so that it does not follow."""
    draw = np.random.default_rng(seed)
    topics, other = draw.integers(0, TOPICS, count), draw.random(count) < 0.5
    second = np.where(other, (topics + draw.integers(1, TOPICS, count)) % TOPICS, topics)
    edge = [np.full((count, 1), token) for token in (START, CUT, CUT)]
    rows = np.concatenate(
        [edge[0], sentences(count, draw, topics), edge[1], sentences(count, draw, second), edge[2]], 1
    )
    return torch.from_numpy(rows), torch.from_numpy(other.astype(np.int64))
