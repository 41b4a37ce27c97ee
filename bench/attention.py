"""Attention compared with its bare operations, and with transformers' GPT-2, with equal weights, timed alternately.

    python -m bench.attention            whole sequences against torch's fused attention; cached steps against GPT-2
    python -m bench.attention --rounds 40

Outputs are compared before anything is timed. Each time is the best of the rounds, and ratios are theirs divided by ours.
"""

import argparse
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.race import HEADER, both, forward, race, setting
from wonderland.nn.contract.state import State, consuming
from wonderland.nn.mixers.attention import Attention

SHAPES = [(4, 512, 128, 4), (1, 2048, 256, 4)]
LAYERS, WIDTH, HEADS, PAST, STEPS = 2, 128, 4, 128, 8


def whole(b: int, t: int, dim: int, heads: int, rounds: int) -> None:
    """The mixer against its projections and torch's fused attention, called directly."""
    mixer, x = Attention(dim, heads=heads), torch.randn(b, t, dim)

    def bare() -> Tensor:
        q, k, v = mixer.project(x).view(b, t, 3, heads, dim // heads).permute(2, 0, 3, 1, 4)
        return mixer.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, dim))

    torch.testing.assert_close(mixer(x), bare())
    for name, timed in (("forward", forward), ("with backward", lambda call: both(mixer, call))):
        race(
            f"{name} ({b}, {t}, {dim}), {heads} heads", timed(lambda: mixer(x)), timed(bare), rounds, peer="bare kernel"
        )


def steps(rounds: int) -> None:
    """Single tokens after a cache at batch 1, against GPT-2's attention with its cache, and against GPT-2's whole layer."""
    import transformers
    from transformers.models.gpt2.modeling_gpt2 import GPT2Attention, GPT2Block

    transformers.logging.set_verbosity_error()
    config = transformers.GPT2Config(n_embd=WIDTH, n_head=HEADS, n_layer=LAYERS, attn_implementation="sdpa")
    theirs = [GPT2Attention(config, layer_idx=index).eval() for index in range(LAYERS)]
    layers = [GPT2Block(config, layer_idx=index).eval() for index in range(LAYERS)]
    ours = [Attention(WIDTH, heads=HEADS, bias=True).eval() for _ in theirs]
    for mixer, other in zip(ours, theirs, strict=True):
        mixer.project.load_state_dict({"weight": other.c_attn.weight.t(), "bias": other.c_attn.bias})
        mixer.out.load_state_dict({"weight": other.c_proj.weight.t(), "bias": other.c_proj.bias})
    past, tokens = torch.randn(1, PAST, WIDTH), torch.randn(STEPS, 1, 1, WIDTH)

    def our_steps() -> Callable[[], Tensor]:
        states: list[State] = [mixer.stream(past)[1] for mixer in ours]

        def run() -> Tensor:
            for x in tokens:
                for index, mixer in enumerate(ours):
                    x, states[index] = mixer.stream(x, states[index])
            return x

        return run

    def their_steps(blocks: list) -> Callable[[], Tensor]:
        cache = transformers.DynamicCache()
        for block in blocks:
            block(past, past_key_values=cache)

        def run() -> Tensor:
            for x in tokens:
                for block in blocks:
                    x = block(x, past_key_values=cache)
                    x = x[0] if isinstance(x, tuple) else x
            return x

        return run

    with torch.no_grad(), consuming():
        torch.testing.assert_close(our_steps()(), their_steps(theirs)(), rtol=1e-4, atol=1e-5)
        label = f"{STEPS} steps, {LAYERS} layers of {WIDTH}, from {PAST} cached"
        race(label, our_steps(), their_steps(theirs), rounds, peer="GPT-2's attention")
        race(label, our_steps(), their_steps(layers), rounds, peer="GPT-2's whole layer: attention, norms, MLP")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    print(setting(options.threads, True, options.rounds))
    print(HEADER)
    for shape in SHAPES:
        whole(*shape, options.rounds)
    steps(options.rounds)


if __name__ == "__main__":
    main()
