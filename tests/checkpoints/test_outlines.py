"""Outlines: what is known of a checkpoint from config.json and headers, equal to what loading gives."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.checkpoints.families.oracle import HEADS, make
from wonderland.checkpoints import load_classifier, load_pretrained, outline, save_pretrained
from wonderland.checkpoints.weights import WeightFiles
from wonderland.core import WonderlandError
from wonderland.generation.prompts import context

ARCHITECTURES = [(family, name) for family, names in HEADS.items() for name in (names[0], names[-1])]


@pytest.fixture
def no_reads(monkeypatch):
    """Reading a tensor fails."""

    def refuse(self, name):
        raise AssertionError(f"{name} was read")

    with monkeypatch.context() as patch:
        patch.setattr(WeightFiles, "read", refuse)
        yield patch


@pytest.mark.parametrize(("family", "architecture"), ARCHITECTURES)
def test_an_outline_is_what_loading_gives_and_reads_no_weights(family, architecture, tmp_path, no_reads):
    make(family, architecture, 1, tmp_path)
    planned = outline(tmp_path)
    no_reads.undo()
    model = load_pretrained(tmp_path)
    assert planned == model.origin
    assert planned.family == family
    assert planned.dtype == torch.float32
    assert planned.vocab == model.vocab
    assert planned.positions == context(model)
    assert planned.begin == getattr(model, "begin", None)
    assert planned.pad == 0


@pytest.mark.parametrize("family", HEADS)
@pytest.mark.parametrize("pad", [None, 3])
def test_the_outline_of_a_classifier_is_what_load_classifier_gives(family, pad, tmp_path, no_reads):
    make(family, HEADS[family][0], 1, tmp_path, pad_token_id=pad)
    planned = outline(tmp_path).classifier(4, pad=5)
    no_reads.undo()
    model = load_classifier(tmp_path, 4, pad=5)
    assert planned == model.origin
    assert planned.head == "sequence"
    assert planned.pad == model.pad == (5 if pad is None else pad)
    assert type(planned.spec.build()) is type(model)


def test_a_classifier_of_as_many_classes_stays_as_it_is(tmp_path):
    make("bert", "BertForMaskedLM", 1, tmp_path / "lm")
    save_pretrained(load_classifier(tmp_path / "lm", 3), tmp_path / "three")
    three = outline(tmp_path / "three")
    assert three.classifier(3) is three
    assert three.classifier(2).spec.arguments["classes"] == 2


def test_a_head_that_is_written_beside_a_tied_embedding_is_compared(tmp_path):
    make("gpt2", "GPT2LMHeadModel", 1, tmp_path, tie_word_embeddings=True)
    tensors = load_file(tmp_path / "model.safetensors")
    for difference, tied in ((0.0, True), (1.0, False)):
        head = tensors["transformer.wte.weight"] + difference
        save_file({**tensors, "lm_head.weight": head}, tmp_path / "model.safetensors", metadata={"format": "pt"})
        assert outline(tmp_path).spec.arguments["tie"] is tied


def test_an_outline_refuses_what_loading_refuses(tmp_path):
    make("gpt2", "GPT2LMHeadModel", 1, tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "n_positions": 5}))
    sentences = []
    for function in (outline, load_pretrained):
        with pytest.raises(WonderlandError) as error:
            function(tmp_path)
        sentences.append(str(error.value))
    assert sentences[0] == sentences[1]
    assert sentences[0].endswith("but config.json asks for [5, 32].")
