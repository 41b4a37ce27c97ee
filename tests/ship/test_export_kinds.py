"""Export of each kind of run: the file is run on odd inputs and answers as predict does."""

import json
from types import SimpleNamespace

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from PIL import Image

import wonderland
from tests.runs import digits
from wonderland.core import Spec, WonderlandError
from wonderland.ship import export
from wonderland.ship.exporting import said
from wonderland.ship.huggingface import without_dropout


def session_of(made):
    return onnxruntime.InferenceSession(made.files[0], providers=["CPUExecutionProvider"])


def test_images_of_any_size_are_fitted_inside(tmp_path):
    run = digits()
    session = session_of(export(run, "onnx", tmp_path / "model.onnx"))
    pictures = np.random.default_rng(1).integers(0, 256, (5, 31, 77, 3), dtype=np.uint8)
    prediction, _, probabilities, _ = session.run(None, {"image": pictures})
    for i, picture in enumerate(pictures):
        Image.fromarray(picture).save(tmp_path / f"{i}.png")
    expected = run.predict([tmp_path / f"{i}.png" for i in range(5)])
    assert prediction.tolist() == expected["prediction"].tolist()
    columns = expected[[f"p({name})" for name in run.classes]].to_numpy()
    assert np.abs(probabilities - columns).max() < 1e-5


@pytest.mark.slow
def test_images_in_colour_numbers_and_several_labels(tmp_path):
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (120, 24, 20, 3), dtype=np.uint8)
    values = pixels.mean((1, 2, 3)).astype(float)
    run = wonderland.fit((pixels, values), out=tmp_path / "numbers", steps=5)
    assert export(run, "onnx", tmp_path / "numbers.onnx").difference < 1e-5
    for i in range(60):
        Image.fromarray(pixels[i, : 12 + i % 7]).save(tmp_path / f"{i}.png")
    labels = [";".join(name for name in "abc" if generator.random() < 0.5) for _ in range(60)]
    pd.DataFrame({"path": [f"{i}.png" for i in range(60)], "labels": labels}).to_csv(tmp_path / "list.csv", index=False)
    run = wonderland.fit(tmp_path / "list.csv", out=tmp_path / "labels", steps=5, kind="image")
    made = export(run, "onnx", tmp_path / "labels.onnx", quantize="int8")
    assert made.difference < 1e-5
    assert made.notes[-1].startswith("Quantized from ")
    assert export(run, "torch", tmp_path / "labels.pt2").difference < 1e-5


def sentences(rows=80, seed=0):
    generator = np.random.default_rng(seed)
    words = np.array(
        ["the", "a", "good", "bad", "fine", "awful", "film", "plot", "actor", "scene", "very", "quite", "not", "never"]
    )
    drawn = [generator.choice(words, generator.integers(3, 15)).tolist() for _ in range(rows)]
    return pd.DataFrame(
        {"text": [" ".join(row) for row in drawn], "label": ["yes" if "good" in row else "no" for row in drawn]}
    )


def test_texts_are_token_ids_and_features_with_the_tokenizer_beside(tmp_path):
    run = wonderland.fit(sentences(), "label", out=tmp_path / "run", steps=4, kind="text")
    made = export(run, "onnx", tmp_path / "model.onnx")
    assert made.difference < 1e-5
    assert [path.name for path in made.files] == ["model.onnx", "tokenizer.json", "features.safetensors"]
    tokenizers = pytest.importorskip("tokenizers")
    ids = tokenizers.Tokenizer.from_file(str(made.files[1])).encode("a good film", add_special_tokens=False).ids
    inputs = {value.name for value in session_of(made).get_inputs()}
    assert inputs == {"tokens", "features", "weights"}
    assert run.encoder.tokens_of([("a good film",)])[0, :3].tolist() == ids


@pytest.mark.slow
@pytest.mark.parametrize("model", ["TextLinear", "TextCNN", "BiRNN"])
def test_models_of_texts(tmp_path, model):
    run = wonderland.fit(sentences(), "label", out=tmp_path / "run", steps=4, kind="text", model=model)
    assert export(run, "onnx", tmp_path / "model.onnx", quantize="int8").difference < 1e-5
    assert export(run, "torch", tmp_path / "model.pt2").difference < 1e-5


@pytest.mark.slow
def test_pairs_of_sentences(tmp_path):
    columns = {
        "premise": sentences(90)["text"],
        "hypothesis": sentences(90, 1)["text"],
        "label": ["yes", "no", "maybe"] * 30,
    }
    run = wonderland.fit(pd.DataFrame(columns), out=tmp_path / "run", steps=4)
    assert export(run, "onnx", tmp_path / "model.onnx", quantize="int8").difference < 1e-5
    assert export(run, "torch", tmp_path / "model.pt2").difference < 1e-5


def language_run(folder, **options):
    (folder / "corpus.txt").write_text("the cat sat on the mat and the dog ran to the big red house. " * 60)
    return wonderland.fit(folder / "corpus.txt", out=folder / "run", steps=3, kind="corpus", **options)


def generated(session, run, prompt, count):
    """Greedy text by the graph that continues after a state, from the description of the state in the file."""
    about = json.loads(session.get_modelmeta().custom_metadata_map["wonderland.state"])
    state = {
        name: np.full([1 if size == "rows" else size for size in slot["shape"]], slot["fill"], slot["type"])
        for name, slot in about.items()
    }
    ids, new = list(prompt), np.array([prompt])
    for _ in range(count):
        logits, *values = session.run(None, {"tokens": new, **state})
        ids.append(int(logits[0, -1].argmax()))
        state, new = dict(zip(about, values, strict=True)), np.array([ids[-1:]])
    return ids


