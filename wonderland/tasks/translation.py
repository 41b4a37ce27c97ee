"""Translation: sequence-to-sequence prediction of a target text from a source text."""

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

GENERATED = 400  # texts that are generated in an evaluation at most


def before_padding(tokens: Tensor, pad: int) -> Tensor:
    """Which tokens (b, t) come before the padding at the end of their row."""
    return (tokens != pad).flip(1).cumsum(1).flip(1) > 0


@part
class Translation(TokenTask):
    r"""Predict each token of a target from the source and the tokens before it.

    .. math:: L = -\frac1n \sum_i \log p(y_i \mid y_{<i}, x)

    Rows of x are the source in the first `read` positions and then the decoder input, with the token `pad` for padding;
    y (b, write) is the target, -100 for padding. Book: Alice 11.1; D2L 10.7.

    >>> Translation(vocab=9, read=4).arguments()
    {'vocab': 9, 'read': 4, 'label_smoothing': 0.0}
    """

    name = "translation"
    abilities = {"generate": Translating}  # noqa: RUF012
    writes_with = "prepare"
    checked = 1000

    def __init__(self, vocab: int, read: int, label_smoothing: float | int = 0.0, pad: int = 0):
        if not isinstance(vocab, int) or not isinstance(read, int) or vocab < 4 or read < 1:
            raise WonderlandError(
                f"Translation needs vocab of at least 4 and read of at least 1, not {vocab!r} and {read!r}."
            )
        self.vocab, self.outputs, self.read, self.label_smoothing = vocab, vocab, read, label_smoothing
        self.pad = pad

    def arguments(self) -> dict[str, Any]:
        own = {"pad": self.pad} if self.pad else {}  # tokenizers of ours have it at 0
        return {"vocab": self.vocab, "read": self.read, "label_smoothing": self.label_smoothing, **own}

    def inputs(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The source, the decoder input, and the masks of both."""
        source, decoder_input = batch["x"][:, : self.read], batch["x"][:, self.read :]
        # Padding ends a row, so a token for padding that begins the target, as in T5 and Marian, is real.
        mask = before_padding(decoder_input, self.pad)
        mask[:, 0] = True
        return source, decoder_input, before_padding(source, self.pad), mask

    def logits(self, model: nn.Module, batch: Batch) -> Tensor:
        """Logits (b, write, vocab)."""
        return model(*self.inputs(batch))

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        """Cross-entropy in nats, averaged over target tokens."""
        logits, y = self.logits(model, batch).flatten(0, 1), batch["y"]
        mean = F.cross_entropy(logits, y.flatten(), ignore_index=-100, label_smoothing=self.label_smoothing)
        return mean, float((y != -100).sum())

    def measure(self, view: View) -> dict[str, float]:
        """Loss and perplexity with teacher forcing."""
        measures = token_measures(*self.summed(view, self.checked), 1)
        return {"loss": measures["loss"], "perplexity": measures["perplexity"]}

    def evaluate(self, view: View, trust: TokenTrust, level: float | None = None) -> dict[str, Any]:
        """Token metrics with teacher forcing, and BLEU and chrF of generated texts."""
        examples: Any = view.examples
        sources, targets = examples.texts(view.part)
        assert targets is not None
        size = sum(len(text.encode()) for text in targets)
        record = trust.measure(lambda batch: self.logits(view.model, batch), view.batches(), size, level)
        generated = translated(view.model, examples.encoder, sources[:GENERATED])
        references = [[text] for text in targets[:GENERATED]]
        scores = {"bleu": corpus_bleu(generated, references).score, "chrf": chrf(generated, references)}
        exact = sum(
            text.strip() == reference[0].strip() for text, reference in zip(generated, references, strict=True)
        ) / len(references)
        record["metrics"] = scores | {"exact_match": exact} | record["metrics"]
        record["pairs"] = len(targets)
        return record

    def predictions(self, view: View, trust: TokenTrust, level: float | None = None) -> pd.DataFrame:
        """The translation of each source."""
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
        return [("loss", "nats per token", False), ("perplexity", "perplexity", True)]

    def facts(self, view: View, trust: TokenTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        metrics = record["metrics"]
        sentence = (
            f"BLEU {number(metrics['bleu'])} and chrF {number(metrics['chrf'])} on {number(record['pairs'])} unseen "
            f"pairs, {percent(metrics['exact_match'])} of them identical; sets of next tokens cover "
            f"{percent(record['conformal']['coverage'])}."
        )
        mistakes = self.worst(view, dataset.column_names[0])
        return self.token_facts(trust, record) | {
            "answers": "translation", "noun": "pairs", "verdict": sentence, "mistakes": mistakes, "long_rows": True,
        }  # fmt: skip

    def worst(self, view: View, column: str, most: int = 60, shown: int = 12) -> list[dict[str, Any]]:
        """The translations with the lowest BLEU."""
        examples: Any = view.examples
        sources, targets = (texts[:most] for texts in examples.texts(view.part))
        generated = translated(view.model, examples.encoder, sources)
        scores = [
            sentence_bleu(text, target).score if text.strip() and target.strip() else 0.0
            for text, target in zip(generated, targets, strict=True)
        ]
        order = sorted(range(len(scores)), key=lambda i: scores[i])[:shown]
        return [
            {
                "true": targets[i][:300],
                "predicted": generated[i][:300],
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
