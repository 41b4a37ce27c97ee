"""Vectors of examples: what a run or a checkpoint computes before its last layer, as files that are searched for neighbours."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor, nn

from wonderland import checkpoints
from wonderland.checkpoints.pooling import pooling_of
from wonderland.core import WonderlandError, write_bytes
from wonderland.core.limits import check
from wonderland.data.text.sources import read_documents
from wonderland.data.text.tokenizer import Tokenizer
from wonderland.nn import Pool
from wonderland.ship.run import Run, load

LONGEST = 512  # tokens of a text, where a checkpoint has no limit of its own
CHUNK = 1024


class Embedded(NamedTuple):
    """Vectors (n, d) of length 1, their texts, and the run or checkpoint that they come from."""

    vectors: ndarray
    texts: list[str]
    source: str


class Embedder:
    """Texts to vectors of length 1, by the run or the checkpoint of the transformers library in a folder.

    A checkpoint pools as its sentence-transformers files say, and takes the mean of all tokens where there are none.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder).expanduser().absolute()
        if not self.folder.is_dir():
            raise WonderlandError(f"{folder} is neither the folder of a run nor of a checkpoint.")
        self.run = load(self.folder) if (self.folder / "trust.json").exists() else None
        if self.run is None:
            self._load_checkpoint()

    def _load_checkpoint(self) -> None:
        if not (self.folder / "tokenizer.json").is_file():
            raise WonderlandError(
                f"{self.folder} is no finished run, and no checkpoint with a tokenizer.json: texts cannot be read with it."
            )
        self.tokenizer = Tokenizer.load(self.folder)
        outline = checkpoints.outline(self.folder)
        pads = (outline.pad, self.tokenizer.pad, self.tokenizer.end, 0)
        self.pad = next(pad for pad in pads if pad is not None)
        self.model = checkpoints.load_classifier(self.folder, 1, pad=self.pad).eval()
        if not callable(getattr(self.model, "vectors", None)):
            raise WonderlandError(f"The checkpoint in {self.folder} does not read texts.")
        if pooling_of(self.folder) is None:
            self.model.at, self.model.pool = None, Pool(self.model.dim)
        self.length = min(LONGEST, outline.positions or LONGEST)

    def __call__(self, texts: Sequence[str]) -> ndarray:
        """The vectors of texts: (n, d)."""
        if isinstance(texts, str) or not len(texts) or not all(isinstance(text, str) for text in texts):
            raise WonderlandError("Vectors are computed of a list of texts with at least one of them.")
        if self.run is not None:
            return embed(self.run, list(texts))
        with torch.inference_mode():
            pieces = [self.model.vectors(self._tokens(texts[i : i + CHUNK])) for i in range(0, len(texts), CHUNK)]
            return nn.functional.normalize(torch.cat(pieces).float(), dim=1).numpy()

    def _tokens(self, texts: Sequence[str]) -> Tensor:
        before, after = self.tokenizer.surrounding_tokens
        room = self.length - len(before) - len(after)
        rows = [[*before, *ids[:room], *after] or [self.pad] for ids in self.tokenizer.encode_batch(list(texts))]
        tokens = torch.full((len(rows), max(map(len, rows))), self.pad)
        for row, ids in enumerate(rows):
            tokens[row, : len(ids)] = torch.tensor(ids)
        return tokens


def embed(run: Run, source: Any) -> ndarray:
    """The vectors of all examples of a source, of length 1: what the model computes before its last layer (n, d)."""
    model: Any = run.model
    if not callable(getattr(model, "vectors", None)):
        raise WonderlandError(f"{type(model).__name__}, the model of {run.folder}, gives no vectors of its examples.")
    dataset = run.encoder.open(source, need_target=False)
    examples = run.encoder.examples(dataset)
    model.eval()
    with torch.inference_mode():
        pieces = [model.vectors(batch["x"]) for batch in examples.in_order(examples.everything(), size=CHUNK)]
    return nn.functional.normalize(torch.cat(pieces).float(), dim=1).numpy()


def texts_of(source: str, column: str | None = None) -> list[str]:
    """The texts of a source: lines of a text file, the documents of a folder, a column of a table, or a field of JSON lines."""
    documents = read_documents(source, column=column, lines=os.path.isfile(source))
    texts = list(documents.documents())
    if not texts:
        raise WonderlandError(f"{source} holds no texts.")
    return texts


def write_vectors(path: str | Path, embedded: Embedded) -> None:
    """Write vectors as .npy, and beside them the texts as .jsonl, whose first line names the source."""
    path = Path(path)
    if path.suffix.lower() != ".npy":
        raise WonderlandError(f"Vectors are written as a .npy file, not {path.suffix or path.name}.")
    head = {"source": embedded.source, "count": len(embedded.texts), "dim": embedded.vectors.shape[1]}
    lines = [json.dumps(head), *(json.dumps({"text": text}, ensure_ascii=False) for text in embedded.texts)]
    write_bytes(path.with_suffix(".jsonl"), ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))
    write_bytes(path, _npy(embedded.vectors))


def _npy(vectors: ndarray) -> bytes:
    import io

    file = io.BytesIO()
    np.save(file, np.ascontiguousarray(vectors, np.float32), allow_pickle=False)
    return file.getvalue()


def read_vectors_file(path: str | Path) -> Embedded:
    """Vectors and texts from `write_vectors`; a .npy file of one's own has no texts and no source."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise WonderlandError(f"There is no file {path}: wonderland embed RUN TEXTS -o vectors.npy writes one.")
    check("encoder_tensor_bytes", path.stat().st_size, path)
    try:
        vectors = np.load(path, allow_pickle=False)
        if (
            not isinstance(vectors, ndarray)
            or vectors.ndim != 2
            or vectors.dtype.kind not in "fiu"
            or 0 in vectors.shape
        ):
            raise ValueError
    except (ValueError, OSError, EOFError) as error:
        raise WonderlandError(f"{path} does not hold vectors (n, d): it is damaged or not a .npy file.") from error
    beside = path.with_suffix(".jsonl")
    if not beside.is_file():
        return Embedded(vectors, [], "")
    check("texts_bytes", beside.stat().st_size, beside)
    try:
        rows = [
            json.loads(line) for line in beside.read_text(encoding="utf-8", errors="surrogatepass").split("\n") if line
        ]
        source, texts = str(rows[0]["source"]), [str(row["text"]) for row in rows[1:]]
        if len(texts) != len(vectors):
            raise ValueError
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise WonderlandError(f"{beside} does not hold the texts of {path.name}: one of them was changed.") from error
    return Embedded(vectors, texts, source)
