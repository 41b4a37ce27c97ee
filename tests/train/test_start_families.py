"""Every family of checkpoints through the command: classes of texts by each method, plain text, and pairs."""

from pathlib import Path

import pytest
import torch
import transformers

import wonderland
from tests.checkpoints.families.test_encoder_decoders import SIZES
from tests.checkpoints.families.test_more_families import CASES, GATED
from tests.kinds.pairs.test_kind import pairs
from tests.texts import labelled, rhyme
from wonderland import data
from wonderland.cli.main import main

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

VOCAB = 300
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
SMALL = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 48}
OTHERS = {
    "gpt2": ("GPT2LMHeadModel", SMALL),
    "llama": ("LlamaForCausalLM", GATED),
    "bert": ("BertForMaskedLM", dict(CASES[0][2])),
    "distilbert": ("DistilBertForMaskedLM", {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 20}),
    "mamba": ("MambaForCausalLM", {"hidden_size": 16, "num_hidden_layers": 1, "state_size": 4}),
    "rwkv": ("RwkvForCausalLM", {"hidden_size": 16, "num_hidden_layers": 2}),
    "t5": ("T5ForConditionalGeneration", {"d_model": 16, "d_kv": 8, "d_ff": 20, "num_layers": 1, "num_heads": 2}),
    "bart": ("BartForConditionalGeneration", SIZES),
    "marian": ("MarianMTModel", SIZES),
}
FAMILIES = {**OTHERS, **{stem.lower(): (stem + head, options) for stem, head, options in CASES}}
WRITERS = [name for name, (architecture, _) in FAMILIES.items() if architecture.endswith(("CausalLM", "LMHeadModel"))]


def checkpoint(name: str, folder: Path) -> Path:
    """A small checkpoint of a family with random weights, and a tokenizer that puts texts between tokens."""
    from tokenizers.processors import TemplateProcessing

    torch.manual_seed(0)
    texts = [rhyme(50), *(text for _, text in labelled(60)), *pairs(60)["source"], *pairs(60)["target"]]
    tokenizer = data.Tokenizer.train(texts, kind="bpe", vocab=VOCAB, specials=SPECIALS)
    before = "" if name in ("t5", "marian", *WRITERS) else "<s> "
    tokenizer._inner.post_processor = TemplateProcessing(
        single=f"{before}$A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.save(folder)
    architecture, options = FAMILIES[name]
    kind = getattr(transformers, architecture)
    ids = {
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "decoder_start_token_id": 1 if name == "marian" else 2,
    }
    kind(kind.config_class(**{**options, "vocab_size": VOCAB, **ids})).save_pretrained(folder)
    return folder


def fitted(source: Path, start: Path, method: str, out: Path):
    words = ["fit", str(source), "--from", str(start), "--method", method, "--steps", "2", "--quiet", "--out", str(out)]
    assert main(words) == 0
    return wonderland.load(out)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["head", "lora", "qlora", "full"])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_classifies(name, method, tmp_path):
    (tmp_path / "c").mkdir()
    start = checkpoint(name, tmp_path / "c")
    table = tmp_path / "topics.csv"
    table.write_text("label,text\n" + "".join(f"{label},{text}\n" for label, text in labelled(60)))
    run = fitted(table, start, method, tmp_path / "run")
    assert run.classes == ["animals", "food", "weather"]
    assert len(run.predict(["the fox was here"])) == 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lora", "qlora", "full"])
@pytest.mark.parametrize("name", WRITERS)
def test_every_decoder_learns_a_text_and_writes(name, method, tmp_path):
    (tmp_path / "c").mkdir()
    start = checkpoint(name, tmp_path / "c")
    (tmp_path / "rhyme.txt").write_text(rhyme(100))
    run = fitted(tmp_path / "rhyme.txt", start, method, tmp_path / "run")
    assert run.ability("generate")("The fox", count=3, seed=1)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("bart", "qlora"),
        *(pytest.param(name, "full", marks=pytest.mark.slow) for name in ("bart", "marian", "t5")),
        *(pytest.param(name, "lora", marks=pytest.mark.slow) for name in ("bart", "marian", "t5")),
    ],
)
def test_every_encoder_decoder_learns_pairs(name, method, tmp_path):
    (tmp_path / "c").mkdir()
    start = checkpoint(name, tmp_path / "c")
    pairs(60).to_csv(tmp_path / "pairs.csv", index=False)
    run = fitted(tmp_path / "pairs.csv", start, method, tmp_path / "run")
    assert run.encoder.pad == 1
    assert run.encoder.before == ([0] if name == "bart" else [])
    again = wonderland.load(run.folder)
    texts = pairs(3)["source"].tolist()
    assert again.predict(texts).equals(run.predict(texts))
