"""Images nobody here made: every mode Pillow knows, and files that mean harm."""

import io
import re
import struct
import time
import zlib

import numpy as np
import pytest
from PIL import Image

from wonderland.core import WonderlandError
from wonderland.data.decode import conform, decode


def refused(path, sentence, **options):
    with pytest.raises(WonderlandError, match="^" + re.escape(sentence) + "$"):
        decode(path, **options)


def save(path, array, mode=None, **options):
    image = Image.fromarray(array)
    (image.convert(mode) if mode else image).save(path, **options)
    return path


def png_claiming(width, height):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 64)) + chunk(b"IEND", b"")
    )


@pytest.fixture
def colours():
    return np.random.default_rng(0).integers(0, 256, (12, 20, 3), dtype=np.uint8)


def test_png_is_exact(tmp_path, colours):
    assert (decode(save(tmp_path / "a.png", colours)) == colours).all()
    assert (decode(save(tmp_path / "b.webp", colours, lossless=True)) == colours).all()


def test_grey_is_found_by_content(tmp_path, colours):
    grey = colours[..., 0]
    assert (decode(save(tmp_path / "a.png", grey)) == grey).all()
    assert (decode(save(tmp_path / "b.png", grey, "RGB")) == grey).all()
    assert decode(save(tmp_path / "c.png", grey, "1")).shape == (12, 20)


def test_modes_become_grey_or_colour(tmp_path, colours):
    assert decode(save(tmp_path / "p.png", colours, "P")).shape == (12, 20, 3)
    assert decode(save(tmp_path / "cmyk.jpg", colours, "CMYK")).shape == (12, 20, 3)
    deep = (np.arange(240, dtype=np.uint16) * 257).reshape(12, 20)
    assert (decode(save(tmp_path / "deep.png", deep)) == np.arange(240).reshape(12, 20)).all()


def test_alpha_is_laid_over_white(tmp_path, colours):
    clear = np.dstack([colours, np.zeros((12, 20), np.uint8)])
    assert (decode(save(tmp_path / "a.png", clear)) == 255).all()
    solid = np.dstack([colours, np.full((12, 20), 255, np.uint8)])
    assert (decode(save(tmp_path / "b.png", solid)) == colours).all()
    Image.fromarray(colours[..., 0]).save(tmp_path / "c.png", transparency=int(colours[0, 0, 0]))
    assert decode(tmp_path / "c.png")[0, 0] == 255


