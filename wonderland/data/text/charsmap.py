"""Precompiled character maps of sentencepiece: a double-array trie and the texts it points to, checked before native code walks through them."""

import base64
import binascii
import struct

import numpy as np

from wonderland.core import WonderlandError

MOST_BYTES = 4 << 20
LONGEST_TEXT = 64


def check_charsmap(encoded: str) -> None:
    """Refuse a map whose trie leads out of its array, or whose texts are damaged or long.

    The native code follows a text byte by byte: from a node it reads the unit at `node ^ byte`, for every byte that the text may
    have, so the whole block of 256 units around each node has to exist.
    """
    if len(encoded) > 2 * MOST_BYTES:
        raise _damaged("it is larger than 4 MiB")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _damaged("it is not base64") from error
    size = struct.unpack("<I", data[:4])[0] if len(data) >= 4 else 0
    if not size or size % 4 or size > len(data) - 4:
        raise _damaged("its trie is cut short")
    units, texts = np.frombuffer(data, "<u4", size // 4, 4).astype(np.int64), data[4 + size :]
    try:
        texts.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _damaged("its texts are not UTF-8") from error
    if max(map(len, texts.split(b"\0"))) > LONGEST_TEXT:
        raise _damaged(f"one of its texts is longer than {LONGEST_TEXT} bytes")
    _walk(units, texts)


def _walk(units: np.ndarray, texts: bytes) -> None:
    """Visit every node that some text reaches."""
    seen = np.zeros(len(units) | 0xFF, bool)
    nodes = _offset(units[:1])
    letters = np.arange(1, 256)
    # Bytes that continue a character: no text may begin there.
    starts = np.array([byte & 0xC0 != 0x80 for byte in texts] + [True])
    while len(nodes):
        if (nodes | 0xFF).max() >= len(units):
            raise _damaged("its trie leads out of its array")
        nodes = np.unique(nodes[~seen[nodes]])
        seen[nodes] = True
        reached = []
        for part in np.array_split(nodes, max(1, len(nodes) // 4096)):
            places = part[:, None] ^ letters
            unit = units[places]
            there = (unit & 0x800000FF) == letters
            places, unit = places[there], unit[there]
            following = places ^ _offset(unit)
            leaves = following[(unit >> 8) & 1 == 1]
            if len(leaves) and leaves.max() >= len(units):
                raise _damaged("its trie leads out of its array")
            values = units[leaves] & 0x7FFFFFFF
            if len(values) and (values.max() > len(texts) or not starts[values].all()):
                raise _damaged("it points between or behind its texts")
            reached.append(np.unique(following))
        nodes = np.concatenate(reached) if reached else nodes[:0]


def _offset(unit: np.ndarray) -> np.ndarray:
    return (unit >> 10) << ((unit & (1 << 9)) >> 6)


def _damaged(reason: str) -> WonderlandError:
    return WonderlandError(f"The precompiled character map is damaged: {reason}.")
