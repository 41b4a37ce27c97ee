"""Images from a checkpoint: a new head on a network of transformers, all of it, its head or an adapter learning."""

import json

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

import wonderland
from wonderland.cli.main import main
from wonderland.core import WonderlandError

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder, draw = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for name, colour in {"red": (200, 40, 40), "blue": (40, 40, 200)}.items():
        (folder / name).mkdir()
        for index in range(24):
            pixels = np.clip(np.array(colour) + draw.normal(0, 30, (20, 24, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{index}.png")
    return folder


@pytest.fixture(scope="module")
def vit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vit")
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=4,
        num_labels=7,
    )  # fmt: skip
    transformers.ViTForImageClassification(config).save_pretrained(folder)
    settings = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.25, 0.25], "size": {"height": 16, "width": 16}}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize("method", ["full", "head", "lora"])
def test_a_checkpoint_gets_a_new_head(photos, vit, method, tmp_path):
    words = ["fit", str(photos), "--from", str(vit), "--method", method, "--steps", "40", "--quiet"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 0
    run = wonderland.load(tmp_path / "run")
    assert run.metrics["accuracy"] >= 0.4
    spec = json.loads((tmp_path / "run/config.json").read_text())["recipe"]["model"]
    assert spec["part"] == "models.ViT"
    assert spec["arguments"]["classes"] == 2
    assert spec["arguments"]["mean"] == [0.5, 0.5, 0.5]
    before = wonderland.checkpoints.load_pretrained(vit).state_dict()
    after = run.model.state_dict()
    same = torch.equal(before["stack.blocks.0.channel.inward.weight"], after["stack.blocks.0.channel.inward.weight"])
    assert same == (method == "head")
    assert len(run.predict(photos / "red")) == 24
    report = (tmp_path / "run/report.html").read_text()
    assert "<h3>Attention</h3>" in report
    assert report.count('alt="attention map"') > 0


def test_an_adapter_needs_linear_layers(photos, tmp_path):
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1], layer_type="basic")
    transformers.ResNetForImageClassification(config).save_pretrained(tmp_path / "resnet")
    with pytest.raises(WonderlandError) as error:
        wonderland.fit(photos, start=str(tmp_path / "resnet"), method="lora", steps=2, size=16, out=tmp_path / "run")
    assert str(error.value) == (
        f"lora adapts linear layers, and the checkpoint in {tmp_path / 'resnet'} has convolutions: take method full or head."
    )
    run = wonderland.fit(photos, start=str(tmp_path / "resnet"), method="head", steps=2, size=16, out=tmp_path / "head")
    assert run.metrics["accuracy"] >= 0


def test_method_needs_a_checkpoint(photos):
    with pytest.raises(WonderlandError, match="method says how a checkpoint is tuned: name the checkpoint with start"):
        wonderland.fit(photos, method="head")


def test_a_checkpoint_of_text_is_refused(photos, tmp_path):
    transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=9)).save_pretrained(
        tmp_path
    )
    with pytest.raises(WonderlandError, match="reads text, not images"):
        wonderland.fit(photos, start=str(tmp_path))


def test_an_augmentation_is_named_as_a_call(photos, tmp_path):
    words = ["fit", str(photos), "--augment", "PhotoAugment(crop=0.3, flip=0.5, policy=2)", "--steps", "4", "--quiet"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 0
    spec = json.loads((tmp_path / "run/config.json").read_text())["recipe"]["augment"]
    assert spec == {"part": "data.PhotoAugment", "arguments": {"crop": 0.3, "flip": 0.5, "policy": 2}}
    with pytest.raises(WonderlandError, match=r"cannot be used here"):
        wonderland.fit(photos, augment="ResNet()")
    with pytest.raises(WonderlandError, match="PhotoAugment's crop must be a number from 0 to 1, not 3"):
        wonderland.fit(photos, augment="PhotoAugment(crop=3)")


def test_rates_by_depth_and_gradual_unfreezing(photos, vit, tmp_path):
    options = {"start": vit, "steps": 6, "threads": 1, "depth_decay": 0.5, "unfreeze": 0.5}
    run = wonderland.fit(photos, out=tmp_path / "run", **options)
    assert run.recipe.learner.arguments == {"depth_decay": 0.5, "unfreeze": 0.5}
    with pytest.raises(WonderlandError, match=r"^unfreeze is for a checkpoint that learns in full: name it with start"):
        wonderland.fit(photos, out=tmp_path / "no", steps=2, unfreeze=0.5)
