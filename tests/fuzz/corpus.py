"""What once failed: numbers of cases of `tests/fuzz/cases.py`, and inputs written down.

An input is kept as the smallest change that shows the fault, applied to a fresh run.
"""

from typing import Any

# Reports of damaged calibration and records, best weights of other names and shapes, a store of histories with another type,
# and a model of a million classes that was built before it was compared with its checkpoint.
CASES = (50, 215, 253, 290, 332, 336, 369, 6074)

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
)

# Text in place of a whole JSON file.
TEXTS = (
    '{"format": 2, "format": 2}',
    '{"format": 2, "level": NaN}',
    '{"format": 1e999}',
    '{"format": ' + "9" * 5000 + "}",
    "[" * 100_000,
)

SPECS = ("Mamba(" * 300, "nn.Mamba(dim=" + "9" * 5000 + ")", "__import__('os')", "Decoder(**{})", "MLP(dim=1e999)", "(" * 5000, "Mamba(dim=[" + "0," * 4000 + "])", "\ud800", "a\x00b")  # fmt: skip
PATTERNS = ("((((){1000}){1000}){1000}){1000}", "((a?){30}){800}", "(a?){1000}", "(" * 3000, "[" * 3000, "a{99999999999999999999}", "(?:" * 500, "\\", "[z-a]", "(a+)+$")  # fmt: skip
SCHEMAS: tuple[Any, ...] = (
    {"enum": [f"name{i}" for i in range(200_000)]}, {"type": "x"}, {"$ref": "#"}, {"anyOf": []}, {"properties": 3}, [], None,
    {"type": "integer", "minimum": 10**400}, {"type": "string", "maxLength": 10**12}, {"type": "array", "minItems": 10**9},
)  # fmt: skip

# Changes of a learned tokenizer: (kind, path of the entry, new value).
TOKENIZERS: tuple[tuple[str, tuple[Any, ...], Any], ...] = (
    ("words", ("model", "unk_token"), "<unka>"),
    ("words", ("model", "unk_token"), "<u\x00nk>"),
    ("unigram", ("model", "vocab", 7), [[[[]]]] * 200),
)
