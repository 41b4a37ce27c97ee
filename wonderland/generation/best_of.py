"""Best-of-n sampling: several texts are drawn for each prompt, and the one with the highest score is kept."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.generation.checks import integer
from wonderland.generation.generate import generate
from wonderland.generation.generated import Generated
from wonderland.generation.prompts import batch, read_prompts
from wonderland.generation.reading import Reader
from wonderland.nn.contract.state import rows as state_rows


def best_of(
    model: Any,
    prompts: Any,
    count: Any,
    n: Any,
    *,
    score: Callable[[list[int], list[int]], float | int] | None = None,
    mask: Any = None,
    state: Any = None,
    **options: Any,
) -> Generated:
    """Draw n texts for each prompt as `generate` does, with its options, and keep the one with the highest score.

    `score(prompt, tokens)` rates a text; the default is the model's own mean log-likelihood per token. The texts of row r are
    those of `generate` with the row names r n, ..., r n + n - 1.

    Book: Alice 8.4 (guiding by a score).

    >>> from wonderland.models import Decoder
    >>> model = Decoder(vocab=10, dim=8, depth=1)
    >>> best_of(model, [[1], [2, 3]], 4, 8, score=lambda prompt, tokens: -sum(tokens)).scores[0] <= 0
    True
    """
    n = integer(n, "n, the number of texts to choose from, is")
    single = read_prompts(prompts, mask, model)
    index = torch.arange(len(single.lists), device=single.tokens.device).repeat_interleave(n)
    state = None if state is None else state_rows(state, index)
    names = [row * n + k for row in options.pop("rows", range(len(single.lists))) for k in range(n)]
    repeated = single.repeat(n)
    drawn = generate(model, repeated, count, state=state, rows=names, **options)
    if score is not None:
        scores = [float(score(prompt, tokens)) for prompt, tokens in zip(repeated.lists, drawn.tokens, strict=True)]
    else:
        sums = log_likelihood(model, repeated.lists, drawn.tokens, state=state)
        scores = [value / max(len(tokens), 1) for value, tokens in zip(sums, drawn.tokens, strict=True)]
    best = [max(range(row * n, row * n + n), key=scores.__getitem__) for row in range(len(single.lists))]
    return Generated(
        [drawn.tokens[index] for index in best],
        [drawn.ended[index] for index in best],
        [drawn.texts[index] for index in best] if drawn.texts else [],
        [scores[index] for index in best],
    )


def log_likelihood(model: Any, prompts: Any, texts: list[list[int]], *, state: Any = None) -> list[float]:
    r"""The log-likelihood of each text after its prompt: :math:`\sum_t \log p(y_t \mid c, y_{<t})`, in nats.

    Book: Alice 8.4.

    >>> from wonderland.models import Decoder
    >>> model = Decoder(vocab=10, dim=8, depth=1).double()
    >>> first, second, joint = log_likelihood(model, [[1], [1, 2], [1]], [[2], [3], [2, 3]])
    >>> abs(first + second - joint) < 1e-9
    True
    """
    contexts = read_prompts(prompts, None, model)
    if len(texts) != len(contexts.lists):
        raise WonderlandError(f"There are {len(texts)} texts and {len(contexts.lists)} prompts: give one for each.")
    read_prompts([text or [0] for text in texts], None, model)
    # The last token of a text is predicted, but not read.
    inputs = batch(
        [
            (prompt + text)[: len(prompt) + max(len(text), 1) - 1]
            for prompt, text in zip(contexts.lists, texts, strict=True)
        ],
        contexts.tokens.device,
    )
    logits = Reader(model).all_logits(inputs, state)
    return [
        _log_likelihood(logits[row, len(prompt) - 1 : len(prompt) + len(text) - 1], text)
        for row, (prompt, text) in enumerate(zip(contexts.lists, texts, strict=True))
    ]


def _log_likelihood(logits: Tensor, text: list[int]) -> float:
    if not text:
        return 0.0
    log_probabilities = logits.log_softmax(-1, dtype=torch.float64)
    return float(log_probabilities.gather(1, torch.tensor(text, device=logits.device).unsqueeze(1)).sum())
