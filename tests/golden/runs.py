"""Seven short runs over all kinds of data, and digests of what they leave.

    python -m tests.golden.runs > tests/golden/golden.json

A change of structure leaves the digests as they are. A change that is meant to move bits writes new ones in its commit.
config.json, times and the report are left out: they name versions and paths.
"""

import hashlib
import json
import os
import platform
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pandas as pd
import torch

import wonderland

WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "red",
    "mat",
    "and",
    "saw",
    "one",
    "old",
    "dog",
    "near",
    "my",
    "new",
    "house",
    "by",
    "some",
    "sea",
]
KEPT = ("metrics.jsonl", "model.safetensors", "preprocess.json", "preprocess.safetensors", "trust.json")


def machine() -> str:
    """What the bits depend on: kernels are chosen by the vector width of the processor."""
    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()} torch {torch.__version__}"


class Sources:
    """Small inputs, the same each time."""

    def __init__(self, folder: Path):
        self.folder, self.draw = folder, random.Random(0)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "corpus.txt").write_text(". ".join(self.sentence(9) for _ in range(600)))
        pairs = {side: [self.sentence(5) for _ in range(150)] for side in ("source", "target")}
        pd.DataFrame(pairs).to_csv(folder / "pairs.csv", index=False)
        rows = [
            (f"{self.sentence(6)} {'lovely' if i % 2 else 'awful'} {self.sentence(2)}", "pos" if i % 2 else "neg")
            for i in range(240)
        ]
        pd.DataFrame(rows, columns=["review", "label"]).to_csv(folder / "reviews.csv", index=False)

    def sentence(self, words: int) -> str:
        return " ".join(self.draw.choice(WORDS) for _ in range(words))

    def checkpoint(self) -> Path:
        """A small BERT with random weights, as transformers saves it."""
        from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
        from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

        folder, special = self.folder / "bert", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
        words.pre_tokenizer = pre_tokenizers.Whitespace()
        texts = [self.sentence(9) for _ in range(100)] + ["lovely awful"]
        words.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=special))
        words.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        names = {
            "pad_token": "[PAD]",
            "unk_token": "[UNK]",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "mask_token": "[MASK]",
        }
        fast = PreTrainedTokenizerFast(tokenizer_object=words, **names)
        torch.manual_seed(0)
        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
        config = BertConfig(vocab_size=fast.vocab_size, max_position_embeddings=64, **sizes)
        BertForMaskedLM(config).save_pretrained(folder)
        fast.save_pretrained(folder)
        return folder


def digest(path: Path) -> str:
    """The content of a file; digests of config.json inside it are left out, since that names versions and paths."""
    content = path.read_bytes()
    if path.name == "trust.json":
        content = json.dumps({k: v for k, v in json.loads(content).items() if k != "inputs"}, sort_keys=True).encode()
    if path.name == "model.safetensors":
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        header.pop("__metadata__", None)
        content = json.dumps(header, sort_keys=True).encode() + content[8 + size :]
    return hashlib.sha256(content).hexdigest()[:16]


def golden(folder: Path, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """Fit the seven runs and describe what they left."""
    sources = Sources(folder / "sources")
    runs: dict[str, tuple[Any, dict[str, Any]]] = {
        "digits": ("digits", {}),
        "iris": ("iris", {}),
        "diabetes": ("diabetes", {}),
        "corpus": (sources.folder / "corpus.txt", {}),
        "pairs": (sources.folder / "pairs.csv", {}),
        "reviews": (sources.folder / "reviews.csv", {}),
        "reviews_from": (sources.folder / "reviews.csv", {"method": "lora"}),
    }
    digests, metrics = {}, {}
    for name, (source, options) in runs.items():
        if only and name not in only:
            continue
        if name == "reviews_from":
            options = options | {"start": sources.checkpoint()}
        run = wonderland.fit(source, out=folder / name, steps=12, threads=1, **options)
        digests |= {f"{name}/{file}": digest(folder / name / file) for file in KEPT}
        metrics[name] = {key: value for key, value in run.metrics.items() if isinstance(value, float)}
    return {"machine": machine(), "digests": digests, "metrics": metrics}


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        json.dump(golden(Path(place)), sys.stdout, indent=1)
        print()
