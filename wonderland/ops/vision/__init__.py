"""Convolution in all its forms, receptive fields, pooling, boxes, and losses and measures of detection and segmentation."""

from wonderland.ops.vision.average_precision import average_precision, mean_iou, precision_at_recalls
from wonderland.ops.vision.boxes import (
    anchors,
    area,
    as_centres,
    as_corners,
    assign,
    decode,
    distance_iou,
    encode,
    generalised_iou,
    iou,
    match,
)
from wonderland.ops.vision.convolution import (
    by_unfold,
    output_size,
    reference_convolution,
    reference_transposed,
    transposed_size,
)
from wonderland.ops.vision.convolution_forms import by_fft, locally_connected, toeplitz
from wonderland.ops.vision.mask_losses import dice_loss, focal_loss
from wonderland.ops.vision.nms import batched_nms, nms, soft_nms
from wonderland.ops.vision.pooling import blur_pool, generalised_mean_pool
from wonderland.ops.vision.receptive_field import Field, receptive_field, seen_pixels
from wonderland.ops.vision.roi_align import roi_align

__all__ = [
    "Field",
    "anchors",
    "area",
    "as_centres",
    "as_corners",
    "assign",
    "average_precision",
    "batched_nms",
    "blur_pool",
    "by_fft",
    "by_unfold",
    "decode",
    "dice_loss",
    "distance_iou",
    "encode",
    "focal_loss",
    "generalised_iou",
    "generalised_mean_pool",
    "iou",
    "locally_connected",
    "match",
    "mean_iou",
    "nms",
    "output_size",
    "precision_at_recalls",
    "receptive_field",
    "reference_convolution",
    "reference_transposed",
    "roi_align",
    "seen_pixels",
    "soft_nms",
    "toeplitz",
    "transposed_size",
]
