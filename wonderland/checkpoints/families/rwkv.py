"""RWKV: a decoder whose average of the past fades."""

from typing import Any

from wonderland.checkpoints.families.family import Family, To
from wonderland.checkpoints.families.options import Options
from wonderland.core import Spec
from wonderland.models.decoder import Decoder
from wonderland.nn.mixers.rwkv import RWKV, RWKVChannel
from wonderland.nn.norms.norm import LayerNorm

# After every few layers the published code halves the stream in evaluation, and with it what later layers add. A norm does
# not see that but for its eps, which weighs four times as much each time: here the stream stays and eps grows.
HALVED = 4.0
LAST_EPS = 1e-5  # of the norm at the end, whatever the options say


def _describe(options: Options, head: str, file: Any) -> Spec:
    dim, depth = options.whole("hidden_size", 4096), options.depth("num_hidden_layers", 32)
    inner = options.whole("attention_hidden_size", dim)
    every = options.whole("rescale_every", 6, least=-LIMIT)
    eps = options.number("layer_norm_epsilon", 1e-5)
    options.ignore("context_length")
    tie = options.yes("tie_word_embeddings", False)
    halved = [index // every if every > 0 else 0 for index in range(depth + 1)]
    norms = [LayerNorm.spec(eps=eps * HALVED**count) for count in halved]
    return Decoder.spec(
        vocab=options.whole("vocab_size", 50277),
        dim=dim,
        depth=depth,
        mixer=RWKV.spec(inner=inner),
        channel=RWKVChannel.spec(hidden=options.whole("intermediate_size", 4 * dim)),
        norm=norms[:-1] if halved[-1] else norms[0],
        final_norm=LayerNorm.spec(eps=LAST_EPS * HALVED ** halved[-1]),
        embed_norm=norms[0],
        tie=head != "words" or file.tied(tie, "head.weight", "rwkv.embeddings.weight"),
    )


LIMIT = 1 << 24


def _names(trunk: Any) -> dict[str, To | None]:
    block, theirs = "stack.blocks.#.", "blocks.#."
    mixes = ("key", "value", "receptance")
    found: dict[str, To | None] = {
        "embedding.weight": To("embeddings.weight"),
        "embed_norm.*": To("blocks.0.pre_ln.*"),
        "stack.norm.*": To("ln_out.*"),
        f"{block}norms.0.*": To(f"{theirs}ln1.*"),
        f"{block}norms.1.*": To(f"{theirs}ln2.*"),
        f"{block}mixer.decay": To(f"{theirs}attention.time_decay"),
        f"{block}mixer.bonus": To(f"{theirs}attention.time_first"),
    }
    for ours, other in (("mixer", "attention"), ("channel", "feed_forward")):
        for name in mixes:
            found[f"{block}{ours}.mix_{name}"] = To(f"{theirs}{other}.time_mix_{name}", lift=(0, 0))
        for name in (*mixes, "output"):
            found[f"{block}{ours}.{name}.weight"] = To(f"{theirs}{other}.{name}.weight")
    return found


def _config(model: Any) -> dict[str, Any] | None:
    if not isinstance(model, Decoder) or not isinstance(getattr(model.stack.blocks[0], "mixer", None), RWKV):
        return None
    blocks = model.stack.blocks
    channel = getattr(blocks[0], "channel", None)
    if not isinstance(channel, RWKVChannel):
        return None
    norms = [getattr(block.norms[0], "eps", 0.0) for block in blocks]
    every = next((index for index, eps in enumerate(norms) if eps != norms[0]), 0)
    if not every and getattr(model.stack.norm, "eps", 0.0) > 2 * LAST_EPS:
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
    kind="rwkv",
    title="RWKV",
    heads={"RwkvForCausalLM": "words", "RwkvModel": "trunk"},
    prefix="rwkv.",
    describe=_describe,
    names=_names,
    head_names=lambda model, head: {"head.weight": To("head.weight")},
    config=_config,
)
