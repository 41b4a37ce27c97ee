"""Images with a parallel folder of masks: PNG files of class ids, palette entries or colours, matched by their names."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from wonderland.core import WonderlandError, read_bytes
from wonderland.data.dataset import Finding, counted
from wonderland.data.decode import SUFFIXES, _damaged, _open, guard_decompression
from wonderland.data.folders import Listing
from wonderland.kinds.image.annotations import Annotations, Broken, Labelled, Names, by_stem, numbered_names, read_names
from wonderland.kinds.image.canvas import OUTSIDE, upright_size

IMAGE_FOLDERS = frozenset(
    ["images", "image", "imgs", "img", "photos", "photo", "pictures", "jpegimages", "inputs", "input", "rgb", "x"]
)
MASK_FOLDERS = frozenset(
    [
        "masks",
        "mask",
        "labels",
        "label",
        "annotations",
        "annotation",
        "segmentation",
        "segmentations",
        "segmentationclass",
        "gt",
        "ground_truth",
        "groundtruth",
        "targets",
        "target",
        "labelids",
        "y",
    ]
)
ENDINGS = ("_mask", "-mask", "_masks", "_seg", "_segmentation", "_label", "_labels", "_gt", "_gtfine_labelids", "_l")
MOST_CLASSES = 255
NEARLY, DARK_OR_BRIGHT = 48, 0.98  # grey levels from black or white, and the share of a lossy mask that is so near


def role(path: Path, root: Path) -> tuple[str | None, str]:
    """ "image" or "mask" by the name of a folder above the file, None for neither; and what is left of its path, without suffix."""
    inner = path.relative_to(root).parts
    for place, name in enumerate(inner[:-1]):
        plain = name.casefold()
        kind = (
            "image"
            if plain in IMAGE_FOLDERS
            else "mask"
            if plain in MASK_FOLDERS or plain.endswith(("_masks", "_mask"))
            else None
        )
        if kind is not None:
            rest = (*inner[:place], *inner[place + 1 :])
            return kind, "/".join((*rest[:-1], Path(rest[-1]).stem))
    return None, "/".join((*inner[:-1], path.stem))


def pairs_of(listing: Listing) -> tuple[dict[str, Path], dict[str, Path]] | None:
    """Images and masks of a folder by their common names; None where it has no folder of masks, and no NAME_mask beside NAME."""
    root = listing.root
    files = [path for path, _ in listing.files] + list(listing.loose)
    roles = {path: role(path, root) for path in files}
    masks = [path for path in files if roles[path][0] == "mask" and path.suffix.casefold() in SUFFIXES]
    if masks:
        images = [path for path in files if roles[path][0] == "image"]
        if not images:
            images = [path for path in files if roles[path][0] is None]
        paths = by_stem(images, lambda path: roles[path][1]), by_stem(masks, lambda path: roles[path][1])
        return _matched(*paths) if images else None
    beside = [path for path in files if path.stem.casefold().endswith(ENDINGS) and path.suffix.casefold() in SUFFIXES]
    chosen = set(beside)
    plain = [path for path in files if path not in chosen]
    key = {path: str(path.relative_to(root).with_suffix("")) for path in files}
    images, masks_beside = (
        by_stem(plain, key.__getitem__),
        _matched(by_stem(plain, key.__getitem__), by_stem(beside, key.__getitem__)),
    )
    return masks_beside if len(beside) >= 2 and len(set(masks_beside[1]) & set(images)) * 2 > len(beside) else None


def _matched(images: dict[str, Path], masks: dict[str, Path]) -> tuple[dict[str, Path], dict[str, Path]]:
    """Masks under the names of their images: an ending such as _mask is dropped where that makes a name fit."""
    renamed = {}
    for name, path in masks.items():
        ending = next((end for end in ENDINGS if name.casefold().endswith(end)), "")
        short = name[: len(name) - len(ending)]
        renamed[name if name in images or short not in images else short] = path
    return images, renamed


def read_masks(listing: Listing, skip: bool) -> Annotations:
    """The images of a folder, each with its mask."""
    pairs = pairs_of(listing)
    if pairs is None:
        raise WonderlandError(
            f"{listing.root} has no masks: put PNG files of class ids or colours into a folder masks beside images."
        )
    images, masks = pairs
    both = [name for name in images if name in masks]
    if not both:
        first, other = next(iter(images.values())), next(iter(masks.values()))
        raise WonderlandError(
            f"No mask of {listing.root} has the name of an image: {first.name} would need {first.stem}.png, and there is {other.name}."
        )
    findings = _left_over(images, masks, listing.root)
    broken = Broken(listing.root, skip)
    labelled: list[Labelled] = []
    plain: set[int] = set()
    colours: set[int] = set()
    names = read_names([listing.root, *sorted({masks[name].parent for name in both})])
    with guard_decompression():
        for name in both:
            try:
                mask = read_mask(masks[name])
                size = upright_size(images[name])
            except WonderlandError as error:
                broken.add(str(error))
                continue
            if mask.shape[:2] != size:
                broken.add(
                    f"{masks[name]} has {mask.shape[0]} x {mask.shape[1]} pixels, and its image {images[name].name} {size[0]} x {size[1]}."
                )
                continue
            (colours if mask.ndim == 3 else plain).update(np.unique(flat(mask, mask.ndim == 3)).tolist())
            if len(colours) + len(plain) > 2 * MOST_CLASSES:
                raise WonderlandError(
                    f"{masks[name]} brings the masks to more than {MOST_CLASSES} values, so they are no classes: give PNG files "
                    "of class ids or of one colour for each class."
                )
            labelled.append(Labelled(images[name], mask=masks[name]))
    if not labelled:
        raise WonderlandError(f"None of the {len(both)} masks of {listing.root} can be used.")
    in_colour = any(value >> 16 != value & 255 or value >> 8 & 255 != value & 255 for value in colours)
    in_colour |= names is not None and bool(names.by_colour)
    values = (
        {value * 0x010101 for value in plain} | colours if in_colour else plain | {value & 255 for value in colours}
    )
    table, labels, ignored, noted = classes_of(values, in_colour, names, str(listing.root))
    if len(labels) > MOST_CLASSES:
        raise WonderlandError(
            f"The masks of {listing.root} have {len(labels)} classes; at most {MOST_CLASSES} can be learned."
        )
    if len(labels) < 2:
        raise WonderlandError(f"The masks of {listing.root} hold {labels[0]!r} only, so there is nothing to learn.")
    folder = masks[both[0]].relative_to(listing.root).parts
    where = f"{folder[0]}/" if len(folder) > 1 else "the same folder"
    sentence = f"Read as segmentation: {counted(len(labelled), 'image', 'images')}, each with a mask in {where} (--task overrules)."
    return Annotations(
        listing.root, "masks", labelled, labels, sentence, table, in_colour, ignored,
        [*broken.findings(), *findings, *noted],
    )  # fmt: skip


def read_mask(path: Path) -> np.ndarray:
    """The values of a mask: whole numbers (h, w), or colours (h, w, 3); call it inside `guard_decompression`.

    Entries of a palette are taken as they are, without their colours (but for GIF, which has one in any case). Alpha is dropped. JPEG
    blurs values, so its masks are those of two classes, black and white.
    """
    image = _open(read_bytes(path, "image_bytes"), path)
    try:
        image.load()
        lossy = image.format == "JPEG"
        if image.mode in ("RGBA", "RGBX", "CMYK", "YCbCr") or image.format == "GIF":
            image = image.convert("RGB")
        pixels = np.asarray(image.convert("L") if lossy else image)
    except Exception as error:
        raise _damaged(path, error) from error
    if lossy:
        if np.mean((pixels < NEARLY) | (pixels > 255 - NEARLY)) < DARK_OR_BRIGHT:
            raise WonderlandError(
                f"{path} is a JPEG with other values than black and white, which JPEG blurs: save masks as PNG."
            )
        return np.where(pixels < 128, 0, 255).astype(np.uint8)
    if pixels.ndim == 3 and pixels.shape[2] == 2:
        pixels = pixels[:, :, 0]
    return pixels.astype(np.int32) if pixels.dtype != np.uint8 else pixels


def flat(mask: np.ndarray, in_colour: bool) -> np.ndarray:
    """One whole number for each pixel: its value, or its colour as red, green and blue in 24 bits."""
    if mask.ndim == 2:
        return mask.astype(np.int64) * (0x010101 if in_colour else 1)
    red, green, blue = (mask[:, :, channel].astype(np.int64) for channel in range(3))
    return red << 16 | green << 8 | blue if in_colour else red


def classes_of(
    values: Iterable[int], in_colour: bool, known: Names | None, where: str
) -> tuple[np.ndarray, list[str], frozenset[int], list[Finding]]:
    """From the values of masks to classes: the value of each class, their names, the values that do not count, and findings."""
    present = sorted(set(values))
    if known is not None and known.by_colour:
        order = list(known.by_colour)
        strange = [value for value in present if value not in known.by_colour]
        noted = []
        if strange:
            shown = ", ".join(f"#{value:06x}" for value in strange[:5])
            noted = [
                Finding(
                    "unknown colours",
                    where,
                    len(strange),
                    f"{known.path.name} has no name for the colours {shown}: their pixels do not count.",
                )
            ]
        return np.array(order), list(known.by_colour.values()), frozenset(strange), noted
    if in_colour:
        labels = [f"#{value:06x}" for value in present]
        if known is not None and len(known.by_id) == len(present):
            labels = [known.by_id[number] for number in sorted(known.by_id)]
            return np.array(present), labels, frozenset(), [_colours_in_order(labels, present, where)]
        text = f"The masks have {len(present)} colours without names: classes are called by their colours. A file class_dict.csv gives names, a line name,r,g,b each."
        return np.array(present), labels, frozenset(), [Finding("header", where, len(present), text)]
    if len(present) == 2 and present[0] == 0 and (known is None or max(known.by_id) < present[1]):
        labels = ["background", "foreground"]
        if known is not None and len(known.by_id) in (1, 2):
            labels = [*labels[:1], *known.by_id.values()][-2:]
        return np.array(present), labels, frozenset(), []
    ignored = frozenset({255} & set(present)) if known is None or 255 not in known.by_id else frozenset()
    order, labels, noted = numbered_names([value for value in present if value not in ignored], known, where)
    if ignored:
        noted.append(
            Finding("ignored", where, 1, "Pixels with the value 255 do not count, as is usual in masks of class ids.")
        )
    return np.array(order), labels, ignored, noted


def _colours_in_order(labels: list[str], colours: list[int], where: str) -> Finding:
    pairs = ", ".join(f"#{value:06x} is {label!r}" for value, label in zip(colours[:4], labels, strict=False))
    return Finding(
        "header",
        where,
        len(colours),
        f"Colours are named in their order: {pairs}. A file class_dict.csv says it for each.",
    )


def class_map(mask: np.ndarray, values: np.ndarray, in_colour: bool, ignored: frozenset[int], path: Path) -> np.ndarray:
    """The class of each pixel, uint8 (h, w); pixels that do not count are 255, and a value of no class is refused."""
    numbers = flat(mask, in_colour)
    order = np.argsort(values)
    place = np.searchsorted(values[order], numbers).clip(0, len(values) - 1)
    codes = order[place]
    strange = values[codes] != numbers
    class_codes = np.where(strange, OUTSIDE, codes).astype(np.uint8)
    if strange.any():
        bad = sorted(set(np.unique(numbers[strange]).tolist()) - ignored)
        if bad:
            raise WonderlandError(f"{path} has the value {bad[0]}, which is no class of this model.")
    return class_codes


def _left_over(images: dict[str, Path], masks: dict[str, Path], root: Path) -> list[Finding]:
    alone, spare = [name for name in images if name not in masks], [name for name in masks if name not in images]
    findings = []
    if alone:
        text = f"{counted(len(alone), 'image has', 'images have')} no mask and {'is' if len(alone) == 1 else 'are'} left out: {images[alone[0]].name}"
        findings.append(Finding("no mask", str(root), len(alone), text + (", ..." if len(alone) > 1 else ".")))
    if spare:
        text = f"{counted(len(spare), 'mask has', 'masks have')} no image and {'is' if len(spare) == 1 else 'are'} left out: {masks[spare[0]].name}"
        findings.append(Finding("no image", str(root), len(spare), text + (", ..." if len(spare) > 1 else ".")))
    return findings
