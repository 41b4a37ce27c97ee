"""Wav2Vec 2: features of speech from its waveform, alone or under a head for CTC. Paper: Baevski et al., 2020."""

from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView, trunk_of
from wonderland.checkpoints.families.options import Options, activation_name
from wonderland.core import Spec
from wonderland.models.speech.wav2vec2 import SpeechRecogniser, Wav2Vec2
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm

WIDTHS, KERNELS, STRIDES = [512] * 7, [10, 3, 3, 3, 3, 2, 2], [5, 2, 2, 2, 2, 2, 2]


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    dim, heads = options.integer("hidden_size", 768), options.integer("num_attention_heads", 12)
    if dim % heads:
        raise options.error("num_attention_heads", heads, f"a number of heads that divides hidden_size = {dim}")
    # Of pretraining, of other heads, and of a training loss.
    options.ignore(
        "feat_quantizer_dropout", "layerdrop", "apply_spec_augment", "num_codevectors_per_group", "num_codevector_groups",
        "contrastive_logits_temperature", "num_negatives", "codevector_dim", "proj_codevector_dim", "xvector_output_dim",
        "diversity_loss_weight", "ctc_loss_reduction", "ctc_zero_infinity", "use_weighted_layer_sum", "classifier_proj_size",
        "tdnn_dim", "tdnn_kernel", "tdnn_dilation", "gradient_checkpointing", "freeze_feat_extract_train",
        "mask_channel_length", "mask_channel_min_space", "mask_channel_other", "mask_channel_prob", "mask_channel_selection",
        "mask_time_min_space", "mask_time_other", "mask_time_selection", "no_mask_channel_overlap", "no_mask_time_overlap",
        "adapter_kernel_size", "adapter_stride", "num_adapter_layers", "num_feat_extract_layers",
        *(f"mask_{axis}_{setting}" for axis in ("time", "feature") for setting in ("length", "min_masks")),
    )  # fmt: skip
    options.require("add_adapter", False, None)
    options.require("adapter_attn_dim", None)
    options.require("output_hidden_size", dim, None)
    chosen = options.get("feat_extract_norm", "group")
    if chosen not in ("group", "layer"):
        raise options.error("feat_extract_norm", chosen, "group or layer")
    lists = [
        options.sizes(f"conv_{name}", usual)
        for name, usual in (("dim", WIDTHS), ("kernel", KERNELS), ("stride", STRIDES))
    ]
    if len({len(values) for values in lists}) > 1:
        raise options.error("conv_dim", lists[0], "as many widths as conv_kernel and conv_stride have")
    act = options.activation("feat_extract_activation", "gelu")
    hidden_dropout = options.probability("hidden_dropout", 0.1)
    masked = max(options.number("mask_time_prob", 0.05), options.number("mask_feature_prob", 0.0)) > 0
    final = options.probability("final_dropout", 0.1)
    vocab = options.integer("vocab_size", 32)
    trunk = Wav2Vec2.spec(
        dim=dim,
        depth=options.depth("num_hidden_layers", 12),
        widths=lists[0],
        kernels=lists[1],
        strides=lists[2],
        conv_bias=options.boolean("conv_bias", False),
        conv_norm=chosen,
        activation=act,
        mixer=Attention.spec(
            heads=heads, bias=True, causal=False, dropout=options.probability("attention_dropout", 0.1)
        ),
        channel=MLP.spec(
            hidden=options.integer("intermediate_size", 3072),
            activation=options.activation("hidden_act", "gelu"),
            bias=True,
            dropout=options.probability("activation_dropout", 0.1),
        ),
        position_width=options.integer("num_conv_pos_embeddings", 128),
        position_groups=options.integer("num_conv_pos_embedding_groups", 16),
        placement="pre" if options.boolean("do_stable_layer_norm", False) else "post",
        norm=LayerNorm.spec(eps=options.number("layer_norm_eps", 1e-5)),
        dropout=hidden_dropout,
        projection_dropout=options.probability("feat_proj_dropout", 0.0),
        fill=masked,
    )
    if head == "ctc":
        return SpeechRecogniser.spec(trunk=trunk, vocab=vocab, blank=options.pad or 0, dropout=final)
    return trunk


