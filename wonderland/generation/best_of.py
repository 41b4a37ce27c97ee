"""Best of n: several texts are drawn for each prompt, and the one with the highest score is kept."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.generation.checks import whole
from wonderland.generation.generate import generate
from wonderland.generation.prompts import batch, read_prompts
from wonderland.generation.reading import Reader
from wonderland.generation.written import Written
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
) -> Written:
    """Draw n texts for each prompt as `generate` does, with its options, and keep the one with the highest score.

    `score(prompt, tokens)` says how good a text is; without it, the text that the model itself finds most likely wins, by its
    mean log-likelihood a token. Texts of row r are those of `generate` with the names r n, ..., r n + n - 1.

    Book: Alice 8.4 (guiding by a score).

    >>> from wonderland.models import Decoder
    >>> model = Decoder(vocab=10, dim=8, depth=1)
    >>> best_of(model, [[1], [2, 3]], 4, 8, score=lambda prompt, tokens: -sum(tokens)).scores[0] <= 0
    True
    """
    n = whole(n, "n, the number of texts to choose from, is")
    given = read_prompts(prompts, mask, model)
    index = torch.arange(len(given.lists), device=given.tokens.device).repeat_interleave(n)
    state = None if state is None else state_rows(state, index)
    names = [row * n + k for row in options.pop("rows", range(len(given.lists))) for k in range(n)]
    many = given.repeat(n)
    drawn = generate(model, many, count, state=state, rows=names, **options)
    if score is not None:
        scores = [float(score(prompt, tokens)) for prompt, tokens in zip(many.lists, drawn.tokens, strict=True)]
    else:
        sums = log_likelihood(model, many.lists, drawn.tokens, state=state)
        scores = [value / max(len(tokens), 1) for value, tokens in zip(sums, drawn.tokens, strict=True)]
    best = [max(range(row * n, row * n + n), key=scores.__getitem__) for row in range(len(given.lists))]
    return Written(
        [drawn.tokens[at] for at in best],
        [drawn.ended[at] for at in best],
        [drawn.texts[at] for at in best] if drawn.texts else [],
        [scores[at] for at in best],
    )


def log_likelihood(model: Any, prompts: Any, texts: list[list[int]], *, state: Any = None) -> list[float]:
    r"""How likely a model finds each text after its prompt: :math:`\sum_t \log p(y_t \mid c, y_{<t})`, in nats.

    Book: Alice 8.4.

    >>> from wonderland.models import Decoder
    >>> model = Decoder(vocab=10, dim=8, depth=1).double()
    >>> one, other, both = log_likelihood(model, [[1], [1, 2], [1]], [[2], [3], [2, 3]])
    >>> abs(one + other - both) < 1e-9
    True
    """
    given = read_prompts(prompts, None, model)
    if len(texts) != len(given.lists):
        raise WonderlandError(f"There are {len(texts)} texts and {len(given.lists)} prompts: give one for each.")
    read_prompts([text or [0] for text in texts], None, model)
    # The last token of a text is never read: it is only predicted.
    whole = batch(
        [
            (prompt + text)[: len(prompt) + max(len(text), 1) - 1]
            for prompt, text in zip(given.lists, texts, strict=True)
        ],
        given.tokens.device,
    )
    logits = Reader(model).whole(whole, state)
    return [
        _sum(logits[row, len(prompt) - 1 : len(prompt) + len(text) - 1], text)
        for row, (prompt, text) in enumerate(zip(given.lists, texts, strict=True))
    ]


def _sum(logits: Tensor, text: list[int]) -> float:
    if not text:
        return 0.0
    logs = logits.log_softmax(-1, dtype=torch.float64)
    return float(logs.gather(1, torch.tensor(text, device=logits.device).unsqueeze(1)).sum())
