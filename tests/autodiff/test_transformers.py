"""Unmodified models of the transformers package have the gradients of torch."""

import pytest
import torch
import transformers as hub

from wonderland import autodiff

IDS = torch.randint(0, 50, (2, 9), generator=torch.Generator().manual_seed(0))
IMAGES = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
TEXT = {"input_ids": IDS, "labels": IDS}
PICTURES = {"pixel_values": IMAGES, "labels": torch.tensor([0, 2])}
SMALL = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2}
HEADS = {"num_attention_heads": 2, "intermediate_size": 32}
GPT2 = {
    "vocab_size": 50,
    "n_embd": 16,
    "n_layer": 2,
    "n_head": 2,
    "n_positions": 32,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
T5 = {
    "vocab_size": 50,
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 32,
    "num_layers": 2,
    "num_heads": 2,
    "decoder_start_token_id": 0,
}
VIT = {"hidden_size": 16, "num_hidden_layers": 2, **HEADS, "image_size": 32, "patch_size": 8, "num_labels": 3}
RESNET = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "num_labels": 3}
MODELS = {
    "GPT-2": lambda: (hub.GPT2LMHeadModel(hub.GPT2Config(**GPT2)), TEXT),
    "BERT": lambda: (hub.BertForMaskedLM(hub.BertConfig(**SMALL, **HEADS)), TEXT),
    "Mamba": lambda: (hub.MambaForCausalLM(hub.MambaConfig(**SMALL, state_size=4)), TEXT),
    "T5": lambda: (hub.T5ForConditionalGeneration(hub.T5Config(**T5)), TEXT),
    "LLaMA": lambda: (hub.LlamaForCausalLM(hub.LlamaConfig(**SMALL, **HEADS, num_key_value_heads=1)), TEXT),
    "ResNet": lambda: (hub.ResNetForImageClassification(hub.ResNetConfig(**RESNET)), PICTURES),
    "ViT": lambda: (hub.ViTForImageClassification(hub.ViTConfig(**VIT)), PICTURES),
}

SPEECH = {
    "vocab_size": 50, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "num_mel_bins": 8, "pad_token_id": 0,
    "max_source_positions": 10, "max_target_positions": 20, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
SOUND = {"input_features": IMAGES[:, 0, :8, :20], "labels": IDS}
WAVES = {
    "conv_dim": (8, 8), "conv_stride": (2, 2), "conv_kernel": (3, 3), "num_feat_extract_layers": 2, "pad_token_id": 0,
    "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2,
}  # fmt: skip
WAVE = {"input_values": IMAGES[:, 0].flatten(1)[:, :80], "labels": IDS[:, :4] % 49 + 1}
SWIN = {"image_size": 32, "patch_size": 4, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 2], "window_size": 4}
DISTIL = {"vocab_size": 50, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
MAMBA2 = {"state_size": 4, "head_dim": 8, "num_heads": 4, "n_groups": 1, "chunk_size": 4}
CONVNEXT = {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "num_labels": 3}
MORE = {
    "DistilBERT": lambda: (hub.DistilBertForMaskedLM(hub.DistilBertConfig(**DISTIL)), TEXT),
    "Whisper": lambda: (hub.WhisperForConditionalGeneration(hub.WhisperConfig(**SPEECH)), SOUND),
    "ConvNext": lambda: (hub.ConvNextForImageClassification(hub.ConvNextConfig(**CONVNEXT)), PICTURES),
    "Swin": lambda: (hub.SwinForImageClassification(hub.SwinConfig(**SWIN, num_labels=3)), PICTURES),
    "GPT-NeoX": lambda: (hub.GPTNeoXForCausalLM(hub.GPTNeoXConfig(**SMALL, **HEADS)), TEXT),
    "DeBERTa": lambda: (hub.DebertaV2ForMaskedLM(hub.DebertaV2Config(**SMALL, **HEADS, relative_attention=True)), TEXT),
    "Wav2Vec2": lambda: (hub.Wav2Vec2ForCTC(hub.Wav2Vec2Config(**SMALL, **HEADS, **WAVES)), WAVE),
    "Mamba 2": lambda: (hub.Mamba2ForCausalLM(hub.Mamba2Config(**SMALL, **MAMBA2)), TEXT),
    "FNet": lambda: (hub.FNetForMaskedLM(hub.FNetConfig(**SMALL, intermediate_size=32)), TEXT),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", [*MODELS, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)])
def test_gradients_are_those_of_torch(name):
    torch.manual_seed(0)
    model, given = {**MODELS, **MORE}[name]()
    model = model.double().eval()
    own = autodiff.parameters(model)
    value, gradients = autodiff.value_and_grad(lambda own: autodiff.call(model, own, **given).loss)(own)
    loss = model(**given).loss
    loss.backward()
    torch.testing.assert_close(value, loss.detach())
    for part, parameter in model.named_parameters():
        if not parameter.requires_grad:  # frozen by the model: torch gives no gradient to compare with
            continue
        expected = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        assert (gradients[part] - expected).abs().max() < 1e-8, part