def test_exif_orientation_is_applied(tmp_path, colours):
    upright = Image.fromarray(colours)
    stored = {2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM}
    stored |= {
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    for turn, how in stored.items():
        notes = Image.Exif()
        notes[0x0112] = turn
        upright.transpose(how).save(tmp_path / "turned.png", exif=notes)
        assert (decode(tmp_path / "turned.png") == colours).all(), turn
        assert decode(tmp_path / "turned.png", (6, 10)).shape == (6, 10, 3)


def test_first_frame_of_an_animation(tmp_path, colours):
    frames = [Image.fromarray(colours), Image.fromarray(255 - colours)]
    frames[0].save(tmp_path / "a.png", save_all=True, append_images=frames[1:], duration=50)
    assert (decode(tmp_path / "a.png") == colours).all()


def test_resizing_averages_and_keeps_the_centre(tmp_path):
    board = np.indices((64, 64)).sum(0) % 2 * 255
    small = decode(save(tmp_path / "board.png", board.astype(np.uint8)), (8, 8))
    assert abs(small.astype(int) - 127).max() < 12
    wide = np.zeros((10, 30), np.uint8)
    wide[:, 10:20] = 200
    assert (decode(save(tmp_path / "wide.png", wide), (10, 10)) == 200).all()


def test_a_very_thin_image_stays_cheap(tmp_path):
    start = time.perf_counter()
    assert decode(save(tmp_path / "thin.png", np.zeros((1, 200_000), np.uint8)), (64, 64)).shape == (64, 64)
    assert time.perf_counter() - start < 2


def test_conform_changes_size_and_channels(colours):
    assert conform(colours, 1, 5, 7).shape == (1, 5, 7)
    assert (conform(colours[..., 0], 3, 12, 20) == colours[..., 0]).all()


@pytest.mark.parametrize(("width", "height"), [(60_000, 60_000), (9_000, 9_000), (11_000, 11_000)])
def test_png_bombs_are_refused_from_the_header(tmp_path, width, height):
    path = tmp_path / "bomb.png"
    path.write_bytes(png_claiming(width, height))
    start = time.perf_counter()
    refused(path, f"{path} ({width} x {height}) has {width * height:,} pixels; {raise_to(width * height)}")
    assert time.perf_counter() - start < 1


def raise_to(pixels):
    return f"the limit is 64,000,000. If you trust it, raise the limit: WONDERLAND_LIMITS=image_pixels={pixels}."


def test_sixteen_bits_take_no_more_memory_than_their_pixels(tmp_path, monkeypatch):
    deep = np.arange(40 * 3000, dtype=np.uint16).reshape(40, 3000)
    path = tmp_path / "deep.png"
    Image.fromarray(deep).save(path)
    assert (decode(path) == np.rint(deep / 257)).all()
    monkeypatch.setenv("WONDERLAND_LIMITS", "decoded_bytes=100000")
    refused(
        path,
        f"{path}, once decoded, has 234.4 KiB; the limit is 97.7 KiB. If you trust it, raise the limit: WONDERLAND_LIMITS=decoded_bytes=1MiB.",
    )


def test_jpeg_and_webp_bombs(tmp_path, colours):
    file = io.BytesIO()
    Image.fromarray(colours).save(file, "JPEG")
    data = bytearray(file.getvalue())
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", 50_000, 60_000)
    path = tmp_path / "bomb.jpg"
    path.write_bytes(data)
    refused(path, f"{path} (60000 x 50000) has 3,000,000,000 pixels; {raise_to(3_000_000_000)}")
    body = b"VP8X" + struct.pack("<I", 10) + b"\0" * 4 + b"\xff\x3f\x00" + b"\xff\x3f\x00"
    path = tmp_path / "bomb.webp"
    path.write_bytes(b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body)
    refused(path, f"{path} (16384 x 16384) has 268,435,456 pixels; {raise_to(268_435_456)}")


def test_what_is_not_an_image(tmp_path, colours):
    foreign = "is not a PNG, JPEG, WebP, GIF, BMP or TIFF image, whatever its name says. Convert it, or remove it."
    text, other, empty = tmp_path / "text.png", tmp_path / "other.png", tmp_path / "empty.png"
    text.write_text("import os")
    Image.fromarray(colours).save(other, "PPM")
    empty.write_bytes(b"")
    refused(text, f"{text} {foreign}")
    refused(other, f"{other} {foreign}")
    refused(empty, f"{empty} is an empty file, not an image. Remove it, or copy it again.")
    refused(tmp_path / "gone.png", f"{tmp_path / 'gone.png'} is missing.")


def test_truncated_and_damaged_files(tmp_path, colours):
    large = np.kron(colours, np.ones((8, 8, 1), np.uint8))
    for name in ("a.jpg", "b.png", "c.webp", "d.gif", "e.bmp", "f.tif"):
        path = save(tmp_path / name, large)
        data = path.read_bytes()
        for cut in (len(data) // 2, len(data) // 4, 40):
            path.write_bytes(data[:cut])
            with pytest.raises(WonderlandError, match=re.escape(str(path)) + " is (damaged or cut short|not a PNG)"):
                decode(path)


def test_random_damage_is_always_a_wonderland_error(tmp_path, colours):
    rng = np.random.default_rng(1)
    said = []
    for name in ("a.jpg", "b.png", "c.webp", "d.gif", "e.bmp", "f.tif"):
        data = save(tmp_path / name, colours).read_bytes()
        for _ in range(60):
            broken = bytearray(data)
            for at in rng.integers(0, len(data), 4):
                broken[at] = rng.integers(256)
            (tmp_path / name).write_bytes(broken)
            try:
                found = decode(tmp_path / name, (8, 8))
            except WonderlandError as error:
                said.append(str(tmp_path / name) in str(error))
            else:
                said.append(found.dtype == np.uint8)
    assert all(said)


def test_the_byte_limit(tmp_path, colours):
    path = save(tmp_path / "a.png", np.random.default_rng(0).integers(0, 256, (700, 700, 3), dtype=np.uint8))
    refused(path, f"{path} is larger than 1,048,576 bytes, the limit for this kind of file.", limit_bytes=1 << 20)


def test_gif_bmp_and_tiff_are_read_whatever_their_suffix(tmp_path, colours):
    for name, form in {"a.gif": "GIF", "b.bmp": "BMP", "c.tif": "TIFF", "d.png": "TIFF"}.items():
        Image.fromarray(colours).save(tmp_path / name, form)
        assert np.abs(decode(tmp_path / name).astype(int) - colours).max() <= (200 if form == "GIF" else 0)
    pages = [Image.fromarray(colours[..., 0]), Image.fromarray(colours[..., 1])]
    pages[0].save(tmp_path / "pages.tif", save_all=True, append_images=pages[1:])
    assert (decode(tmp_path / "pages.tif") == colours[..., 0]).all()


def test_floats_are_parts_of_one_or_grey_levels(tmp_path, colours):
    levels = colours[..., 0].astype(np.float32)
    for factor in (1, 1 / 255, 257):
        Image.fromarray(levels * np.float32(factor)).save(tmp_path / "floats.tif")
        assert np.abs(decode(tmp_path / "floats.tif").astype(int) - levels).max() <= (0 if factor != 257 else 1)
