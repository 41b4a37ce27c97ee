"""Whisper: speech to text by an encoder-decoder. Paper: Radford et al., 2022."""

from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView
from wonderland.checkpoints.families.options import Options, activation_name
from wonderland.core import Spec
from wonderland.models.speech.whisper import Whisper
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.cross_attention import CrossAttention
from wonderland.nn.norms.norm import LayerNorm

SIDES = ("encoder", "decoder")


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    dim = options.integer("d_model", 384)
    depths = [options.depth(f"{side}_layers", 4) for side in SIDES]
    heads = [options.integer(f"{side}_attention_heads", 6) for side in SIDES]
    for side, count in zip(SIDES, heads, strict=True):
        if dim % count:
            raise options.error(f"{side}_attention_heads", count, f"a number of heads that divides d_model = {dim}")
    options.require("num_hidden_layers", depths[0], None)
    options.require("is_encoder_decoder", True)
    # Of training, of heads that classify, and of how transformers decodes.
    options.ignore(
        "encoder_layerdrop", "decoder_layerdrop", "init_std", "use_weighted_layer_sum", "classifier_proj_size",
        "apply_spec_augment", "median_filter_width", "forced_decoder_ids", "alignment_heads", "is_multilingual",
        "lang_to_id", "task_to_id", "no_timestamps_token_id", "max_initial_timestamp_index", "return_timestamps",
        *(f"mask_{axis}_{setting}" for axis in ("time", "feature") for setting in ("prob", "length", "min_masks")),
    )  # fmt: skip
    common = {"bias": True, "dropout": options.probability("attention_dropout", 0.0)}
    inner = [
        MLP.spec(
            hidden=options.integer(f"{side}_ffn_dim", 1536),
            activation=options.activation("activation_function", "gelu"),
            bias=True,
            dropout=options.probability("activation_dropout", 0.0),
        )
        for side in SIDES
    ]
    begin = options.config.get("decoder_start_token_id", 50257)
    tie = options.boolean("tie_word_embeddings", True)
    return Whisper.spec(
        vocab=options.integer("vocab_size", 51865),
        dim=dim,
        depth=depths[0],
        target_depth=depths[1],
        mels=options.integer("num_mel_bins", 80),
        frames=options.integer("max_source_positions", 1500),
        positions=options.integer("max_target_positions", 448),
        reader=Attention.spec(heads=heads[0], **common, causal=False),
        mixer=Attention.spec(heads=heads[1], **common),
        cross=CrossAttention.spec(heads=heads[1], **common),
        reader_channel=inner[0],
        channel=inner[1],
        norm=LayerNorm.spec(eps=1e-5),
        tie=head != "lm" or weights.tied(tie, "proj_out.weight", "model.decoder.embed_tokens.weight"),
        scale="embedding" if options.boolean("scale_embedding", False) else "none",
        begin=begin if isinstance(begin, int) and begin >= 0 else 0,
        dropout=options.probability("dropout", 0.0),
    )


def _trunk_names(trunk: Any) -> dict[str, Published | None]:
    names: dict[str, Published | None] = {
        "embedding.weight": Published("decoder.embed_tokens.weight"),
        "position.weight": Published("decoder.embed_positions.weight"),
        "source_position.weight": Published("encoder.embed_positions.weight"),
        "conv1.*": Published("encoder.conv1.*"),
        "conv2.*": Published("encoder.conv2.*"),
    }
    for side in SIDES:
        block, layer = f"{side}.blocks.#.", f"{side}.layers.#."
        norms = [
            "self_attn_layer_norm",
            *(["encoder_attn_layer_norm"] if side == "decoder" else []),
            "final_layer_norm",
        ]
        own, other = f"{layer}self_attn.", f"{layer}encoder_attn."
        names |= {
            f"{side}.norm.*": Published(f"{side}.layer_norm.*"),
            **{f"{block}norms.{i}.*": Published(f"{layer}{norm}.*") for i, norm in enumerate(norms)},
            # Keys have no bias: one would move all scores of a query alike.
            f"{block}mixer.project.weight": Published([f"{own}{part}_proj.weight" for part in "qkv"]),
            f"{block}mixer.project.bias": Published([f"{own}q_proj.bias", "", f"{own}v_proj.bias"]),
            f"{block}mixer.out.*": Published(f"{own}out_proj.*"),
            f"{block}cross.query.*": Published(f"{other}q_proj.*"),
            f"{block}cross.project.weight": Published([f"{other}{part}_proj.weight" for part in "kv"]),
            f"{block}cross.project.bias": Published(["", f"{other}v_proj.bias"]),
            f"{block}cross.out.*": Published(f"{other}out_proj.*"),
            f"{block}channel.inward.*": Published(f"{layer}fc1.*"),
            f"{block}channel.outward.*": Published(f"{layer}fc2.*"),
        }
    return names


def _to_config(model: Any) -> dict[str, Any] | None:
    if not isinstance(model, Whisper):
        return None
    blocks: list[Any] = [model.encoder.blocks[0], model.decoder.blocks[0]]
    position: Any = model.position
    if not all(isinstance(block.mixer, Attention) and isinstance(block.channel, MLP) for block in blocks):
        return None
    config: dict[str, Any] = {
        "model_type": "whisper",
        "vocab_size": model.vocab,
        "d_model": model.dim,
        "num_mel_bins": model.mels,
        "max_source_positions": model.frames,
        "max_target_positions": position.length,
        "activation_function": activation_name(blocks[0].channel.activation),
        "activation_dropout": blocks[0].channel.dropout,
        "attention_dropout": blocks[0].mixer.dropout,
        "dropout": model.dropout,
        "scale_embedding": model.scale == "embedding",
        "is_encoder_decoder": True,
        "tie_word_embeddings": model.head is None,
        "decoder_start_token_id": model.begin,
        "pad_token_id": None,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    for side, block in zip(SIDES, blocks, strict=True):
        config |= {
            f"{side}_layers": len(getattr(model, side).blocks),
            f"{side}_attention_heads": block.mixer.heads,
            f"{side}_ffn_dim": block.channel.inward.out_features,
        }
    return config


WHISPER = Family(
    model_type="whisper",
    title="Whisper",
    heads={"WhisperForConditionalGeneration": "lm", "WhisperModel": "trunk"},
    prefix="model.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=lambda model, head: {"head.*": Published("proj_out.*")},
    to_config=_to_config,
    unused=r"proj_out\.weight",
)
