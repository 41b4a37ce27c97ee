"""Networks of images: a folder of transformers gives its logits, gradients and statistics here, and goes back as it came."""

import json

import pytest
import torch
import transformers

from wonderland import checkpoints
from wonderland.checkpoints.families import FAMILIES
from wonderland.core import WonderlandError

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

TRANSFORMER = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 16, "patch_size": 4}
CASES = {
    "resnet": ("ResNet", {"embedding_size": 8, "hidden_sizes": [16, 24], "depths": [2, 1]}),
    "resnet, basic": (
        "ResNet",
        {"embedding_size": 8, "hidden_sizes": [8, 12], "depths": [1, 2], "layer_type": "basic"},
    ),
    "regnet y": ("RegNet", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 2], "groups_width": 4}),
    "regnet x": (
        "RegNet",
        {"embedding_size": 6, "hidden_sizes": [8, 16], "depths": [1, 2], "groups_width": 16, "layer_type": "x"},
    ),
    "convnext": (
        "ConvNext",
        {"hidden_sizes": [8, 12], "depths": [1, 2], "num_stages": 2, "layer_scale_init_value": 0.5, "num_channels": 1},
    ),
    "vit": ("ViT", {**TRANSFORMER, "intermediate_size": 20, "hidden_act": "gelu_new"}),
    "dinov2": ("Dinov2", {**TRANSFORMER, "mlp_ratio": 2}),
    "dinov2 with registers": ("Dinov2WithRegisters", {**TRANSFORMER, "num_register_tokens": 3}),
}


def make(name: str, folder, *, head: str = "ForImageClassification"):
    torch.manual_seed(0)
    family, options = CASES[name]
    config = getattr(transformers, f"{family}Config")(**options, num_labels=5)
    model = getattr(transformers, f"{family}{head}")(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
        for key, value in model.named_buffers():
            if key.endswith("running_mean"):
                value.normal_()
            elif key.endswith("running_var"):
                value.uniform_(0.5, 2)
    model.save_pretrained(folder)
    return model


def images(name: str, side: int = 16):
    return torch.randn(3, CASES[name][1].get("num_channels", 3), side, side, generator=torch.Generator().manual_seed(1))


RENAMED = {
    "vit.layers.": "vit.encoder.layer.",
    "vit.encoder.layer.#.mlp.fc1": "vit.encoder.layer.#.intermediate.dense",
    "vit.encoder.layer.#.mlp.fc2": "vit.encoder.layer.#.output.dense",
    "attention.q_proj": "attention.attention.query",
    "attention.k_proj": "attention.attention.key",
    "attention.v_proj": "attention.attention.value",
    "attention.o_proj": "attention.output.dense",
}


def named(family: str, model, theirs) -> dict[str, torch.Tensor]:
    """Their tensors by our names, those that we stack stacked; in memory some have other names than on disk."""

    def on_disk(key: str) -> str:
        for before, after in RENAMED.items():
            for layer in "01":
                key = key.replace(before.replace("#", layer), after.replace("#", layer))
        return key

    theirs = {on_disk(key): value for key, value in theirs.items()}
    table = FAMILIES[family].conversions(model, "image")
    rows = {ours: [theirs[name] for name in entry.names if name in theirs] for ours, entry in table.items() if entry}
    return {ours: torch.cat(found) if len(found) > 1 else found[0] for ours, found in rows.items() if found}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(CASES))
