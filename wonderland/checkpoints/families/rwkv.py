"""RWKV: a decoder whose mixer is an exponentially decaying average over the past. Paper: Peng et al., 2023."""

from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView
from wonderland.checkpoints.families.options import Options
from wonderland.core import Spec
from wonderland.models.decoder import Decoder
from wonderland.nn.mixers.rwkv import RWKV, RWKVChannel
from wonderland.nn.norms.norm import LayerNorm

# In evaluation mode the published code halves the residual stream, and what later layers add to it, every `rescale_every`
# layers. A norm of the halved stream with eps equals a norm of the full stream with 4 eps, so we scale eps and not the stream.
EPS_FACTOR = 4.0
FINAL_EPS = 1e-5  # of the final norm, whatever the options say
LIMIT = 1 << 24


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    dim, depth = options.integer("hidden_size", 4096), options.depth("num_hidden_layers", 32)
    inner = options.integer("attention_hidden_size", dim)
    every = options.integer("rescale_every", 6, least=-LIMIT)
    eps = options.number("layer_norm_epsilon", 1e-5)
    options.ignore("context_length")
    tie = options.boolean("tie_word_embeddings", False)
    halvings = [index // every if every > 0 else 0 for index in range(depth + 1)]
    norms = [LayerNorm.spec(eps=eps * EPS_FACTOR**count) for count in halvings]
    return Decoder.spec(
        vocab=options.integer("vocab_size", 50277),
        dim=dim,
        depth=depth,
        mixer=RWKV.spec(inner=inner),
        channel=RWKVChannel.spec(hidden=options.integer("intermediate_size", 4 * dim)),
        norm=norms[:-1] if halvings[-1] else norms[0],
        final_norm=LayerNorm.spec(eps=FINAL_EPS * EPS_FACTOR ** halvings[-1]),
        embed_norm=norms[0],
        tie=head != "lm" or weights.tied(tie, "head.weight", "rwkv.embeddings.weight"),
    )


def _trunk_names(trunk: Any) -> dict[str, Published | None]:
    block, theirs = "stack.blocks.#.", "blocks.#."
    projections = ("key", "value", "receptance")
    names: dict[str, Published | None] = {
        "embedding.weight": Published("embeddings.weight"),
        "embed_norm.*": Published("blocks.0.pre_ln.*"),
        "stack.norm.*": Published("ln_out.*"),
        f"{block}norms.0.*": Published(f"{theirs}ln1.*"),
        f"{block}norms.1.*": Published(f"{theirs}ln2.*"),
        f"{block}mixer.decay": Published(f"{theirs}attention.time_decay"),
        f"{block}mixer.bonus": Published(f"{theirs}attention.time_first"),
    }
    for ours, other in (("mixer", "attention"), ("channel", "feed_forward")):
        for name in projections:
            names[f"{block}{ours}.mix_{name}"] = Published(f"{theirs}{other}.time_mix_{name}", unit_axes=(0, 0))
        for name in (*projections, "output"):
            names[f"{block}{ours}.{name}.weight"] = Published(f"{theirs}{other}.{name}.weight")
    return names


def _to_config(model: Any) -> dict[str, Any] | None:
    if not isinstance(model, Decoder) or not isinstance(getattr(model.stack.blocks[0], "mixer", None), RWKV):
        return None
    blocks = model.stack.blocks
    channel = getattr(blocks[0], "channel", None)
    if not isinstance(channel, RWKVChannel):
        return None
    norms = [getattr(block.norms[0], "eps", 0.0) for block in blocks]
    every = next((index for index, eps in enumerate(norms) if eps != norms[0]), 0)
    if not every and getattr(model.stack.norm, "eps", 0.0) > 2 * FINAL_EPS:
        every = len(blocks)
    return {
        "model_type": "rwkv",
        "vocab_size": model.vocab,
        "hidden_size": model.dim,
        "num_hidden_layers": len(blocks),
        "attention_hidden_size": blocks[0].mixer.inner,
        "intermediate_size": channel.key.out_features,
        "layer_norm_epsilon": norms[0],
        "rescale_every": every,
        "tie_word_embeddings": model.head is None,
        "bos_token_id": None,
        "eos_token_id": None,
    }


RWKV_FAMILY = Family(
    model_type="rwkv",
    title="RWKV",
    heads={"RwkvForCausalLM": "lm", "RwkvModel": "trunk"},
    prefix="rwkv.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=lambda model, head: {"head.weight": Published("head.weight")},
    to_config=_to_config,
)
