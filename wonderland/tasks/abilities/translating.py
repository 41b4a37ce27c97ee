"""Translating: the `generate` ability of encoder-decoder models."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.generation import beam_search, generate


class Translating:
    """A model that translates a text: `run.ability("generate")`, called with the text."""

    temperature = None  # greedy decoding unless a temperature is given
    echoes = False

    def __init__(self, run: Any):
        self.model: nn.Module = run.model
        self.encoder = run.encoder

    def __call__(self, text: str, **options: Any) -> str:
        """The translation of a text. Options are those of generation: temperature (default 0), top_k, seed ...; or beams, for beam
        search with that many beams.
        """
        if not isinstance(text, str):
            raise WonderlandError(f"Translating takes a text, not a {type(text).__name__}.")
        return translated(self.model, self.encoder, [text], **options)[0]

    def write(self, prompt: str, count: int | None = None, **options: Any) -> Iterator[str]:
        """The translation as an iterator of one text."""
        yield self(prompt, **options)

    def generate(self, prompt: str, count: int | None = None, **options: Any) -> str:
        """The translation."""
        return self(prompt, **options)

    def check(self, options: dict[str, Any], prompt: str) -> None:
        """Refuse command-line options that do not apply to this ability."""
        for name in ("count", "stop", "matches", "schema"):
            if options.get(name) is not None:
                raise WonderlandError(f"--{name} is for language models, and this run is a translator.")
        if not prompt.strip():
            raise WonderlandError("There is no text to translate: give it with --prompt.")

    def fitted(self, prompt: str, count: int | None) -> tuple[str, str]:
        """All of a prompt is read."""
        return prompt, ""

    def unknown(self, text: str) -> int:
        """Unknown words are not counted."""
        return 0


def translated(model: nn.Module, encoder: Any, texts: list[str], *, rows: int = 64, **options: Any) -> list[str]:
    """The translations of texts, by greedy decoding unless options say otherwise."""
    beams = options.pop("beams", None)
    if beams is not None and options:
        raise WonderlandError(
            f"{next(iter(options))} is an option of sampling, and beams=... is beam search: give one of them."
        )
    options = {"temperature": 0.0} | options
    tokenizer, translations = encoder.tokenizer, []
    model.eval()
    count = max(1, 2 * encoder.write)
    table = getattr(getattr(model, "position", None), "length", None)  # of a model whose positions are a table
    count = count if table is None else min(count, table)
    for first in range(0, len(texts), rows):
        sources = texts[first : first + rows]
        x = encoder.encode_sources(sources)
        with torch.no_grad():
            state = model.prepare(x, x != encoder.pad)  # pyright: ignore
        prompts, stop = [[encoder.begin]] * len(sources), [tokenizer.end]
        if beams is None:
            tokens = generate(model, prompts, count, state=state, stop=stop, **options).tokens
        else:
            tokens = [
                beams_of_row.tokens[0]
                for beams_of_row in beam_search(model, prompts, count, beams=beams, state=state, stop=stop)
            ]
        translations += [tokenizer.decode(ids) for ids in tokens]
    return translations
