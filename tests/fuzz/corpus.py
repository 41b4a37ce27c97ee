"""What once failed, written down.

An input is kept as the smallest change that shows the fault, applied to a fresh run.
"""

from typing import Any

# (name of the run, file with tensors, tensor, change of it): best weights of another shape, a store of histories of another type.
TENSORS = (
    (
        "rating",
        "checkpoint/step-000000004.safetensors",
        "state.best.model.user.weight",
        lambda tensor: tensor.flatten(),
    ),
    ("rating", "preprocess.safetensors", "begins", lambda tensor: tensor.bool()),
)

# (name of the run, file with tensors, tensor, its other name): best weights of other names.
RENAMED = (
    (
        "rating",
        "checkpoint/step-000000004.safetensors",
        "state.best.model.user.weight",
        "state.best.model.users.weight",
    ),
)

# (name of the run, file, content)
CONTENTS = (
    ("image", "metrics.jsonl", b'{"a":' * 50_000 + b"1"),
    ("columns", "metrics.jsonl", b"[" * 100_000),
    ("columns", "metrics.jsonl", b"\n" * 2_000_000),
)

# (name of the run, file, path of the entry, new value)
ENTRIES: tuple[tuple[str, str, tuple[Any, ...], Any], ...] = (
    ("image", "preprocess.json", ("mean", 0), "dark"),
    ("image", "config.json", ("recipe", "model", "arguments", "mean", 0), "dark"),
    ("image", "config.json", ("recipe", "model", "arguments", "stem"), True),
    ("table", "trust.json", ("measured", "test", "metrics", "accuracy"), 10**39),
    ("table", "trust.json", ("measured", "test", "reliability", "after"), -0.5),
    ("table", "config.json", ("recipe", "ensemble", "members"), 10**6),
    ("text", "config.json", ("recipe", "model", "arguments", "classes"), 10**6),
    ("corpus", "config.json", ("recipe", "model", "arguments", "depth"), 10**9),
    ("corpus", "config.json", ("recipe", "model", "arguments", "dim"), 1 << 24),
    ("environment", "preprocess.json", ("episodes",), 10**12),
    ("pairs", "trust.json", ("measured", "test", "reliability", "after"), -0.5),
    ("nodes", "trust.json", ("measured", "test", "reliability", "after", 0), 3),
)

# Text in place of a whole JSON file.
TEXTS = (
    '{"format": 2, "format": 2}',
    '{"format": 2, "level": NaN}',
    '{"format": 1e999}',
    '{"format": ' + "9" * 5000 + "}",
    "[" * 100_000,
    "[" + "[]," * 600_000 + "[]]",
)

SPECS = ("Mamba(" * 300, "nn.Mamba(dim=" + "9" * 5000 + ")", "__import__('os')", "Decoder(**{})", "MLP(dim=1e999)", "(" * 5000, "Mamba(dim=[" + "0," * 4000 + "])", "\ud800", "a\x00b")  # fmt: skip
PATTERNS = ("((((){1000}){1000}){1000}){1000}", "((a?){30}){800}", "(a?){1000}", "(" * 3000, "[" * 3000, "a{99999999999999999999}", "(?:" * 500, "\\", "[z-a]", "(a+)+$")  # fmt: skip
SCHEMAS: tuple[Any, ...] = (
    {"enum": [f"name{i}" for i in range(200_000)]}, {"type": "x"}, {"$ref": "#"}, {"anyOf": []}, {"properties": 3}, [], None,
    {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(5000)}}, {"const": "x" * 3_000_000},
    {"type": "object", "properties": {f"p{i}": {"type": "object"} for i in range(3000)}}, {"type": "object", "properties": {"a" * 90_000: {}}},
    {"type": "object", "properties": {f"p{i}": {"type": "number", "minimum": i, "maximum": 10**8 + i} for i in range(5000)}},
    {"type": "integer", "minimum": 10**400}, {"type": "string", "maxLength": 10**12}, {"type": "array", "minItems": 10**9},
)  # fmt: skip

# Changes of a learned tokenizer: (kind, path of the entry, new value).
TOKENIZERS: tuple[tuple[str, tuple[Any, ...], Any], ...] = (
    ("words", ("model", "unk_token"), "<unka>"),
    ("words", ("model", "unk_token"), "<u\x00nk>"),
    ("unigram", ("model", "vocab", 7), [[[[]]]] * 200),
)
