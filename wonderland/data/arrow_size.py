"""How many bytes the batches of an Arrow file unpack to, read from the messages before any buffer is unpacked."""

import struct
from collections.abc import Iterator
from typing import Any

_DICTIONARY, _RECORDS = 2, 3  # of the union MessageHeader in Arrow's Message.fbs
FIRST_MESSAGE = 8  # after the letters ARROW1 and two bytes of padding


def unpacked_sizes(source: Any, arrow: Any) -> Iterator[int]:
    """The bytes that each batch and dictionary of an open Arrow file unpacks to, in the order of the file.

    A packed buffer begins with its length once unpacked, which the reader allocates as it is written there.
    """
    source.seek(FIRST_MESSAGE)
    reader = arrow.ipc.MessageReader.open_stream(source)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        yield _unpacked(memoryview(message.metadata), message.body)


def _unpacked(metadata: memoryview, body: Any) -> int:
    """The bytes of one message."""
    message = _number(metadata, 0, "<I")
    kind, header = _field(metadata, message, 1), _field(metadata, message, 2)
    if kind is None or header is None or body is None:
        return 0
    batch = header + _number(metadata, header, "<I")
    if metadata[kind] == _DICTIONARY:
        data = _field(metadata, batch, 1)
        if data is None:
            return 0
        batch = data + _number(metadata, data, "<I")
    elif metadata[kind] != _RECORDS:
        return 0
    buffers, packed = _field(metadata, batch, 2), _field(metadata, batch, 3) is not None
    if buffers is None:
        return 0
    first, content, total = buffers + _number(metadata, buffers, "<I"), memoryview(body), 0
    for i in range(_number(metadata, first, "<I")):
        place, length = struct.unpack_from("<qq", metadata, first + 4 + 16 * i)
        unpacked = _number(content, place, "<q") if packed and length >= 8 and place >= 0 else -1
        total += length if unpacked < 0 else unpacked
    return total


def _field(data: memoryview, table: int, index: int) -> int | None:
    """The place of a field of a flatbuffer's table; None for one that is not there."""
    names = table - _number(data, table, "<i")
    entry = 4 + 2 * index
    place = _number(data, names + entry, "<H") if entry < _number(data, names, "<H") else 0
    return table + place if place else None


def _number(data: memoryview, place: int, form: str) -> int:
    if place < 0:
        raise struct.error("a place before the beginning")
    return struct.unpack_from(form, data, place)[0]
