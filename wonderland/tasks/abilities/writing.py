"""Writing: the `generate` and `chat` abilities of language models."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.data.text.writer import Writer
from wonderland.generation import Constraint, beam_search, json_schema, matching, write
from wonderland.generation.prompts import context as positions
from wonderland.tasks.abilities.few_shot import FewShot, few_shot
from wonderland.tasks.token_trust import token_measures
from wonderland.trust.conformal import check_level


class Writing:
    """A language model that continues a prompt: `run.ability("generate")`, called with the prompt.

    >>> import wonderland
    >>> run = wonderland.load("runs/shakespeare")  # doctest: +SKIP
    >>> run.ability("generate")("ROMEO:", 100, temperature=0.8)  # doctest: +SKIP
    """

    temperature = 0.8  # default of the command line
    echoes = True  # the prompt is part of the text

    def __init__(self, run: Any):
        self.model: nn.Module = run.model
        self.encoder, self.task = run.encoder, run.task

    @property
    def tokenizer(self):
        """The tokenizer."""
        return self.encoder.tokenizer

    def __call__(self, prompt: str = "", count: int | None = None, **options: Any) -> str:
        """`generate`."""
        return self.generate(prompt, count, **options)

    def generate(self, prompt: str = "", count: int | None = None, **options: Any) -> str:
        """Generate at most `count` tokens after a prompt (default 200, or fewer where the model's context ends).

        Options: temperature (0 takes the most likely token), top_k, top_p, min_p, typical, repetition_penalty, seed; stop (a
        text, or a list of them, before which generation stops); `matches` (a regular expression) or `schema` (a JSON schema) that
        the new text matches; or beams, for beam search instead of sampling.
        """
        beams = options.pop("beams", None)
        if beams is None:
            return "".join(self.write(prompt, count, **options))
        stop, constraint = self._ends(options.pop("stop", ())), self._constraint(options, prompt)
        if options:
            raise WonderlandError(
                f"{next(iter(options))} is an option of sampling, and beams=... is beam search: give one of them."
            )
        given, pieces = [self.read(prompt)], self.pieces()
        count = self._count(count, given[0])
        (best,) = beam_search(self.model, given, count, beams=beams, stop=stop, pieces=pieces, constraint=constraint)
        writer = Writer([], strip=self._strips(prompt))
        return writer.feed(best.texts[0]) + writer.close()

    def write(self, prompt: str = "", count: int | None = None, *, stop: Any = (), **options: Any) -> Iterator[str]:
        """Stream `generate`: pieces of text as soon as their characters are complete."""
        return (text for text, _ in self.steps(prompt, count, stop=stop, **options) if text)

    def steps(
        self, prompt: str = "", count: int | None = None, *, stop: Any = (), **options: Any
    ) -> Iterator[tuple[str, str]]:
        """`write`, token by token: the characters that each completes, maybe none, and why the text ends, "" while it goes on."""
        given, ends, constraint = self.read(prompt), self._ends(stop), self._constraint(options, prompt)
        count = self._count(count, given)
        tokens = write(self.model, [given], count, stop=ends, pieces=self.pieces(), constraint=constraint, **options)
        return _text(tokens, strip=self._strips(prompt))

    def _strips(self, prompt: str) -> bool:
        """Whether to remove the space that some tokenizers write before the first word: after an empty prompt or a space."""
        return self.tokenizer.writer().strips and (not prompt or prompt[-1].isspace())

    def pieces(self) -> list[bytes]:
        """The bytes of each token; tokens of the model beyond the tokenizer's vocabulary have none."""
        pieces = self.tokenizer.pieces()
        return [*pieces, *[b""] * (self.task.vocab - len(pieces))]

    def _count(self, count: int | None, given: list[int]) -> int:
        if count is not None:
            return count
        limit = positions(self.model)
        return 200 if limit is None else max(1, min(200, limit - len(given) + 1))

    def room(self, count: int) -> int | None:
        """The longest prompt, in tokens, that leaves room for `count` new tokens; None without a limit."""
        limit = positions(self.model)
        return None if limit is None else max(1, limit - count + 1)

    def left_context(self, text: str, count: int) -> str:
        """The end of a text that fits into the model's context together with `count` new tokens."""
        room = self.room(count)
        while room is not None and len(self.read(text)) > room and len(text) > 1:
            text = text[-(len(text) * 9 // 10) :]
        return text

    def _ends(self, stop: Any) -> list[Any]:
        ends: list[Any] = [stop] if isinstance(stop, str) else list(stop)
        return ends if self.tokenizer.end is None else [*ends, self.tokenizer.end]

    def _constraint(self, options: dict[str, Any], prompt: str) -> Constraint | None:
        """The constraint on the generated text that the options describe; these options are removed."""
        pattern, schema = options.pop("matches", None), options.pop("schema", None)
        given = options.pop("constraint", None)
        if sum(option is not None for option in (pattern, schema, given)) > 1:
            raise WonderlandError("Give only one of matches, schema and constraint.")
        if pattern is not None:
            return matching(pattern, self.pieces(), strip=self._strips(prompt))
        return given if schema is None else json_schema(schema, self.pieces(), strip=self._strips(prompt))

    def unknown(self, text: str) -> int:
        """How many tokens of a text are not in the vocabulary."""
        return self.tokenizer.encode(text).count(self.tokenizer.unknown)  # pyright: ignore

    def few_shot(self, texts: Sequence[str], labels: Sequence[str], *, shots: int = 5, **options: Any) -> FewShot:
        """Classify texts by the likelihood of each label after a prompt with `shots` examples; options are those of `few_shot`."""
        return few_shot(
            self.model, self.tokenizer.encode, texts, labels, shots=shots, begin=self.encoder.frame, **options
        )

    def read(self, prompt: str) -> list[int]:
        """The tokens of a prompt after the start tokens of the tokenizer; a line end for an empty prompt without start tokens."""
        if not isinstance(prompt, str):
            raise WonderlandError(f"A prompt is text, not {type(prompt).__name__}.")
        tokens = [*self.encoder.frame, *self.tokenizer.encode(prompt)]
        if tokens:
            return tokens
        if prompt:
            raise WonderlandError("No character of the prompt is in the vocabulary of this model: write another one.")
        return self.tokenizer.encode("\n") or [0]

    def check(self, options: dict[str, Any], prompt: str) -> None:
        """Refuse command-line options that do not apply to this ability; a language model takes all of them."""

    def fitted(self, prompt: str, count: int | None) -> tuple[str, str]:
        """The part of a prompt that fits into the context, and a message if it was cut."""
        kept = self.left_context(prompt, 1 if count is None else max(1, count))
        if kept == prompt:
            return prompt, ""
        return (
            kept,
            f"the model has room for the last {len(kept):,} of {len(prompt):,} characters of the prompt, and reads these.",
        )


def show_token(tokenizer: Any, token: int) -> str:
    """A token as readable text."""
    if token >= tokenizer.vocab:
        return f"<{token}>"
    piece = tokenizer.pieces()[token]
    return piece.decode("utf-8", "replace") if piece else tokenizer.token(token)


def text_frame(task: Any, view: Any, trust: Any, level: float | None) -> pd.DataFrame:
    """The likelihood of each document of a view under a language model.

    Columns: `text` (its beginning), `tokens`, `loss` in nats per token, `bits_per_byte`, `perplexity`, `next` (the most likely
    continuation) and `set` (the next tokens that are plausible at `level`).
    """
    level = trust.level if level is None else check_level(level)
    threshold, encoder, model = trust.threshold(level), view.examples.encoder, view.model
    tokenizer, rows = encoder.tokenizer, []
    for text in view.examples.texts(view.part):
        ids = [*encoder.frame, *tokenizer.encode(text)]
        if not ids:
            rows.append({"text": text[:80], "tokens": 0, "loss": math.nan, "bits_per_byte": math.nan,
                         "perplexity": math.nan, "next": "", "set": []})  # fmt: skip
            continue
        nats, count, last = _read(model, ids)
        probabilities = (last / trust.temperature).softmax(-1)
        plausible = (probabilities >= threshold).nonzero()[:, 0]
        plausible = plausible[probabilities[plausible].argsort(descending=True)][:100]
        measures = token_measures(nats, count, len(text.encode())) if count else {}
        rows.append(
            {
                "text": text[:80],
                "tokens": count,
                "loss": measures.get("loss", math.nan),
                "bits_per_byte": measures.get("bits_per_byte", math.nan),
                "perplexity": measures.get("perplexity", math.nan),
                "next": show_token(tokenizer, int(probabilities.argmax())),
                "set": [show_token(tokenizer, int(i)) for i in plausible],
            }
        )
    if not any(row["text"] for row in rows):
        raise WonderlandError("There is no text to measure: the source is empty.")
    return pd.DataFrame(rows)


def _read(model: Any, ids: list[int]) -> tuple[float, int, Tensor]:
    """The summed loss of all tokens but the first in nats, their number, and the logits after the last token."""
    model.eval()
    nats, state, last = 0.0, None, None
    limit = positions(model)
    with torch.no_grad():
        for begin in range(0, len(ids), limit or 512):
            piece = torch.tensor([ids[begin : begin + (limit or 512)]])
            # A model with a limited context reads the text in independent windows of that length.
            logits, state = model.stream(piece, state if limit is None else None)
            log_probabilities = logits[0].log_softmax(-1)
            if last is not None:
                nats -= float(last.log_softmax(-1)[piece[0, 0]])
            nats -= float(log_probabilities[:-1].gather(1, piece[0, 1:, None]).sum(dtype=torch.float64))
            last = logits[0, -1]
    assert last is not None
    return nats, len(ids) - 1, last


def _text(tokens: Iterator[Any], *, strip: bool) -> Iterator[tuple[str, str]]:
    """The bytes of tokens as text; an incomplete character waits for its remaining bytes."""
    writer = Writer([], strip=strip)
    for token in tokens:
        text = writer.feed(token.text)
        yield text + (writer.close() if token.ended else ""), token.ended