def test_logits_gradients_and_statistics_are_theirs(name, training, tmp_path):
    theirs = make(name, tmp_path).train(training)
    ours = checkpoints.load_pretrained(tmp_path).train(training)
    x = images(name)
    expected = theirs(pixel_values=x).logits
    found = ours(x)
    assert torch.allclose(found, expected, atol=1e-4), float((found - expected).detach().abs().max())
    weight = torch.randn_like(expected)
    (expected * weight).sum().backward()
    (found * weight).sum().backward()
    family = json.loads((tmp_path / "config.json").read_text())["model_type"]
    gradients = named(family, ours, {key: value.grad for key, value in theirs.named_parameters()})
    assert set(gradients) == {key for key, _ in ours.named_parameters()}
    for key, value in gradients.items():
        mine = dict(ours.named_parameters())[key].grad
        assert torch.allclose(mine.reshape(value.shape), value, atol=1e-4, rtol=1e-4), key
    for key, value in named(family, ours, dict(theirs.named_buffers())).items():
        assert torch.allclose(ours.state_dict()[key], value, atol=1e-5), key


@pytest.mark.parametrize("name", sorted(CASES))
def test_weights_go_back_as_they_came(name, tmp_path):
    theirs = make(name, tmp_path / "there")
    ours = checkpoints.load_pretrained(tmp_path / "there")
    checkpoints.save_pretrained(ours, tmp_path / "back")
    back, told = type(theirs).from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not any(told.values()), told
    for key, value in theirs.state_dict().items():
        if not key.endswith("mask_token"):  # which only pretraining reads
            assert torch.equal(value, back.state_dict()[key]), key
    assert json.loads((tmp_path / "there/config.json").read_text()) == json.loads(
        (tmp_path / "back/config.json").read_text()
    )


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_model_that_was_built_here_is_written(name, tmp_path):
    make(name, tmp_path / "there")
    ours = checkpoints.load_pretrained(tmp_path / "there")
    del ours.origin
    checkpoints.save_pretrained(ours, tmp_path / "back")
    back = getattr(transformers, f"{CASES[name][0]}ForImageClassification").from_pretrained(tmp_path / "back").eval()
    x = images(name)
    with torch.no_grad():
        assert torch.allclose(back(pixel_values=x).logits, ours(x), atol=1e-5)


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_trunk_gets_a_new_head(name, tmp_path):
    theirs = make(name, tmp_path, head="Model").eval()
    trunk = checkpoints.load_pretrained(tmp_path)
    x = images(name)
    with torch.no_grad():
        answer = theirs(pixel_values=x)
        pooled = trunk.features(x)
        if CASES[name][0] in ("ResNet", "RegNet", "ConvNext"):
            assert torch.allclose(pooled, answer.pooler_output.flatten(1), atol=1e-4)
        else:
            assert torch.allclose(pooled[:, :16], answer.last_hidden_state[:, 0], atol=1e-4)
        headed = checkpoints.load_classifier(tmp_path, 7)
        assert headed(x).shape == (3, 7)
        assert torch.allclose(headed.features(x), pooled, atol=1e-6)


def test_dinov2_reads_images_of_another_size_as_theirs_does(tmp_path):
    theirs = make("dinov2", tmp_path).eval()
    ours = checkpoints.load_pretrained(tmp_path)
    x = images("dinov2", side=24)
    with torch.no_grad():
        assert torch.allclose(ours(x), theirs(pixel_values=x).logits, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"hidden_sizes": [16, 0]},
            "config.json says hidden_sizes = [16, 0], but ResNet can be loaded only with a list of at most 16 whole numbers from "
            "1 to 16,777,216.",
        ),
        (
            {"hidden_sizes": [16, 18]},
            "config.json says hidden_sizes = [16, 18], but ResNet can be loaded only with multiples of 4, since bottlenecks are "
            "four times narrower inside.",
        ),
        ({"hidden_act": "gelu"}, "config.json says hidden_act = 'gelu', but ResNet can be loaded only with 'relu'."),
        (
            {"depths": [900, 900]},
            "asks for 1,800 layers, but there are only 74 tensors: the weights and config.json do not belong together.",
        ),
    ],
)
def test_options_that_cannot_be_are_refused(change, sentence, tmp_path):
    make("resnet", tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(WonderlandError) as error:
        checkpoints.outline(tmp_path)
    assert sentence in str(error.value)
