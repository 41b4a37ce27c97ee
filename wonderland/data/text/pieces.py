"""Pieces: the bytes that each token decodes to, so that generation and constraints need no tokenizer."""

import re
from typing import Any

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def byte_letters() -> dict[str, int]:
    """The byte behind each letter of byte-level tokenizers: printable bytes stand for themselves, the others are written from
    U+0100 on.

    >>> letters = byte_letters()
    >>> letters["a"], letters["Ġ"], len(letters)
    (97, 32, 256)
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


def pieces_of(saved: dict[str, Any], tokens: list[str | None], specials: set[int]) -> tuple[list[bytes], bool]:
    """The bytes of each id (none for special tokens), and whether the first space of a decoded text is dropped."""
    decoders = _flat(saved.get("decoder"), "decoders")
    kinds = {decoder.get("type") for decoder in decoders}
    letters = byte_letters()
    added = {int(entry["id"]) for entry in saved.get("added_tokens", [])}
    prefix = next(
        (str(decoder.get("prefix", "##")) for decoder in decoders if decoder.get("type") == "WordPiece"), None
    )
    suffix = next((str(d.get("suffix", "</w>")) for d in decoders if d.get("type") == "BPEDecoder"), None)
    spaces = [str(d.get("replacement", "▁")) for d in decoders if d.get("type") == "Metaspace"]
    spaces += [
        str(d["pattern"].get("String"))
        for d in decoders
        if d.get("type") == "Replace" and isinstance(d.get("pattern"), dict) and d.get("content") == " "
    ]

    def bytes_of(i: int, token: str | None) -> bytes:
        if token is None or i in specials:
            return b""
        if "ByteLevel" in kinds and i not in added and all(letter in letters for letter in token):
            return bytes(letters[letter] for letter in token)
        if "ByteFallback" in kinds and (match := _BYTE.fullmatch(token)):
            return bytes([int(match[1], 16)])
        if prefix is not None:
            return token.removeprefix(prefix).encode() if token.startswith(prefix) else b" " + token.encode()
        if suffix is not None:
            return token.replace(suffix, " ").encode()
        for mark in spaces:
            token = token.replace(mark, " ")
        return (b"" if decoders else b" ") + token.encode()

    return [bytes_of(i, token) for i, token in enumerate(tokens)], prefix is not None or not decoders


def _flat(node: Any, inner: str) -> list[dict[str, Any]]:
    """The members of a sequence of decoders, or the decoder itself."""
    if not isinstance(node, dict):
        return []
    if node.get("type") == "Sequence":
        return [decoder for member in node.get(inner, []) for decoder in _flat(member, inner)]
    return [node]
