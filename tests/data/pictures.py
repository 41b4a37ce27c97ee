"""Folders of small pictures for the tests."""

import re

import numpy as np
import pytest
from PIL import Image

from wonderland.core import WonderlandError


def refused(sentence, call, *arguments, **options):
    with pytest.raises(WonderlandError, match="^" + re.escape(sentence) + "$"):
        call(*arguments, **options)


def picture(seed, height=16, width=16, grey=False):
    shape = (height, width) if grey else (height, width, 3)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def folder(root, counts, grey=False, **size):
    for code, (name, count) in enumerate(counts.items()):
        (root / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            Image.fromarray(picture(100 * code + i, grey=grey, **size)).save(root / name / f"{i}.png")
    return root
