"""Images with boxes and images with masks go through the battery of every kind."""

from pathlib import Path

import pytest

from tests.kinds.battery import Battery, data, home, run  # noqa: F401 - fixtures
from tests.kinds.image.scenes import write_coco, write_masks
from wonderland.kinds.image import annotated_recipe


@pytest.fixture(scope="module", autouse=True)
def narrow():
    """Narrow networks: what the battery checks does not depend on the width."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(annotated_recipe, "WIDTHS", {"detection": (8, 8), "segmentation": (4, 4)})
        yield


class TestMasks(Battery):
    kind = "image"

    def make(self, folder: Path):
        return write_masks(folder / "scenes", 28), write_masks(folder / "new", 4, seed=1)


class TestBoxes(Battery):
    kind = "image"

    def make(self, folder: Path):
        return write_coco(folder / "scenes", 28), write_coco(folder / "new", 4, seed=1)
