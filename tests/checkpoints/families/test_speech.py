"""Whisper and Wav2Vec2: features, logits, gradients, padding, greedy texts and the way back, equal to transformers."""

import json

import numpy as np
import pytest
import torch
import transformers

from wonderland.checkpoints import load_pretrained, outline, save_pretrained
from wonderland.checkpoints.families import FAMILIES
from wonderland.core import WonderlandError
from wonderland.models import SpeechRecogniser, Wav2Vec2, Whisper, speech_features

WHISPER = {
    "vocab_size": 40, "d_model": 16, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 20, "decoder_ffn_dim": 12, "num_mel_bins": 8, "max_source_positions": 15,
    "max_target_positions": 24, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3,
    "suppress_tokens": None, "begin_suppress_tokens": None,
}  # fmt: skip
WAV2VEC2 = {
    "vocab_size": 12, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20,
    "conv_dim": [6, 8], "conv_kernel": [10, 3], "conv_stride": [5, 2], "num_conv_pos_embeddings": 5,
    "num_conv_pos_embedding_groups": 2, "pad_token_id": 3,
}  # fmt: skip
CASES = {
    "norm over time": {},
    "norm over channels": {"feat_extract_norm": "layer", "do_stable_layer_norm": True, "conv_bias": True},
    "even positions": {"num_conv_pos_embeddings": 4, "mask_time_prob": 0.0},
}


def made(architecture, options, folder):
    """A model of transformers with random weights, in evaluation mode, written to a folder."""
    torch.manual_seed(0)
    config = (transformers.WhisperConfig if "Whisper" in architecture else transformers.Wav2Vec2Config)(**options)
    model = getattr(transformers, architecture)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    return model


def compare_gradients(model, loaded, head):
    gradients = {name: value.grad for name, value in model.named_parameters() if value.grad is not None}
    compared = set()
    for name, parameter in loaded.named_parameters():
        conversion = FAMILIES[model.config.model_type].conversions(loaded, head)[name]
        for published, own in zip(conversion.names, conversion.to_published(parameter.grad), strict=True):
            # The table of Whisper's encoder is not trained there, and a bias of keys has no gradient.
            if published in gradients:
                torch.testing.assert_close(own, gradients[published], rtol=1e-4, atol=1e-4)
                compared.add(published)
            elif not published:
                assert own.abs().max() < 1e-4
    assert compared == set(gradients)


def goes_back(model, loaded, tmp_path):
    save_pretrained(loaded, tmp_path / "back")
    back, told = type(model).from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not any(told.values()), told
    assert all(torch.equal(value, back.state_dict()[name]) for name, value in model.state_dict().items())
    configs = [json.loads((tmp_path / place / "config.json").read_text()) for place in ("there", "back")]
    assert configs[0] == configs[1]


def test_whisper_is_equal_and_goes_back(tmp_path):
    model = made("WhisperForConditionalGeneration", WHISPER, tmp_path / "there")
    loaded = load_pretrained(tmp_path / "there")
    features, tokens = torch.randn(2, 8, 30), torch.randint(40, (2, 6))
    expected, actual = model(input_features=features, decoder_input_ids=tokens).logits, loaded(features, tokens)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    weight = torch.randn_like(expected)
    (expected * weight).sum().backward()
    (actual * weight).sum().backward()
    compare_gradients(model, loaded, "lm")
    goes_back(model, loaded, tmp_path)


def test_whisper_streams_and_writes_what_transformers_writes(tmp_path):
    model = made("WhisperForConditionalGeneration", WHISPER, tmp_path)
    loaded = load_pretrained(tmp_path)
    assert isinstance(loaded, Whisper)
    features, tokens = torch.randn(2, 8, 30), torch.randint(40, (2, 6))
    with torch.no_grad():
        state, parts = loaded.prepare(features), []
        for piece in tokens.split([2, 1, 3], 1):
            logits, state = loaded.stream(piece, state)
            parts.append(logits)
        torch.testing.assert_close(torch.cat(parts, 1), loaded(features, tokens), rtol=1e-5, atol=1e-5)
        ids, written = torch.tensor([[3], [3]]), []
        for _ in range(8):
            last = model(input_features=features, decoder_input_ids=ids).logits[:, -1]
            last[:, 5] = -torch.inf
            ids = torch.cat([ids, last.argmax(1, keepdim=True)], 1)
        for row in ids[:, 1:].tolist():
            written.append(row[: row.index(2)] if 2 in row else row)
    assert loaded.write(features, [3], count=8, end=2, hidden=[5]) == written