def test_a_language_model_continues_token_by_token(tmp_path):
    run = language_run(tmp_path, model="Decoder(dim=16, depth=1, mixer=GRU())")
    made = export(run, "onnx", tmp_path / "model.onnx")
    assert made.difference < 1e-5
    assert [path.name for path in made.files] == ["model.onnx", "model.step.onnx", "tokenizer.json"]
    prompt = run.encoder.tokenizer.encode("the cat")
    session = onnxruntime.InferenceSession(made.files[1], providers=["CPUExecutionProvider"])
    ids = generated(session, run, prompt, 5)
    with torch.no_grad():
        logits = run.model(torch.tensor([ids]))
    assert ids[len(prompt) :] == logits[0, len(prompt) - 1 : -1].argmax(-1).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("mixer", ["Attention", "Mamba", "RWKV", "S4D", "S5", "LRU", "LSTM", "LinearAttention", "AFT"])
def test_language_models_of_every_mixer(tmp_path, mixer):
    run = language_run(tmp_path, model=f"Decoder(dim=16, depth=2, mixer={mixer}())")
    assert export(run, "onnx", tmp_path / "model.onnx").difference < 1e-5
    assert export(run, "torch", tmp_path / "model.pt2").difference < 1e-5


def shops(steps=150):
    generator = np.random.default_rng(0)
    days = pd.date_range("2024-01-01", periods=steps)
    wave = np.sin(np.arange(steps) * 2 * np.pi / 7)
    tables = [
        pd.DataFrame({"date": days, "shop": name, "sold": 10 * (i + 1) + wave + generator.normal(0, 0.3, steps)})
        for i, name in enumerate("ab")
    ]
    return pd.concat(tables, ignore_index=True)


def test_series_in_the_scale_of_the_data_with_intervals(tmp_path):
    named = {"kind": "series", "series": "shop", "horizon": 3, "model": "DLinear"}
    run = wonderland.fit(shops(), "sold", out=tmp_path / "run", steps=3, **named)
    made = export(run, "onnx", tmp_path / "model.onnx")
    assert made.difference < 1e-5
    session = session_of(made)
    assert [value.name for value in session.get_inputs()] == ["context", "times", "series"]
    assert [value.shape[1:] for value in session.get_outputs()] == [[3, 1]] * 3


@pytest.mark.slow
@pytest.mark.parametrize("model", [None, "ForecastBlend", "TCN", "SequenceForecaster"])
def test_models_of_series(tmp_path, model):
    named = {"kind": "series", "series": "shop", "horizon": 3} | ({"model": model} if model else {})
    run = wonderland.fit(shops(), "sold", out=tmp_path / "run", steps=3, **named)
    assert export(run, "onnx", tmp_path / "model.onnx", quantize="int8").difference < 1e-5
    assert export(run, "torch", tmp_path / "model.pt2").difference < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gym:CartPole-v1", "gym:Pendulum-v1"])
def test_policies_act_on_observations(tmp_path, name):
    run = wonderland.fit(name, out=tmp_path / "run", steps=2)
    assert export(run, "onnx", tmp_path / "model.onnx").difference < 1e-5


@pytest.mark.slow
def test_a_folder_for_transformers_has_equal_logits_and_tokens(tmp_path):
    transformers = pytest.importorskip("transformers")
    from wonderland.checkpoints import load_pretrained

    options = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.LlamaConfig(vocab_size=20, max_position_embeddings=64, **options)
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "tiny")
    spec = load_pretrained(tmp_path / "tiny").origin.spec
    arguments = {name: value for name, value in spec.arguments.items() if name != "vocab"}
    run = language_run(tmp_path, model=type(spec)(spec.name, arguments))
    made = export(run, "huggingface", tmp_path / "folder")
    assert made.difference < 1e-5
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "folder")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "folder")
    ids = tokenizer("the cat sat", return_tensors="pt").input_ids
    assert ids[0].tolist() == run.encoder.tokenizer.encode("the cat sat")
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits, run.model(ids), atol=1e-5, rtol=1e-4)


def test_a_model_of_no_family_is_refused_in_a_sentence(tmp_path):
    run = language_run(tmp_path, model="Decoder(dim=16, depth=1, mixer=GRU())")
    with pytest.raises(WonderlandError, match=r"^This Decoder is none of the families that transformers reads"):
        export(run, "huggingface", tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_dropout_of_several_members_is_taken_out_of_each():
    members = Spec(
        "models.TableNet",
        {"numbers": 2, "levels": [], "outputs": 1, "dim": 8, "sigmas": [0.1, 0.7], "dropout": [0.1, 0.1]},
    )
    run = SimpleNamespace(recipe=SimpleNamespace(model=members), model=members.build())
    assert not without_dropout(run).dropout.active


def test_what_the_exporter_cannot_write_is_a_sentence():
    with pytest.raises(WonderlandError) as error, said():
        raise RuntimeError("no such operator\nand a long story")
    assert str(error.value) == (
        "This model cannot be exported: torch's exporter cannot write a part of it (no such operator)."
    )
