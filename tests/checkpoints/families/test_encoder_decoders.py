"""BART and Marian: logits, gradients, padding, caches and the way back, equal to transformers."""

import json

import pytest
import torch
import transformers

from tests.checkpoints.families.oracle import VOCAB, answer, batch
from wonderland.checkpoints import load_pretrained, outline, save_pretrained
from wonderland.checkpoints.families import FAMILIES
from wonderland.core import WonderlandError

SIZES = {
    "d_model": 16, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 20, "decoder_ffn_dim": 12, "max_position_embeddings": 24, "vocab_size": VOCAB, "pad_token_id": 1,
    "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": None,
}  # fmt: skip
CASES = {
    "bart": ("Bart", "BartForConditionalGeneration", {}),
    "bart, scaled": ("Bart", "BartForConditionalGeneration", {"scale_embedding": True}),
    "marian": ("Marian", "MarianMTModel", {"scale_embedding": True, "activation_function": "swish"}),
    "marian, two vocabularies": (
        "Marian", "MarianMTModel", {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 23}
    ),
}  # fmt: skip


def made(name, folder, architecture=None):
    """A model of transformers with random weights, in evaluation mode, written to a folder."""
    stem, usual, options = CASES[name]
    torch.manual_seed(len(name))
    config = getattr(transformers, f"{stem}Config")(**{**SIZES, **options})
    model = getattr(transformers, architecture or usual)(config).eval()
    with torch.no_grad():
        for key, value in model.state_dict().items():
            if "embed_positions" not in key or stem == "Bart":
                value += 0.2 * torch.randn_like(value)
    model.save_pretrained(folder)
    return model


def texts(side="right"):
    tokens, mask = batch(3, "", side)
    tokens = tokens.masked_fill((tokens < 4) & mask, 4).masked_fill(~mask, 1)
    return tokens, mask, torch.randint(4, 20, (3, 6))


@pytest.mark.parametrize("name", CASES)
def test_logits_and_gradients_are_equal_and_it_goes_back(name, tmp_path):
    model = made(name, tmp_path / "there")
    loaded = load_pretrained(tmp_path / "there")
    tokens, mask, written = texts()
    expected = model(input_ids=tokens, attention_mask=mask.long(), decoder_input_ids=written).logits
    actual = loaded(tokens, written, mask)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    weight = torch.randn_like(expected)
    (expected * weight).sum().backward()
    (actual * weight).sum().backward()
    gradients = {key: value.grad for key, value in model.named_parameters() if value.grad is not None}
    compared = set()
    for key, parameter in loaded.named_parameters():
        conversion = FAMILIES[model.config.model_type].conversions(loaded, "lm")[key]
        for published, own in zip(conversion.names, conversion.to_published(parameter.grad), strict=True):
            torch.testing.assert_close(own, gradients[published], rtol=1e-4, atol=1e-4)
            compared.add(published)
    assert compared == set(gradients)

    save_pretrained(loaded, tmp_path / "back")
    back, told = type(model).from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not any(told.values()), told
    for key, value in model.state_dict().items():
        assert torch.equal(value, back.state_dict()[key]), key
    configs = [json.loads((tmp_path / place / "config.json").read_text()) for place in ("there", "back")]
    assert configs[0] == configs[1]


@pytest.mark.parametrize("name", ["bart", "marian"])
def test_padding_on_the_left_changes_nothing_and_a_state_continues(name, tmp_path):
    """transformers counts positions from the padding, so there each row is read alone."""
    model = made(name, tmp_path)
    loaded = load_pretrained(tmp_path)
    tokens, mask, written = texts("left")
    with torch.no_grad():
        rows = [
            model(input_ids=tokens[i : i + 1, mask[i]], decoder_input_ids=written[i : i + 1]).logits for i in range(3)
        ]
        torch.testing.assert_close(loaded(tokens, written, mask), torch.cat(rows), rtol=1e-5, atol=1e-5)
        state = loaded.prepare(tokens, mask)
        parts = []
        for piece in written.split([2, 1, 3], 1):
            logits, state = loaded.stream(piece, state)
            parts.append(logits)
        torch.testing.assert_close(torch.cat(parts, 1), torch.cat(rows), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("architecture", ["BartForSequenceClassification", "BartForQuestionAnswering", "BartModel"])
def test_the_other_heads_are_equal_and_go_back(architecture, tmp_path):
    model = made("bart", tmp_path / "there", architecture)
    loaded = load_pretrained(tmp_path / "there")
    tokens, _, _ = texts()
    tokens = tokens.masked_fill(tokens == 1, 5)
    tokens[:, -1] = 2
    with torch.no_grad():
        actual = loaded.features(tokens) if architecture == "BartModel" else loaded(tokens)
        torch.testing.assert_close(actual, answer(model(input_ids=tokens)), rtol=1e-5, atol=1e-5)
    save_pretrained(loaded, tmp_path / "back")
    back, told = type(model).from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not any(told.values()), told
    assert all(torch.equal(value, back.state_dict()[key]) for key, value in model.state_dict().items())


@pytest.mark.parametrize(("name", "title"), [("bart", "BART"), ("marian", "Marian")])
def test_an_unknown_option_is_refused_by_name(name, title, tmp_path):
    made(name, tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"extra_gate": 0.5}))
    with pytest.raises(WonderlandError) as error:
        outline(tmp_path)
    assert str(error.value) == (
        f"config.json has the option 'extra_gate' (0.5), which is not supported for {title}: "
        "without it the model would not be the same."
    )


def test_an_older_option_that_contradicts_is_refused(tmp_path):
    made("bart", tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"normalize_before": True}))
    with pytest.raises(WonderlandError) as error:
        outline(tmp_path)
    assert str(error.value) == (
        "config.json says normalize_before = true, but BART can be loaded only with false or null."
    )
