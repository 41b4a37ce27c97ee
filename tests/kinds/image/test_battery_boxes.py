"""Images with boxes and images with masks go through the battery of every kind."""

from pathlib import Path

from tests.kinds.battery import Battery, data, home, run  # noqa: F401 - fixtures
from tests.kinds.image.scenes import write_coco, write_masks


class TestMasks(Battery):
    kind = "image"

    def make(self, folder: Path):
        return write_masks(folder / "scenes", 40), write_masks(folder / "new", 6, seed=1)


class TestBoxes(Battery):
    kind = "image"

    def make(self, folder: Path):
        return write_coco(folder / "scenes", 40), write_coco(folder / "new", 6, seed=1)
