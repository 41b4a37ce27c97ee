"""Translation: a text to be written for one that is read."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.batch import Batch
from wonderland.tasks.abilities.translating import Translating, translated
from wonderland.tasks.text import chrf, corpus_bleu, sentence_bleu
from wonderland.tasks.token_trust import TokenTrust, token_measures
from wonderland.tasks.tokens import TokenTask
from wonderland.tasks.view import View
from wonderland.understand.format import number, percent

PAD = 0
WRITTEN = 400  # texts that an evaluation has the model write


@part
class Translation(TokenTask):
    r"""Predict each token of a target from the source and the tokens before it.

    .. math:: L = -\frac1n \sum_i \log p(y_i \mid y_{<i}, x)

    Rows of x hold the source in their first `read` places and what the decoder is given behind them, 0 where there is
    nothing; y (b, write) is what it should write, -100 where nothing. Book: Alice 11.1; D2L 10.7.

    >>> Translation(vocab=9, read=4).arguments()
    {'vocab': 9, 'read': 4, 'label_smoothing': 0.0}
    """

    name = "translation"
    abilities = {"generate": Translating}  # noqa: RUF012
    writes_with = "prepare"
    checked = 1000

    def __init__(self, vocab: int, read: int, label_smoothing: float | int = 0.0):
        if not isinstance(vocab, int) or not isinstance(read, int) or vocab < 4 or read < 1:
            raise WonderlandError(
                f"Translation needs at least four tokens and one to read, not {vocab!r} and {read!r}."
            )
        self.vocab, self.outputs, self.read, self.label_smoothing = vocab, vocab, read, label_smoothing

    def arguments(self) -> dict[str, Any]:
        return {"vocab": self.vocab, "read": self.read, "label_smoothing": self.label_smoothing}

    def inputs(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The source, what the decoder is given, and the masks of both."""
        source, given = batch["x"][:, : self.read], batch["x"][:, self.read :]
        real = given != PAD
        real[:, 0] = True  # T5 begins with the padding token
        return source, given, source != PAD, real

    def logits(self, model: nn.Module, batch: Batch) -> Tensor:
        """(b, write, vocab)."""
        return model(*self.inputs(batch))

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        """Cross-entropy in nats, the mean over the tokens that are to be written."""
        logits, y = self.logits(model, batch).flatten(0, 1), batch["y"]
        mean = F.cross_entropy(logits, y.flatten(), ignore_index=-100, label_smoothing=self.label_smoothing)
        return mean, float((y != -100).sum())

    def measure(self, view: View) -> dict[str, float]:
        """Nats and perplexity, with the right words given."""
        measures = token_measures(*self.summed(view, self.checked), 1)
        return {"loss": measures["loss"], "perplexity": measures["perplexity"]}

    def evaluate(self, view: View, trust: TokenTrust, level: float | None = None) -> dict[str, Any]:
        """What trust measures token by token, with BLEU and chrF of what the model writes by itself."""
        examples: Any = view.examples
        sources, targets = examples.texts(view.part)
        assert targets is not None
        size = sum(len(text.encode()) for text in targets)
        record = trust.measure(lambda batch: self.logits(view.model, batch), view.batches(), size, level)
        written = translated(view.model, examples.encoder, sources[:WRITTEN])
        truth = [[text] for text in targets[:WRITTEN]]
        scores = {"bleu": corpus_bleu(written, truth).score, "chrf": chrf(written, truth)}
        exact = sum(text.strip() == right[0].strip() for text, right in zip(written, truth, strict=True)) / len(truth)
        record["metrics"] = scores | {"exact_match": exact} | record["metrics"]
        record["pairs"] = len(targets)
        return record

    def predictions(self, view: View, trust: TokenTrust, level: float | None = None) -> pd.DataFrame:
        """The text that the model writes for each text that it reads."""
        examples: Any = view.examples
        sources, _ = examples.texts(view.part)
        return pd.DataFrame({"prediction": translated(view.model, examples.encoder, sources)})

    def check_run(self, model: nn.Module, encoder: Any, trust: Any, folds: int) -> str | None:
        if encoder.read != self.read:
            return "preprocess.json has another vocabulary than config.json: the two do not belong together."
        if not callable(getattr(model, "prepare", None)):
            return "The model has another vocabulary than its task: config.json is damaged."
        return super().check_run(model, encoder, trust, folds)

    def curves(self) -> list[tuple[str, str, bool]]:
        return [("loss", "nats a token", False), ("perplexity", "perplexity", True)]

    def facts(self, view: View, trust: TokenTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        metrics = record["metrics"]
        sentence = (
            f"BLEU {number(metrics['bleu'])} and chrF {number(metrics['chrf'])} on {number(record['pairs'])} unseen "
            f"pairs, {percent(metrics['exact_match'])} of them to the letter; sets of next tokens cover "
            f"{percent(record['conformal']['coverage'])}."
        )
        mistakes = self.worst(view, dataset.columns[0])
        return self.token_facts(trust, record) | {
            "answers": "translation", "noun": "pairs", "verdict": sentence, "mistakes": mistakes, "long_rows": True,
        }  # fmt: skip

    def worst(self, view: View, column: str, most: int = 60, shown: int = 12) -> list[dict[str, Any]]:
        """The translations furthest from the truth."""
        examples: Any = view.examples
        sources, targets = (texts[:most] for texts in examples.texts(view.part))
        written = translated(view.model, examples.encoder, sources)
        scores = [
            sentence_bleu(text, right).score if text.strip() and right.strip() else 0.0
            for text, right in zip(written, targets, strict=True)
        ]
        order = sorted(range(len(scores)), key=lambda i: scores[i])[:shown]
        return [
            {
                "true": targets[i][:300],
                "predicted": written[i][:300],
                "row": {column: sources[i][:300], "BLEU": round(scores[i], 1)},
            }
            for i in order
            if scores[i] < 99.9
        ]

    def next_commands(self, folder: str) -> list[tuple[str, str]]:
        return [
            ("Translate", f"wonderland predict {folder} TEXTS -o written.csv"),
            ("Measure on other pairs", f"wonderland evaluate {folder} PAIRS"),
        ]