def _trunk_names(trunk: Any) -> dict[str, Published | None]:
    block, layer = "stack.blocks.#.", "encoder.layers.#."
    position, attention, network = "encoder.pos_conv_embed.conv.", f"{layer}attention.", f"{layer}feed_forward."
    return {
        "convs.#.conv.*": Published("feature_extractor.conv_layers.#.conv.*"),
        "convs.#.norm.*": Published("feature_extractor.conv_layers.#.layer_norm.*"),
        "input_norm.*": Published("feature_projection.layer_norm.*"),
        "projection.*": Published("feature_projection.projection.*"),
        "fill": Published("masked_spec_embed"),
        "position.gain": Published(f"{position}parametrizations.weight.original0"),
        "position.direction": Published(f"{position}parametrizations.weight.original1"),
        "position.bias": Published(f"{position}bias"),
        "norm.*": Published("encoder.layer_norm.*"),
        "stack.norm.*": Published("encoder.layer_norm.*"),
        f"{block}norms.0.*": Published(f"{layer}layer_norm.*"),
        f"{block}norms.1.*": Published(f"{layer}final_layer_norm.*"),
        f"{block}mixer.project.*": Published([f"{attention}{part}_proj.*" for part in "qkv"]),
        f"{block}mixer.out.*": Published(f"{attention}out_proj.*"),
        f"{block}channel.inward.*": Published(f"{network}intermediate_dense.*"),
        f"{block}channel.outward.*": Published(f"{network}output_dense.*"),
    }


def _to_config(model: Any) -> dict[str, Any] | None:
    trunk = trunk_of(model)
    if not isinstance(trunk, Wav2Vec2):
        return None
    block: Any = trunk.stack.blocks[0]
    mixer, channel = block.mixer, block.channel
    if not isinstance(mixer, Attention) or not isinstance(channel, MLP):
        return None
    config = {
        "model_type": "wav2vec2",
        "hidden_size": trunk.dim,
        "num_hidden_layers": len(trunk.stack.blocks),
        "num_attention_heads": mixer.heads,
        "intermediate_size": channel.inward.out_features,
        "hidden_act": activation_name(channel.activation),
        "feat_extract_activation": activation_name(trunk.position.activation),
        "feat_extract_norm": trunk.conv_norm,
        "conv_dim": [conv.conv.out_channels for conv in trunk.convs],
        "conv_kernel": list(trunk.kernels),
        "conv_stride": list(trunk.strides),
        "conv_bias": trunk.convs[0].conv.bias is not None,
        "num_conv_pos_embeddings": trunk.position.width,
        "num_conv_pos_embedding_groups": trunk.position.groups,
        "do_stable_layer_norm": block.placement == "pre",
        "layer_norm_eps": getattr(block.norms[0], "eps", None),
        "hidden_dropout": trunk.dropout,
        "activation_dropout": channel.dropout,
        "attention_dropout": mixer.dropout,
        "feat_proj_dropout": trunk.projection_dropout,
        "mask_time_prob": 0.05 if trunk.fill is not None else 0.0,
    }
    if isinstance(model, SpeechRecogniser):
        config |= {"vocab_size": model.vocab, "pad_token_id": model.blank, "final_dropout": model.dropout}
    return config


WAV2VEC2 = Family(
    model_type="wav2vec2",
    title="Wav2Vec2",
    heads={"Wav2Vec2ForCTC": "ctc", "Wav2Vec2Model": "trunk", "Wav2Vec2ForPreTraining": "trunk"},
    prefix="wav2vec2.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=lambda model, head: {"head.*": Published("lm_head.*")},
    to_config=_to_config,
    unused=r"quantizer\..*|project_(q|hid)\.(weight|bias)",
)
