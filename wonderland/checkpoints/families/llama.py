"""LLaMA and the families that follow it, each by what tells it from the others.

Papers: Touvron et al., 2023 (LLaMA); Jiang et al., 2023 (Mistral); Yang et al., 2024 and 2025 (Qwen2, Qwen3); Abdin et al.,
2024 (Phi-3); Bakouch et al., 2025 (SmolLM3); OLMo et al., 2025 (OLMo 2); Gemma Team, 2024 (Gemma, Gemma 2).
"""

from wonderland.checkpoints.families.gated_decoder import Variant, family

LLAMA = family(Variant("llama", "LLaMA", "Llama", attention_bias="option", mlp_bias=True))
MISTRAL = family(
    Variant(
        "mistral",
        "Mistral",
        "Mistral",
        {"intermediate_size": 14336, "num_key_value_heads": 8, "sliding_window": 4096},
        windows="all",
    ),
    spans="model.",
)
QWEN2 = family(
    Variant(
        "qwen2",
        "Qwen2",
        "Qwen2",
        {"intermediate_size": 22016, "num_key_value_heads": 32, "vocab_size": 151936, "sliding_window": 4096},
        attention_bias="inputs",
        head_dim=False,
        windows="layers",
    )
)
QWEN3 = family(
    Variant(
        "qwen3",
        "Qwen3",
        "Qwen3",
        {
            "intermediate_size": 22016,
            "num_key_value_heads": 32,
            "vocab_size": 151936,
            "sliding_window": 4096,
            "head_dim": 128,
        },
        attention_bias="option",
        windows="layers",
        qk_norm="head",
    )
)
PHI3 = family(
    Variant(
        "phi3",
        "Phi-3",
        "Phi3",
        {"hidden_size": 3072, "intermediate_size": 8192, "vocab_size": 32064, "rms_norm_eps": 1e-5},
        head_dim=False,
        windows="all",
        fused=True,
        dropouts=True,
        heads=("lm", "sequence", "tokens", "trunk"),
    )
)
SMOLLM3 = family(
    Variant(
        "smollm3",
        "SmolLM3",
        "SmolLM3",
        {
            "hidden_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4,
            "vocab_size": 128256, "rope_theta": 2000000.0, "tie_word_embeddings": True,
        },
        attention_bias="option",
        mlp_bias=True,
        head_dim=False,
        windows="layers",
        skips=True,
    )
)  # fmt: skip
OLMO2 = family(
    Variant(
        "olmo2",
        "OLMo 2",
        "Olmo2",
        {"vocab_size": 50304, "rms_norm_eps": 1e-5},
        attention_bias="option",
        head_dim=False,
        qk_norm="all",
        placement="branch",
        heads=("lm", "sequence", "trunk"),
    )
)
_GEMMA = {
    "hidden_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "head_dim": 256,
    "intermediate_size": 24576,
}
_GEMMA |= {"vocab_size": 256000, "tie_word_embeddings": True}
_GEMMA2 = {**_GEMMA, "hidden_size": 2304, "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4}
_GEMMA2 |= {"intermediate_size": 9216, "sliding_window": 4096}
GEMMA = family(
    Variant(
        "gemma",
        "Gemma",
        "Gemma",
        {**_GEMMA, "num_key_value_heads": 16},
        attention_bias="option",
        gemma=True,
        heads=("lm", "sequence", "tokens", "trunk"),
    )
)
GEMMA2 = family(
    Variant(
        "gemma2",
        "Gemma 2",
        "Gemma2",
        _GEMMA2,
        attention_bias="option",
        windows="even",
        placement="sandwich",
        gemma=True,
        capped=True,
        heads=("lm", "sequence", "tokens", "trunk"),
    )
)
