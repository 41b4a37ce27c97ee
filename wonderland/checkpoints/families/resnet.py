"""ResNet: post-activation residual networks, basic and with bottlenecks. Paper: He et al., 2016."""

from typing import Any

from wonderland.checkpoints.families.family import Family, Published, WeightsView, labels_config
from wonderland.checkpoints.families.images import conv_norm, head_names, image_classes, image_heads
from wonderland.checkpoints.families.options import Options
from wonderland.core import Spec
from wonderland.models.vision.resnet import ResNet
from wonderland.nn.vision.residual_blocks import BasicBlock, BottleneckBlock


def _to_spec(options: Options, head: str, weights: WeightsView) -> Spec:
    options.require("hidden_act", "relu")
    options.require("downsample_in_first_stage", False)
    options.require("downsample_in_bottleneck", False)
    options.require("layer_type", "bottleneck", "basic")
    options.ignore("stage_names", "out_features", "out_indices")
    bottleneck = options.get("layer_type", "bottleneck") == "bottleneck"
    sizes = options.sizes("hidden_sizes", [256, 512, 1024, 2048])
    if bottleneck and any(size % 4 for size in sizes):
        raise options.error("hidden_sizes", sizes, "multiples of 4, since bottlenecks are four times narrower inside")
    return ResNet.spec(
        classes=image_classes(options, head),
        channels=options.integer("num_channels", 3),
        dim=options.integer("embedding_size", 64),
        dims=[size // 4 if bottleneck else size for size in sizes],
        depths=options.sizes("depths", [3, 4, 6, 3]),
        bottleneck=bottleneck,
    )


def _trunk_names(model: Any) -> dict[str, Published | None]:
    names = {"pixels.*": None} | conv_norm("stem.conv", "embedder.embedder")
    for stage, blocks in enumerate(model.stages):
        for place, block in enumerate(blocks):
            ours, theirs = f"stages.{stage}.{place}", f"encoder.stages.{stage}.layers.{place}"
            names |= conv_norm(f"{ours}.shortcut", f"{theirs}.shortcut")
            for index in range(len(block.convs)):
                names |= conv_norm(f"{ours}.convs.{index}", f"{theirs}.layer.{index}")
    return names


def _to_config(model: Any) -> dict[str, Any] | None:
    if not isinstance(model, ResNet) or not isinstance(model.stages[0][0], BasicBlock | BottleneckBlock):  # pyright: ignore
        return None
    blocks: Any = [stage[0] for stage in model.stages]  # pyright: ignore[reportIndexIssue]
    return {
        "model_type": "resnet",
        "num_channels": model.pixels.channels,
        "embedding_size": model.stem.conv.conv.out_channels,  # pyright: ignore
        "hidden_sizes": [block.convs[-1].conv.out_channels for block in blocks],
        "depths": [len(stage) for stage in model.stages],  # pyright: ignore[reportArgumentType]
        "layer_type": "bottleneck" if isinstance(blocks[0], BottleneckBlock) else "basic",
        "hidden_act": "relu",
        "downsample_in_first_stage": False,
        "downsample_in_bottleneck": False,
    } | labels_config(model)


RESNET = Family(
    model_type="resnet",
    title="ResNet",
    heads=image_heads("ResNet"),
    prefix="resnet.",
    to_spec=_to_spec,
    trunk_names=_trunk_names,
    head_names=head_names("classifier.1.*"),
    to_config=_to_config,
)
