"""Text of any encoding as UTF-8: byte order marks, UTF-16 without one, and Western European bytes; the guess is reported."""

import codecs
import re
import string
from pathlib import Path

from wonderland.core import WonderlandError
from wonderland.data.dataset import Finding

_CONTROL = re.compile(rb"[\x01-\x08\x0b\x0e-\x1f\x7f]")
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
NAMES = {"cp1252": "Windows-1252 (Western European)", "latin-1": "Latin-1 (Western European)"}
WESTERN = 0.3  # the largest share of letters beyond ASCII in a text that is taken for Western European
_ADVICE = "Name its encoding with --encoding, such as cp1252, cp1251, shift_jis or gb18030."


def to_utf8(data: bytes, path: Path, asked: str | None = None) -> tuple[bytes, list[Finding]]:
    """The bytes as UTF-8 text without a byte order mark and with plain line ends, and what was found out about them.

    >>> to_utf8("a,é\\n".encode("cp1252"), Path("a.csv"))[0].decode()
    'a,é\\n'
    """
    findings: list[Finding] = []
    if asked is not None:
        data = _decoded(data, asked, path).encode("utf-8", "surrogatepass")
    elif (encoding := _marked_or_wide(data)) is not None:
        data = _decoded(data, encoding, path).encode("utf-8")
        findings.append(_finding(path, encoding.upper()))
    elif (at := data.find(b"\0")) >= 0:
        raise WonderlandError(
            f"{path} is not text: there is a zero byte at offset {at} (line {line_number(data, at)})."
        )
    else:
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            encoding = _western(data)
            if encoding is None:
                raise WonderlandError(
                    f"{path} is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start} (line "
                    f"{line_number(data, error.start)}). {_ADVICE}"
                ) from error
            data = data.decode(encoding).encode("utf-8")
            findings.append(_finding(path, NAMES[encoding]))
    data = data.removeprefix(b"\xef\xbb\xbf")
    at = data.find(b"\0")
    if at >= 0:
        raise WonderlandError(
            f"{path} is not text: there is a zero byte at offset {at} (line {line_number(data, at)})."
        )
    return data.replace(b"\r", b"\n") if b"\r" in data and b"\n" not in data else data, findings


def _finding(path: Path, encoding: str) -> Finding:
    text = f"{path.name} is not UTF-8; it is read as {encoding}. If letters look wrong, name the encoding (--encoding)."
    return Finding("encoding", path.name, 1, text)


def _decoded(data: bytes, encoding: str, path: Path) -> str:
    try:
        return data.decode(encoding)
    except LookupError as error:  # a transform such as zlib, which bytes.decode refuses
        raise WonderlandError(f"{encoding} is no encoding of text. {_ADVICE}") from error
    except ValueError as error:
        at = getattr(error, "start", 0)
        raise WonderlandError(
            f"{path} is not {encoding} text: the byte at offset {at} does not fit. Name another encoding (--encoding)."
        ) from error


def _marked_or_wide(data: bytes) -> str | None:
    """The encoding that a byte order mark names, or UTF-16 without one: every other byte of a sample is mostly zero."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    sample = data[: 1 << 16]
    sample = sample[: len(sample) // 2 * 2]
    if len(sample) < 4:
        return None
    even, odd = (sample[i::2].count(0) / (len(sample) // 2) for i in (0, 1))
    if odd > 0.5 and even < 0.05:
        return "utf-16-le"
    return "utf-16-be" if even > 0.5 and odd < 0.05 else None


def _western(data: bytes) -> str | None:
    """The Western European encoding of bytes that are not UTF-8; None where they do not look like such a text."""
    if _CONTROL.search(data):
        return None
    letters = len(data) - len(data.translate(None, string.ascii_letters.encode()))
    beyond = len(data) - len(data.translate(None, bytes(range(128, 256))))
    if beyond > WESTERN * (letters + beyond) and beyond > 3:
        return None
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def line_number(data: bytes, offset: int) -> int:
    """The line of a text that a byte is on, from 1."""
    return data.count(b"\n", 0, offset) + 1
