"""Runs that translate: a text is read, another written."""

from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.data.dataset import stop_if_strict
from wonderland.kinds.pairs.pairs import Pairs, PairsEncoder
from wonderland.generation import beam_search, generate
from wonderland.ship.run import Run
from wonderland.tasks.text import chrf, corpus_bleu
from wonderland.tasks.translation import Translation
from wonderland.tasks.token_trust import TokenTrust


class TranslationRun(Run):
    """A finished translator: `translate("text")`, `predict`, `evaluate`.

    Get one from `wonderland.fit("pairs.tsv", kind="pairs")` or `wonderland.load(folder)`.
    """

    def __init__(
        self,
        folder: Path,
        config: dict[str, Any],
        task: Translation,
        encoder: PairsEncoder,
        model: nn.Module,
        facts: dict[str, Any],
    ):
        self.folder, self.config, self.model, self.facts = folder, config, model, facts
        self.task: Any = task
        self.encoder: Any = encoder
        self.trust: Any = TokenTrust.from_json(facts)
        self._noticed = []

    @property
    def tokenizer(self):
        """What cuts both sides into tokens."""
        return self.encoder.tokenizer

    @property
    def classes(self) -> list[str] | None:
        """A translator has none."""
        return None

    def translate(self, text: str, **options: Any) -> str:
        """What the model writes for a text. Options are those of generation: temperature (0 unless given), top_k, seed ...;
        or beams, to search for the likeliest text with that many.
        """
        if not isinstance(text, str):
            raise WonderlandError(f"A text is translated, not {type(text).__name__}.")
        return translated(self.model, self.encoder, [text], **options)[0]

    def predict(self, source: Any, *, level: float | None = None, strict: bool = False) -> pd.DataFrame:
        """One row for each text of `source` (a path, a frame, or a list): the text and its translation."""
        pairs = self.encoder.open(source)
        self.encoder.encode(pairs)
        self._noticed = [*pairs.findings, *self.encoder.noticed]
        stop_if_strict(self._noticed, strict)
        return pd.DataFrame(
            {self.encoder.columns[0]: pairs.sources, "prediction": translated(self.model, self.encoder, pairs.sources)}
        )

    def evaluate(self, source: Any, *, level: float | None = None) -> dict[str, Any]:
        """BLEU, chrF, loss, calibration and coverage on pairs whose targets are known."""
        pairs = self.encoder.open(source, need_target=True)
        self._noticed = [*pairs.findings]
        return measured(self.task, self.model, self.encoder, pairs, self.trust, level)


def translated(
    model: nn.Module, encoder: PairsEncoder, texts: list[str], *, rows: int = 64, **options: Any
) -> list[str]:
    """What a model writes for texts, always the likeliest token unless asked otherwise."""
    beams = options.pop("beams", None)
    if beams is not None and options:
        raise WonderlandError(f"{next(iter(options))} is for drawing tokens; beams search for the likeliest text.")
    options = {"temperature": 0.0} | options
    tokenizer, found = encoder.tokenizer, []
    model.eval()
    for first in range(0, len(texts), rows):
        some = texts[first : first + rows]
        x = encoder.encode(Pairs("texts", some, None))[:, : encoder.read]
        x = x[:, : max(1, int((x != 0).sum(1).max()))]
        with torch.no_grad():
            state = model.prepare(x, x != 0)  # pyright: ignore
        prompts, count, stop = [[encoder.begin]] * len(some), max(1, 2 * encoder.write), [tokenizer.end]
        if beams is None:
            tokens = generate(model, prompts, count, state=state, stop=stop, **options).tokens
        else:
            tokens = [one.tokens[0] for one in beam_search(model, prompts, count, beams=beams, state=state, stop=stop)]
        found += [tokenizer.decode(ids) for ids in tokens]
    return found


def measured(
    task: Translation,
    model: nn.Module,
    encoder: PairsEncoder,
    pairs: Pairs,
    trust: TokenTrust,
    level: float | None = None,
    most: int = 400,
) -> dict[str, Any]:
    """What trust measures token by token, with BLEU and chrF of what the model writes by itself."""
    assert pairs.targets is not None
    x, y = encoder.encode(pairs), encoder.answers(pairs)
    batches = list(zip(x.split(64), y.split(64), strict=True))
    model.eval()
    size = sum(len(text.encode()) for text in pairs.targets)
    found = trust.measure(task, lambda x: task.logits(model, x), batches, size, level)  # pyright: ignore
    written = translated(model, encoder, pairs.sources[:most])
    truth = [[text] for text in pairs.targets[:most]]
    scores = {"bleu": corpus_bleu(written, truth).score, "chrf": chrf(written, truth)}
    exact = sum(a.strip() == b[0].strip() for a, b in zip(written, truth, strict=True)) / len(truth)
    found["metrics"] = scores | {"exact_match": exact} | found["metrics"]
    found["pairs"] = len(pairs)
    return found
