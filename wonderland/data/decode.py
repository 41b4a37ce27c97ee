"""Decode an image file safely: the format is read from the content, and the size is checked before pixels are decoded."""

import io
import math
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import (
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    JpegImagePlugin,
    TiffImagePlugin,
    UnidentifiedImageError,
)

from wonderland.core import WonderlandError, read_bytes
from wonderland.core.limits import check, limit

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
GAP = 3.0  # blocks of pixels are averaged first where a side shrinks by at least twice this factor
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".jpe", ".webp", ".gif", ".bmp", ".tif", ".tiff"})
_BYTES_OF_PIXEL = {
    "1": 1,
    "L": 1,
    "P": 1,
    "I;16": 2,
    "I;16B": 2,
    "I;16L": 2,
}  # as Pillow stores them; all others take 4
_EXIF_ORIENTATION = 0x0112
_EXIF_TRANSPOSE = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@contextmanager
def guard_decompression() -> Iterator[None]:
    """Turn Pillow's warning about decompression bombs into an error, and silence its other warnings.

    Warning filters belong to the whole process: with threads, enter this once around all of them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        usual = Image.MAX_IMAGE_PIXELS
        Image.MAX_IMAGE_PIXELS = max(usual or 0, limit("image_pixels"))
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = usual


def decode(source: str | Path, size: tuple[int, int] | None = None, *, limit_bytes: int | None = None) -> np.ndarray:
    """The pixels of a PNG, JPEG, WebP, GIF, BMP or TIFF file, upright, as uint8: (h, w) when it is grey, (h, w, 3) otherwise.

    With `size` (height, width) the largest centred piece of that shape is kept and resized with antialiasing. Alpha is laid
    over white, grey of 16 bits and of floats is scaled to 8 bits, and of an animation or several pages the first one is taken.
    """
    with guard_decompression():
        return decode_bytes(read_bytes(source, limit_bytes or "image_bytes"), source, size)


def decode_bytes(data: bytes, path: str | Path, size: tuple[int, int] | None = None) -> np.ndarray:
    """`decode` for bytes in memory; call it inside `guard_decompression`."""
    image = _open(data, path)
    try:
        orientation = _orientation(image)
        if size and orientation >= 5:
            size = size[1], size[0]
        if size:
            image.draft(None, (2 * size[1], 2 * size[0]))
        image = _to_grey_or_rgb(image)
        if size:
            image = _fit(image, *size)
        if orientation in _EXIF_TRANSPOSE:
            image = image.transpose(_EXIF_TRANSPOSE[orientation])
        return _drop_equal_channels(np.array(image))
    except Exception as error:
        # Decoders raise all kinds of exceptions on damaged or hostile bytes; the user gets one message for all of them.
        raise _damaged(path, error) from error


def measure(path: str | Path) -> tuple[int, int]:
    """Height and width from the header, before any pixel is decoded; call it inside `guard_decompression`."""
    try:
        with open(path, "rb") as file:
            image = _open(file, path)
            return image.height, image.width
    except OSError as error:
        raise WonderlandError(f"{path} cannot be read ({error.strerror or error}).") from error


def look(path: str | Path) -> tuple[int, int, str]:
    """The size once upright, and what decoding will change: "animated", "CMYK", "16 bits" or nothing."""
    try:
        with open(path, "rb") as file:
            image = _open(file, path)
            note = "animated" if getattr(image, "is_animated", False) else "CMYK" if image.mode == "CMYK" else ""
            tall, wide = image.height, image.width
            if image.format == "JPEG" and _orientation(image) >= 5:
                tall, wide = wide, tall
            return tall, wide, note or ("16 bits" if image.mode.startswith("I") else "")
    except OSError as error:
        raise WonderlandError(f"{path} cannot be read ({error.strerror or error}).") from error


def conform(image: np.ndarray, channels: int, height: int, width: int) -> np.ndarray:
    """A uint8 picture (h, w) or (h, w, 3) as (channels, height, width): cut, resized, grey or coloured as asked."""
    if image.shape[:2] != (height, width):
        image = np.array(_fit(Image.fromarray(image), height, width))
    if channels == 3 and image.ndim == 2:
        return np.broadcast_to(image, (3, height, width))
    if channels == 1 and image.ndim == 3:
        image = np.array(Image.fromarray(image).convert("L"))
    return image[None] if image.ndim == 2 else image.transpose(2, 0, 1)


def _open(data: Any, path: str | Path) -> Image.Image:
    """Open bytes or a file as a Pillow image; only the header is read."""
    file = io.BytesIO(data) if isinstance(data, bytes) else data
    head = file.read(32)
    file.seek(0)
    if not head:
        raise WonderlandError(f"{path} is an empty file, not an image. Remove it, or copy it again.")
    _refuse_too_many_pixels(path, *(_size_in_header(head) or (0, 0)))
    try:
        image = Image.open(file, formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        # Sizes that are not read from the first bytes above: Pillow's own check comes before ours, which names the file.
        image = _without_pillows_check(file, head, path)
    except UnidentifiedImageError as error:
        raise WonderlandError(
            f"{path} is not a PNG, JPEG, WebP, GIF, BMP or TIFF image, whatever its name says. Convert it, or remove it."
        ) from error
    except Exception as error:
        raise _damaged(path, error) from error
    _refuse_too_many_pixels(path, image.width, image.height)
    check("decoded_bytes", image.width * image.height * _BYTES_OF_PIXEL.get(image.mode, 4), f"{path}, once decoded,")
    return image


def _without_pillows_check(file: Any, head: bytes, path: str | Path) -> Image.Image:
    """Open a file of a known format whatever its size; only the header is read."""
    plugins = {
        b"\xff\xd8": JpegImagePlugin.JpegImageFile,
        b"GIF8": GifImagePlugin.GifImageFile,
        b"BM": BmpImagePlugin.BmpImageFile,
        b"II": TiffImagePlugin.TiffImageFile,
        b"MM": TiffImagePlugin.TiffImageFile,
    }
    file.seek(0)
    try:
        return next(plugin for start, plugin in plugins.items() if head.startswith(start))(file)
    except Exception as error:
        raise _damaged(path, error) from error


def _size_in_header(head: bytes) -> tuple[int, int] | None:
    """Width and height from the first bytes of a PNG or WebP: opening a WebP already allocates its pixels."""
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        return struct.unpack(">II", head[16:24])
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP" or len(head) < 30:
        return None
    kind = head[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    wide, tall = struct.unpack("<HH", head[26:30])
    return wide & 0x3FFF, tall & 0x3FFF


def _refuse_too_many_pixels(path: str | Path, width: int, height: int) -> None:
    check("image_pixels", width * height, f"{path} ({width} x {height})")


def _damaged(path: str | Path, error: Exception) -> WonderlandError:
    reason = " ".join(str(error).split())[:120] or type(error).__name__
    return WonderlandError(f"{path} is damaged or cut short ({reason}). Copy it again, or remove it.")


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation (1..8); a damaged one counts as upright."""
    try:
        orientation = image.getexif().get(_EXIF_ORIENTATION, 1)
    except Exception:
        return 1
    return orientation if isinstance(orientation, int) else 1