def test_the_spectrogram_is_the_published_one():
    samples = np.random.default_rng(0).standard_normal((2, 20_000)).astype(np.float32)
    samples[1] *= 1e-3
    theirs = transformers.WhisperFeatureExtractor()(list(samples), sampling_rate=16_000, return_tensors="pt")
    torch.testing.assert_close(speech_features(torch.from_numpy(samples)), theirs.input_features, rtol=1e-4, atol=1e-4)


def test_what_whisper_cannot_read_is_told():
    model = Whisper(vocab=9, dim=8, depth=1, mels=8, frames=10, heads=2)
    for value, words in [
        (
            torch.randn(2, 7, 20),
            "Whisper reads log-mel spectrograms (batch, 8, frames), not a value of shape (2, 7, 20).",
        ),
        (torch.randn(2, 8, 21), "This Whisper reads 1 to 20 frames of a spectrogram, not 21."),
    ]:
        with pytest.raises(WonderlandError) as error:
            model(value, torch.zeros(2, 3, dtype=torch.int64))
        assert str(error.value) == words


@pytest.mark.parametrize("name", CASES)
def test_wav2vec2_is_equal_and_goes_back(name, tmp_path):
    model = made("Wav2Vec2ForCTC", WAV2VEC2 | CASES[name], tmp_path / "there")
    loaded = load_pretrained(tmp_path / "there")
    assert isinstance(loaded.trunk, Wav2Vec2)
    x, mask = torch.randn(3, 130), torch.arange(130) < torch.tensor([[130], [90], [61]])
    expected = model(x * mask, attention_mask=mask.long()).logits
    kept = loaded.trunk.mask(x, mask)
    actual = loaded(x * mask, mask)
    torch.testing.assert_close(actual[kept], expected[kept], rtol=1e-5, atol=1e-5)
    weight = torch.randn_like(expected) * kept.unsqueeze(2)
    (expected * weight).sum().backward()
    (actual * weight).sum().backward()
    if loaded.trunk.fill is not None:
        loaded.trunk.fill.grad = None
    compare_gradients(model, _trained(loaded), "ctc")
    goes_back(model, loaded, tmp_path)


def _trained(model):
    """The model, with gradients of 0 where there are none: the vector of hidden frames is used in training alone."""
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    return model


def test_wav2vec2_hides_frames_and_writes_the_likeliest_path(tmp_path):
    model = made("Wav2Vec2Model", WAV2VEC2, tmp_path)
    loaded = load_pretrained(tmp_path)
    assert isinstance(loaded, Wav2Vec2)
    x, hidden = torch.randn(2, 130), torch.rand(2, 12) < 0.3
    with torch.no_grad():
        expected = model(x, mask_time_indices=hidden).last_hidden_state
        torch.testing.assert_close(loaded(x, hidden=hidden), expected, rtol=1e-5, atol=1e-5)
    recogniser = load_pretrained(_saved("Wav2Vec2ForCTC", tmp_path / "ctc"))
    assert isinstance(recogniser, SpeechRecogniser)
    paths = recogniser(x).argmax(2)
    for row, path in zip(recogniser.write(x), paths, strict=True):
        merged = [int(token) for i, token in enumerate(path) if i == 0 or token != path[i - 1]]
        assert row == [token for token in merged if token != 3]


def _saved(architecture, folder):
    made(architecture, WAV2VEC2, folder)
    return folder


def test_the_older_names_of_normed_weights_are_read(tmp_path):
    from safetensors.torch import load_file, save_file

    model = made("Wav2Vec2Model", WAV2VEC2, tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    older = {"original0": "weight_g", "original1": "weight_v"}
    for name in list(tensors):
        if "parametrizations" in name:
            tensors[name.split("parametrizations")[0] + older[name.rsplit(".", 1)[1]]] = tensors.pop(name)
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    x = torch.randn(2, 130)
    with torch.no_grad():
        torch.testing.assert_close(load_pretrained(tmp_path)(x), model(x).last_hidden_state, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("architecture", "options", "title"),
    [("WhisperForConditionalGeneration", WHISPER, "Whisper"), ("Wav2Vec2ForCTC", WAV2VEC2, "Wav2Vec2")],
)
def test_an_unknown_option_is_refused_by_name(architecture, options, title, tmp_path):
    made(architecture, options, tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"extra_gate": 0.5}))
    with pytest.raises(WonderlandError) as error:
        outline(tmp_path)
    assert str(error.value) == (
        f"config.json has the option 'extra_gate' (0.5), which is not supported for {title}: "
        "without it the model would not be the same."
    )
