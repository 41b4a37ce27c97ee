"""The closed grammar of tokenizer.json: the parts that are understood, each with bounded arguments. All else is refused by name.

The native library trusts its file: it panics, takes all memory or never returns on some of what JSON can say. What follows this
grammar needs memory and time proportional to the text, and gives the same tokens each time.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from wonderland.core import WonderlandError, nearest
from wonderland.core.limits import check as check_limit
from wonderland.core.schema import Schema, entries, items, number, one_of, optional, true_or_false, values, whole
from wonderland.data.text.charsmap import check_charsmap
from wonderland.data.text.split_pattern import check_pattern

LONGEST_TOKEN = 1024
DEEPEST, MOST_PARTS = 4, 64
MOST_GROWTH = 32
_HALVES = re.compile("[\ud800-\udfff]")  # of characters
_SIDES = one_of("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")


def short(most: int = 100, least: int = 0) -> Schema:
    """Text of bounded length, without halves of characters."""

    def check(value: Any) -> str | None:
        if not isinstance(value, str) or not least <= len(value) <= most or _HALVES.search(value):
            return f" must be text of {least:,} to {most:,} characters, not {value!r:.60}"
        return None

    return check


def pair(value: Any) -> str | None:
    """A special token and its id."""
    fine = (
        isinstance(value, list)
        and len(value) == 2
        and short(LONGEST_TOKEN)(value[0]) is None
        and whole(0, 1 << 24)(value[1]) is None
    )
    return None if fine else f" must be a token and its id, not {value!r:.60}"


def pattern(value: Any) -> str | None:
    """A text, or a regular expression in linear time."""
    if not isinstance(value, dict) or len(value) != 1 or (kind := next(iter(value))) not in ("String", "Regex"):
        return f" must be a String or a Regex, not {value!r:.60}"
    if wrong := short(4000, 1)(value[kind]):
        return wrong
    if kind == "Regex":
        check_pattern(value[kind])
    return None


def charsmap(value: Any) -> str | None:
    """A precompiled map of characters."""
    if not isinstance(value, str):
        return f" must be text, not {value!r:.60}"
    check_charsmap(value)
    return None


_FLAG, _CHARACTER = true_or_false, short(1, 1)
_BYTES = {"add_prefix_space": _FLAG, "trim_offsets": _FLAG, "use_regex": _FLAG}
_SPACES = {"replacement": _CHARACTER, "prepend_scheme": one_of("first", "never", "always"), "split": _FLAG, "add_prefix_space": _FLAG, "str_rep": _CHARACTER}  # fmt: skip
_PIECE_OF_TEMPLATE = values(entries({"id": short(LONGEST_TOKEN)}, {"type_id": whole(0, 1 << 16)}))
_TEMPLATE = items(_PIECE_OF_TEMPLATE, 0, 64)
_TOKEN_OF_TEMPLATE = entries({"id": short(LONGEST_TOKEN), "ids": items(whole(0, 1 << 24), 0, 64), "tokens": items(short(LONGEST_TOKEN), 0, 64)})  # fmt: skip

# For each slot: the arguments of each part, those that must be there first.
Arguments = tuple[Mapping[str, Schema], Mapping[str, Schema]]
PARTS: dict[str, dict[str, Arguments]] = {
    "normalizer": {
        "BertNormalizer": ({}, {"clean_text": _FLAG, "handle_chinese_chars": _FLAG, "strip_accents": optional(_FLAG), "lowercase": _FLAG}),
        "Strip": ({}, {"strip_left": _FLAG, "strip_right": _FLAG}),
        "Prepend": ({"prepend": short(16, 1)}, {}),
        "Replace": ({"pattern": pattern, "content": short(100)}, {}),
        "Precompiled": ({"precompiled_charsmap": charsmap}, {}),
        **{name: ({}, {}) for name in ("NFC", "NFD", "NFKC", "NFKD", "Nmt", "StripAccents", "Lowercase")},
        "ByteLevel": ({}, _BYTES),
    },
    "pre_tokenizer": {
        **{name: ({}, {}) for name in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts")},
        "ByteLevel": ({}, _BYTES),
        "CharDelimiterSplit": ({"delimiter": _CHARACTER}, {}),
        "Digits": ({}, {"individual_digits": _FLAG}),
        "FixedLength": ({"length": whole(1, 10_000)}, {}),
        "Metaspace": ({"replacement": _CHARACTER}, _SPACES),
        "Punctuation": ({}, {"behavior": _SIDES}),
        "Split": ({"pattern": pattern, "behavior": _SIDES}, {"invert": _FLAG}),
    },
    "post_processor": {
        "BertProcessing": ({"sep": pair, "cls": pair}, {}),
        "RobertaProcessing": ({"sep": pair, "cls": pair}, _BYTES),
        "ByteLevel": ({}, _BYTES),
        "TemplateProcessing": ({"single": _TEMPLATE, "pair": _TEMPLATE, "special_tokens": values(_TOKEN_OF_TEMPLATE)}, {}),
    },
    "decoder": {
        "BPEDecoder": ({}, {"suffix": short(16)}),
        "ByteFallback": ({}, {}),
        "Fuse": ({}, {}),
        "ByteLevel": ({}, _BYTES),
        "CTC": ({}, {"pad_token": short(), "word_delimiter_token": short(), "cleanup": _FLAG}),
        "Metaspace": ({"replacement": _CHARACTER}, _SPACES),
        "Replace": ({"pattern": pattern, "content": short(100)}, {}),
        "Strip": ({"content": _CHARACTER}, {"start": whole(0, 1000), "stop": whole(0, 0)}),
        "WordPiece": ({}, {"prefix": short(16), "cleanup": _FLAG}),
    },
    "model": {
        "BPE": (
            {},
            {
                "dropout": optional(number(0, 1)), "unk_token": optional(short(LONGEST_TOKEN)), "fuse_unk": _FLAG, "byte_fallback": _FLAG,
                "ignore_merges": _FLAG, "continuing_subword_prefix": optional(short(16)), "end_of_word_suffix": optional(short(16)),
            },
        ),
        "Unigram": ({}, {"unk_id": optional(whole(0, 1 << 24)), "byte_fallback": _FLAG}),
        "WordPiece": ({}, {"unk_token": short(LONGEST_TOKEN), "continuing_subword_prefix": short(16), "max_input_chars_per_word": whole(0, 1000)}),
        "WordLevel": ({}, {"unk_token": short(LONGEST_TOKEN)}),
    },
}  # fmt: skip
_MEMBERS = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "post_processor": "processors", "decoder": "decoders"}  # fmt: skip
_TOP = {"version", "truncation", "padding", "added_tokens", "model", *_MEMBERS}
_ADDED = entries(
    {"id": whole(0, 1 << 24), "content": short(LONGEST_TOKEN, 1)},
    dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), _FLAG),
)


def check_grammar(content: Mapping[str, Any]) -> None:
    """Refuse the content of a tokenizer.json that does not follow the grammar."""
    for name in content:
        if name not in _TOP:
            raise _refused(f"it has an entry {name[:60]!r}, which is not known")
    added = content.get("added_tokens") or []
    check_limit("tokenizer_added", len(added), "This tokenizer")
    if wrong := items(_ADDED)(added):
        raise _refused(f"added_tokens{wrong}")
    for slot in _MEMBERS:
        flat = list(_flat(content.get(slot), slot, slot, 0))
        if len(flat) > MOST_PARTS:
            raise _refused(f"{slot} has {len(flat):,} parts, more than {MOST_PARTS}")
        growth = 1.0
        for where, part in flat:
            _check_part(where, part, slot)
            growth *= _growth(part)
        if growth > MOST_GROWTH:
            raise _refused(f"{slot} makes a text up to {growth:,.0f} times as long, more than {MOST_GROWTH}")
    _check_model(content["model"], {entry["content"] for entry in added})
    _check_templates(content)


def _flat(node: Any, slot: str, where: str, depth: int) -> Any:
    """The parts of a slot, with their places; sequences are unpacked."""
    if node is None:
        return
    if not isinstance(node, dict) or not isinstance(node.get("type"), str):
        raise _refused(f"{where} must be a part with a type, not {node!r:.60}")
    if node["type"] != "Sequence":
        yield where, node
        return
    key = _MEMBERS[slot]
    inner = node.get(key)
    if depth >= DEEPEST or not isinstance(inner, list) or len(inner) > MOST_PARTS or set(node) != {"type", key}:
        raise _refused(f"{where} is a sequence that is nested too deeply or damaged")
    for place, member in enumerate(inner):
        if member is None:
            raise _refused(f"{where}[{place}] must be a part with a type, not None")
        yield from _flat(member, slot, f"{where}[{place}]", depth + 1)


def _check_part(where: str, part: Mapping[str, Any], slot: str) -> None:
    known = PARTS[slot]
    kind = part["type"]
    if kind not in known:
        raise _refused(f"{where} is of type {kind[:60]!r}.{nearest(kind, known)} Known are {', '.join(known)}")
    needed, more = known[kind]
    for name in part:
        if name not in needed and name not in more and name not in ("type", "vocab", "merges"):
            raise _refused(f"{where} ({kind}) has an argument {name[:60]!r}, which is not known")
    if wrong := entries(needed, more)(part):
        raise _refused(f"{where} ({kind}){wrong}")


def _growth(part: Mapping[str, Any]) -> float:
    """How many times longer a Replace can make a text."""
    if part["type"] != "Replace":
        return 1.0
    content, pattern = part["content"], part["pattern"]
    longest = len(pattern["String"]) if "String" in pattern else 1
    return max(1.0, len(content.encode()) / longest)


def _check_model(model: Any, added: set[str]) -> None:
    """The model and its vocabulary: names, scores, merges, and an unknown token that exists."""
    kind = model.get("type", "BPE" if "merges" in model else None)
    if not isinstance(kind, str):
        raise _refused(f"model must have a type, not {kind!r:.60}")
    _check_part("model", {**model, "type": kind}, "model")
    vocab = model["vocab"]
    if isinstance(vocab, dict) != (kind != "Unigram"):
        raise _refused(f"model ({kind}) has a vocabulary of another form")
    scored: Callable[[Any], bool] = lambda entry: (  # noqa: E731
        isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], int | float) and not isinstance(entry[1], bool) and math.isfinite(entry[1])
    )  # fmt: skip
    if kind == "Unigram" and not all(map(scored, vocab)):
        raise _refused("model (Unigram) has a token without a finite score")
    if isinstance(vocab, dict) and len(set(vocab.values())) < len(vocab):
        raise _refused("two tokens have one id")
    named = short(LONGEST_TOKEN)
    names = list(vocab) if isinstance(vocab, dict) else [entry[0] for entry in vocab]
    if not _all_short(names):
        odd = next(name for name in names if named(name))
        raise _refused(f"the vocabulary has a token that{named(odd)}")
    if kind == "BPE":
        if model.get("dropout"):
            raise _refused(f"model (BPE) has dropout={model['dropout']}, which cuts a text differently each time")
        merges = model.get("merges", [])
        if not isinstance(merges, list):
            raise _refused("model (BPE) has merges that are no list")
        whole_merge = named if all(isinstance(merge, str) for merge in merges) else items(named, 2, 2)
        if not _all_short(merges) and any(map(whole_merge, merges)):
            raise _refused("model (BPE) has a merge that is no pair of tokens")
        check_limit("tokenizer_tokens", len(merges) // 4, "This tokenizer (a quarter of its merges)")
        if prefix := model.get("continuing_subword_prefix"):
            _check_prefixed(merges, prefix)
    unknown = model.get("unk_token")
    if unknown is not None and unknown not in vocab and (kind == "BPE" or unknown not in added):
        raise _refused(f"its unknown token {unknown[:60]!r} is not in its vocabulary")
    if kind in ("WordPiece", "WordLevel") and vocab and unknown is None:
        raise _refused(f"model ({kind}) names no unknown token")
    if kind == "Unigram" and model.get("unk_id") is not None and model["unk_id"] >= len(vocab):
        raise _refused(f"its unknown token {model['unk_id']} is not in its vocabulary of {len(vocab):,}")


def _check_prefixed(merges: list[Any], prefix: str) -> None:
    """The second token of a merge continues a word, so it begins with the prefix, which is cut off there."""
    for merge in merges:
        second = merge.partition(" ")[2] if isinstance(merge, str) else merge[1]
        if not second.startswith(prefix):
            raise _refused(f"model (BPE) has a merge whose second token {second[:60]!r} does not begin with {prefix!r}")


def _all_short(names: list[Any]) -> bool:
    """Whether all are text of bounded length, without halves of characters: for many names, faster than one by one."""
    try:
        return max(map(len, names), default=0) <= LONGEST_TOKEN and not _HALVES.search("".join(names))
    except TypeError:
        return False


def _check_templates(content: Mapping[str, Any]) -> None:
    """Each special token that a template names must be described, with as many ids as names."""
    for where, part in _flat(content.get("post_processor"), "post_processor", "post_processor", 0):
        if part["type"] != "TemplateProcessing":
            continue
        described = part["special_tokens"]
        for piece in (*part["single"], *part["pair"]):
            if len(piece) != 1 or (kind := next(iter(piece))) not in ("Sequence", "SpecialToken"):
                raise _refused(f"{where} (TemplateProcessing) has a piece {str(piece)[:60]!r}, which is not known")
            name = piece[kind]["id"]
            if (name not in ("A", "B")) if kind == "Sequence" else name not in described:
                raise _refused(f"{where} (TemplateProcessing) names {name[:60]!r}, which is not described")
        for name, token in described.items():
            if token["id"] != name or len(token["ids"]) != len(token["tokens"]):
                raise _refused(f"{where} (TemplateProcessing) describes {name[:60]!r} in two ways")


def _refused(reason: str) -> WonderlandError:
    return WonderlandError(f"This tokenizer is not read: {reason}.")