def _to_grey_or_rgb(image: Image.Image) -> Image.Image:
    """Any mode as grey ("L") or colour ("RGB")."""
    image.load()
    if image.mode.startswith("I") or image.mode == "F":
        return Image.fromarray(_eight_bits(image))
    if image.mode in ("L", "RGB") and "transparency" not in image.info:
        return image
    if image.has_transparency_data:
        return _over_white(image)
    return image.convert("L" if image.mode == "1" else "RGB")


def _over_white(image: Image.Image) -> Image.Image:
    """Transparency laid over white, a strip at a time: for the whole image, three copies of it would be in memory."""
    white = Image.new("RGB", image.size)
    rows = max(1, (1 << 20) // image.width)
    for top in range(0, image.height, rows):
        strip = image.crop((0, top, image.width, min(top + rows, image.height))).convert("RGBA")
        white.paste(Image.alpha_composite(Image.new("RGBA", strip.size, "white"), strip).convert("RGB"), (0, top))
    return white


def _eight_bits(image: Image.Image) -> np.ndarray:
    """Grey of 16 bits as 8 bits, a strip at a time: as float64, the whole image would take eight bytes for each pixel.

    Floats up to 1 are parts of 255, up to 255 they are taken as they are.
    """
    pixels = np.empty((image.height, image.width), np.uint8)
    rows = max(1, (1 << 20) // image.width)
    highest = np.asarray(image.getextrema(), np.float64).max() if image.mode == "F" else np.inf
    divisor = 1 / 255 if highest <= 1 else 1 if highest <= 255 else 257
    for top in range(0, image.height, rows):
        strip = np.asarray(image.crop((0, top, image.width, min(top + rows, image.height))))
        pixels[top : top + rows] = np.clip(np.rint(np.nan_to_num(strip.astype(np.float64) / divisor)), 0, 255)
    return pixels


def _fit(image: Image.Image, height: int, width: int) -> Image.Image:
    """The largest centred piece with the shape height : width, resized."""
    part = min(image.width / width, image.height / height)
    left, top = (image.width - part * width) / 2, (image.height - part * height) / 2
    # Rounding may leave the box slightly outside of the image.
    box = (max(left, 0), max(top, 0), min(left + part * width, image.width), min(top + part * height, image.height))
    factors = (int((box[2] - box[0]) / width / GAP) or 1, int((box[3] - box[1]) / height / GAP) or 1)
    if max(factors) > 1:
        reach = 1.5 * (box[2] - box[0]) / width, 1.5 * (box[3] - box[1]) / height
        first = max(0, int(box[0] - reach[0])), max(0, int(box[1] - reach[1]))
        last = min(image.width, math.ceil(box[2] + reach[0])), min(image.height, math.ceil(box[3] + reach[1]))
        image = image.reduce(factors, box=(*first, *last))
        left, top, right, bottom = ((edge - first[i % 2]) / factors[i % 2] for i, edge in enumerate(box))
        box = (left, top, right, bottom)
    # One axis after the other, always in this order: versions of Pillow differ in theirs, and exported models keep this one.
    image = image.resize((width, image.height), Image.Resampling.BICUBIC, box=(box[0], 0, box[2], image.height))
    return image.resize((width, height), Image.Resampling.BICUBIC, box=(0, box[1], width, box[3]))


def _drop_equal_channels(image: np.ndarray) -> np.ndarray:
    """A single channel when all three are equal: many grey images are stored as RGB."""
    if image.ndim == 3 and (image[..., 0] == image[..., 1]).all() and (image[..., 0] == image[..., 2]).all():
        return np.ascontiguousarray(image[..., 0])
    return image
