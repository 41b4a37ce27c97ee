"""tokenizer.json: bounds and checks before the `tokenizers` package reads it, and which special token has which role."""

import json
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, read_json
from wonderland.core.limits import check, limit
from wonderland.core.strict_json import count_values, load_json
from wonderland.data.text.tokenizer_grammar import check_grammar

# The usual names of the token of each role; the first that a vocabulary has is used.
ROLES: dict[str, tuple[str, ...]] = {
    "pad": ("<pad>", "[PAD]", "<|pad|>", "<blank>"),
    "unknown": ("<unk>", "[UNK]", "<|unk|>"),
    "begin": ("<s>", "<bos>", "[BOS]", "[CLS]", "<cls>", "<|begin_of_text|>", "<|startoftext|>", "<|begin|>"),
    "end": ("</s>", "<eos>", "[EOS]", "<|endoftext|>", "<|end_of_text|>", "<|end|>"),
    "mask": ("<mask>", "[MASK]", "<|mask|>"),
    "separator": ("<sep>", "[SEP]", "<|sep|>", "</s>"),
}
TRANSFORMERS_NAMES = {"pad": "pad_token", "unknown": "unk_token", "begin": "bos_token", "end": "eos_token", "mask": "mask_token",
           "separator": "sep_token"}  # fmt: skip


def parse(text: str) -> dict[str, Any]:
    """The JSON of a tokenizer as a dictionary."""
    value = load_json(text)
    return value if isinstance(value, dict) else {}


def check_json(text: str) -> str:
    """The JSON, for the native library; refused if it is too large, has ids out of range or with gaps, or does not follow the grammar."""
    check("tokenizer_bytes", len(text), "This tokenizer")
    check("tokenizer_values", count_values(text), "This tokenizer")
    try:
        content = parse(text)
    except (ValueError, RecursionError) as error:
        raise WonderlandError("This is not the JSON of a tokenizer: it is damaged or not JSON at all.") from error
    model = content.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocab, dict | list):
        raise WonderlandError("This is not the JSON of a tokenizer: it has no model with a vocabulary.")
    added = content.get("added_tokens") or []
    if not isinstance(added, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("id"), int) for entry in added
    ):
        raise WonderlandError("This is not the JSON of a tokenizer: its added tokens are damaged.")
    ids = [*(vocab.values() if isinstance(vocab, dict) else range(len(vocab))), *(entry["id"] for entry in added)]
    check("tokenizer_tokens", len(ids), "This tokenizer")
    most = limit("tokenizer_tokens")
    if not all(isinstance(i, int) and not isinstance(i, bool) and 0 <= i < most for i in ids):
        raise WonderlandError(f"This tokenizer has ids outside of 0 to {most - 1:,}: it is damaged.")
    if ids and max(ids) >= len(set(ids)):
        raise WonderlandError(
            f"This tokenizer has {len(set(ids)):,} tokens with ids up to {max(ids):,}: ids must have no gaps."
        )
    check_grammar(content)
    # Padding and truncation are not used, so what a file says of them is not read.
    if content.get("padding") is not None or content.get("truncation") is not None:
        return json.dumps({**content, "padding": None, "truncation": None})
    return text


def checked_roles(value: Any) -> dict[str, str]:
    """Roles of special tokens from a saved encoder, checked; None counts as no roles."""
    roles = {} if value is None else value
    if not isinstance(roles, dict) or not all(role in ROLES and isinstance(name, str) for role, name in roles.items()):
        raise WonderlandError("The roles of special tokens in this file are damaged.")
    return roles


def read_roles(path: Path) -> dict[str, str]:
    """Special tokens by role, from the tokenizer_config.json that `transformers` writes."""
    config_path = path.with_name("tokenizer_config.json")
    if not config_path.is_file():
        return {}
    config = read_json(config_path, strict=False)
    roles = {}
    for role, name in TRANSFORMERS_NAMES.items():
        value = config.get(name) if isinstance(config, dict) else None
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            roles[role] = value
    return roles
