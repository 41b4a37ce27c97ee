"""Pictures for the report of images: what augmentation makes of some, where the network looks, and what its layers give."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.data.batches import random_numbers
from wonderland.data.pixels import picture
from wonderland.kinds.image.images import thumbnail
from wonderland.understand import attention_rollout, feature_maps, filters, grad_cam

IMAGES, VERSIONS = 6, 5
SHEETS = 2  # images whose feature maps are shown


def augmented(plan: Any) -> list[list[str]]:
    """Some training images, each followed by what it becomes in the first epochs."""
    if plan.recipe.augment is None:
        return []
    rows, augment = spread(plan.parts.train, IMAGES), plan.recipe.augment.build()
    plain = plan.examples.inputs(rows)
    versions = [augment(plain, random_numbers(augment, plan.seed, epoch, rows)) for epoch in range(VERSIONS)]
    return [[_shown(version[place]) for version in (plain, *versions)] for place in range(len(rows))]


def spread(rows: np.ndarray, count: int) -> np.ndarray:
    """So many of these rows, evenly spaced: files are in the order of their classes.

    >>> spread(np.arange(10), 3).tolist()
    [0, 4, 9]
    """
    return np.asarray(rows)[np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(np.int64)]


def activation_maps(run: Any, plan: Any) -> list[dict[str, str]]:
    """Some test images, and the regions that speak for the predicted class, warm on grey; none where a network has no maps."""
    batch, model = plan.examples.take(spread(plan.parts.test, IMAGES)), _one_view(run.model)
    x = batch["x"]
    try:
        heat = grad_cam(model, x).values
        with torch.no_grad():
            named = [run.classes[code] for code in model(x).argmax(-1).tolist()]
    except (WonderlandError, RuntimeError, TypeError, AttributeError):
        return []
    finally:
        _restore(model)
    true = [run.classes[int(code)] for code in batch["y"]]
    return [
        {"image": _shown(image), "map": _shown(_warm(image, values)), "predicted": predicted, "true": label}
        for image, values, predicted, label in zip(x, heat, named, true, strict=True)
    ]


def attention_maps(run: Any, plan: Any) -> list[dict[str, str]]:
    """Some test images, and the patches that reach the answer through all layers of attention; none without attention to patches."""
    x = plan.examples.take(spread(plan.parts.test, IMAGES))["x"]
    try:
        heat = attention_rollout(run.model, x).values
    except (WonderlandError, RuntimeError, TypeError, AttributeError):
        return []
    # Every patch keeps some attention: only what is above the least of an image is coloured.
    lifted = heat - heat.amin((1, 2), keepdim=True)
    return [
        {"image": _shown(image), "map": _shown(_warm(image, values))} for image, values in zip(x, lifted, strict=True)
    ]


def layer_sheets(run: Any, plan: Any) -> list[dict[str, str]]:
    """The filters of the first convolution, and for some test images its maps and those of the last convolution."""
    model = _one_view(run.model)
    layers = [name for name, module in model.named_modules() if isinstance(module, nn.Conv2d)]
    if not layers:
        return []
    x = plan.examples.take(spread(plan.parts.test, SHEETS))["x"]
    sheets = []
    try:
        shown = filters(model, layers[0])
        if shown.values[0, 0].numel() > 4 and len(shown.values) == 1:
            sheets.append({"image": thumbnail(shown.sheet(), side=160), "words": f"{shown.title} of {layers[0]}"})
        wide = [name for name in layers if model.get_submodule(name).kernel_size != (1, 1)]
        for name in dict.fromkeys((layers[0], (wide or layers)[-1])):
            maps = feature_maps(model, x, name)
            if maps.shape[2] > 1:
                words = f"maps of {name}, {maps.shape[2]} x {maps.shape[3]}"
                sheets += [
                    {"image": thumbnail(maps.sheet(row), side=240), "words": f"image {row + 1}: {words}"}
                    for row in range(len(x))
                ]
    except (WonderlandError, RuntimeError, TypeError, AttributeError):
        return []
    finally:
        _restore(model)
    return sheets


def _one_view(model: nn.Module) -> Any:
    """The model without test-time views, whose maps are moved and mirrored."""
    model.eval()
    if hasattr(model, "crops") and hasattr(model, "mirror"):
        model.__dict__["_views"] = model.__dict__.get("crops", 0), model.__dict__.get("mirror", False)
        model.__dict__["crops"], model.__dict__["mirror"] = 0, False
    return model


def _restore(model: Any) -> None:
    if "_views" in model.__dict__:
        model.__dict__["crops"], model.__dict__["mirror"] = model.__dict__.pop("_views")


def _shown(image: Tensor) -> str:
    return thumbnail(picture(image.detach().float().round().clamp(0, 255).to(torch.uint8).numpy()))


def _warm(image: Tensor, heat: Tensor) -> Tensor:
    """A grey copy of an image, redder where the map is high. Shapes: (c, h, w), (h, w) -> (3, h, w)."""
    grey = image.float().mean(0)
    share = (heat / heat.max().clamp_min(1e-12)).clamp(0, 1)
    faded = 0.6 * grey + 60
    return torch.stack(
        [faded + share * (235 - faded), faded * (1 - share) + share * 90, faded * (1 - share) + share * 20]
    )
