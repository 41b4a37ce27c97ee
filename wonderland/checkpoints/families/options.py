"""The options of a config.json: each one is read, known to have no effect, or refused."""

from collections.abc import Mapping
from typing import Any

from wonderland.core import WonderlandError
from wonderland.nn.channel.activations import Activation

LARGEST = 1 << 24
DEEPEST = 10_000

ACTIVATIONS = {
    "gelu": "gelu", "gelu_python": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh", "gelu_python_tanh": "gelu_tanh", "gelu_accurate": "gelu_tanh", "quick_gelu": "quick_gelu",
    "relu": "relu", "relu2": "squared_relu", "relu6": "relu6", "leaky_relu": "leaky_relu", "silu": "silu", "swish": "silu",
    "hardswish": "hard_swish", "mish": "mish", "tanh": "tanh", "sigmoid": "sigmoid", "linear": "identity",
}  # fmt: skip
_PUBLISHED = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())} | {"gelu_tanh": "gelu_new"}

# Options without effect on the outputs of a model: names, token ids, settings of training, generation and storage.
NO_EFFECT = frozenset(
    [
        "architectures",
        "model_type",
        "transformers_version",
        "torch_dtype",
        "dtype",
        "_name_or_path",
        "name_or_path",
        "use_cache",
        "return_dict",
        "output_attentions",
        "output_hidden_states",
        "output_past",
        "gradient_checkpointing",
        "torchscript",
        "tokenizer_class",
        "prefix",
        "finetuning_task",
        "task_specific_params",
        "problem_type",
        "initializer_range",
        "initializer_factor",
        "language",
        "bos_token_id",
        "eos_token_id",
        "pad_token_id",
        "sep_token_id",
        "cls_token_id",
        "mask_token_id",
        "decoder_start_token_id",
        "forced_bos_token_id",
        "forced_eos_token_id",
        "id2label",
        "label2id",
        "num_labels",
        "_num_labels",
        "name",
        "max_sequence_length",
        "transformers.js_config",
        "unsloth_version",
        "unsloth_fixed",
        "n_ctx",
        "max_length",
        "min_length",
        "do_sample",
        "early_stopping",
        "num_beams",
        "num_beam_groups",
        "diversity_penalty",
        "temperature",
        "top_k",
        "top_p",
        "typical_p",
        "repetition_penalty",
        "length_penalty",
        "no_repeat_ngram_size",
        "encoder_no_repeat_ngram_size",
        "bad_words_ids",
        "num_return_sequences",
        "output_scores",
        "return_dict_in_generate",
        "remove_invalid_values",
        "exponential_decay_length_penalty",
        "suppress_tokens",
        "begin_suppress_tokens",
        "chunk_size_feed_forward",
        "_attn_implementation",
        "attn_implementation",
        "_attn_implementation_autoset",
        "use_flash_attn",
        "tf_legacy_loss",
        "use_bfloat16",
    ]
)
# Options that are refused unless they are empty, or false.
EMPTY = ("auto_map", "quantization_config", "pruned_heads", "adapters", "cross_attention_hidden_size")
FALSE = ("add_cross_attention", "is_decoder", "is_encoder_decoder", "tie_encoder_decoder")


class Options:
    """A configuration that remembers which options were read, so that `check_all_read` can refuse the others."""

    def __init__(self, config: Mapping[str, Any], title: str):
        self.config, self.title = config, title
        self.read: set[str] = set()

    def get(self, name: str, default: Any) -> Any:
        """The unchecked value of an option."""
        self.read.add(name)
        return self.config.get(name, default)

    def integer(self, name: str, default: int | None = None, *, least: int = 1, most: int = LARGEST) -> int:
        """An integer within bounds; null in the file means the default."""
        value = self.get(name, default)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.error(name, value, f"a whole number from {least} to {most:,}")
        return value

    def depth(self, name: str, default: int | None = None) -> int:
        """A number of layers."""
        return self.integer(name, default, most=DEEPEST)

    def number(self, name: str, default: float | None, *, least: float = 0.0, most: float = 1e12) -> float:
        """A number from `least` to `most`; null in the file means the default."""
        value = self.get(name, default)
        value = default if value is None else value
        if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
            raise self.error(name, value, f"a number from {least:g} to {most:g}")
        return float(value)

    def sizes(self, name: str, default: list[int]) -> list[int]:
        """A list of at most 16 sizes, one for each stage."""
        value = self.get(name, default)
        whole = isinstance(value, list) and 1 <= len(value) <= 16
        if not whole or not all(
            isinstance(item, int) and not isinstance(item, bool) and 1 <= item <= LARGEST for item in value
        ):
            raise self.error(name, value, f"a list of at most 16 whole numbers from 1 to {LARGEST:,}")
        return list(value)

    def probability(self, name: str, default: float) -> float:
        """A dropout probability."""
        value = self.number(name, default, most=1.0)
        if value >= 1:
            raise self.error(name, value, "a probability below 1")
        return value

    def boolean(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise self.error(name, value, "true or false")
        return value

    def activation(self, name: str, default: str) -> str:
        """An activation, by our name."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in ACTIVATIONS:
            raise self.error(name, value, f"one of these activations: {', '.join(ACTIVATIONS)}")
        return ACTIVATIONS[value]

    def require(self, name: str, *allowed: Any) -> None:
        """Refuse an option unless it has one of the supported values, the first of which is the default."""
        value = self.get(name, allowed[0])
        if value not in allowed:
            raise self.error(name, value, " or ".join(_as_json(choice) for choice in allowed))

    def ignore(self, *names: str) -> None:
        """Mark options that have no effect on the outputs of this family."""
        self.read.update(names)

    @property
    def classes(self) -> int:
        """The number of classes of a head."""
        named = self.config.get("id2label")
        if isinstance(named, Mapping) and named:
            return len(named)
        return self.integer("num_labels", 2)

    @property
    def pad(self) -> int | None:
        """The padding token, if there is one."""
        value = self.config.get("pad_token_id")
        return value if isinstance(value, int) and 0 <= value < LARGEST else None

    def check_all_read(self) -> None:
        """Refuse options that the family did not read: without them the model would not be the same."""
        for name in EMPTY:
            if name not in self.read and self.config.get(name):
                raise self.error(name, self.config[name], "no value for it")
        for name in FALSE:
            if name not in self.read and self.config.get(name):
                raise self.error(name, self.config[name], "false")
        known = self.read | NO_EFFECT | set(EMPTY) | set(FALSE)
        for name, value in self.config.items():
            if name not in known:
                raise WonderlandError(
                    f"config.json has the option {name!r} ({_as_json(value)}), which is not supported for {self.title}: "
                    "without it the model would not be the same."
                )

    def error(self, name: str, value: Any, needed: str) -> WonderlandError:
        """The error for an option whose value is not supported."""
        return WonderlandError(
            f"config.json says {name} = {_as_json(value)}, but {self.title} can be loaded only with {needed}."
        )


def activation_name(function: str | Activation) -> str | None:
    """The name of an activation in config.json; None if transformers has no such activation."""
    name = function if isinstance(function, str) else getattr(function, "__name__", "")
    return _PUBLISHED.get(name)


def _as_json(value: Any) -> str:
    for constant, word in ((None, "null"), (True, "true"), (False, "false")):
        if value is constant:
            return word
    return repr(value)[:60]
