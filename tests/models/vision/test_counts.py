"""Published sizes have the published number of parameters, to the last one."""

import pytest
import torch

from wonderland import models

# torchvision's numbers where it has the model; else those of timm, of D2L or of the first implementation.
COUNTS = {
    "AlexNet": 61_100_840,
    "AlexNet.d2l": 46_764_746,
    "ConvMixer.convmixer_1536_20": 51_625_960,
    "ConvMixer.convmixer_768_32": 21_110_248,
    "ConvNeXt.base": 88_591_464,
    "ConvNeXt.small": 50_223_688,
    "ConvNeXt.tiny": 28_589_128,
    "DenseNet.d2l": 758_226 - 392,  # D2L's, without the biases of stem and transitions, which batch norm removes
    "DenseNet.densenet121": 7_978_856,
    "DenseNet.densenet169": 14_149_480,
    "DenseNet.densenet201": 20_013_928,
    "EfficientNetLite.lite0": 4_652_008,
    "GoogLeNet": 6_624_904,
    "GoogLeNet.d2l": 5_977_530,
    "LeNet.d2l": 61_706,
    "LeNet.unpadded": 44_426,
    "MLPMixer.base": 59_880_472,
    "MLPMixer.large": 208_196_168,
    "MLPMixer.small": 18_528_264,
    "MetaFormer.poolformer_s12": 11_915_176,
    "MetaFormer.poolformer_s24": 21_388_968,
    "MobileNetV2": 3_504_872,
    "RegNet.x_3200mf": 15_296_552,
    "RegNet.x_400mf": 5_495_976,
    "RegNet.x_800mf": 7_259_656,
    "RegNet.y_3200mf": 19_436_338,
    "RegNet.y_400mf": 4_344_144,
    "RegNet.y_800mf": 6_432_512,
    "ResNeXt.resnext101": 88_791_336,
    "ResNeXt.resnext50": 25_028_904,
    "ResNet.resnet101": 44_549_160,
    "ResNet.resnet152": 60_192_808,
    "ResNet.resnet18": 11_689_512,
    "ResNet.resnet34": 21_797_672,
    "ResNet.resnet50": 25_557_032,
    "ResNet.se_resnet50": 28_088_024,
    "ResNet.wide_resnet50": 68_883_240,
    "TinySSD.d2l": 1_010_376 - 992,  # D2L's, without the biases before batch norm, which removes them
    "UNet": 31_037_698,
    "VGG.vgg11": 132_863_336,
    "VGG.vgg13": 133_047_848,
    "VGG.vgg16": 138_357_544,
    "VGG.vgg19": 143_667_240,
    "ViT.base": 86_567_656,
    "ViT.large": 304_326_632,
    "ViT.small": 22_050_664,
    "ViT.tiny": 5_717_416,
}


def build(name: str, **more):
    with torch.device("meta"):
        made = models
        for step in name.split("."):
            made = getattr(made, step)
        return made(**more)


def count(model) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_the_number_of_parameters_is_the_published_one(name):
    assert count(build(name)) == COUNTS[name]


def test_pre_activation_has_one_norm_less_in_the_stem_and_one_more_at_the_end():
    # resnetv2_50x1 of Kolesnikov et al., 2020, has as many.
    assert count(build("ResNet.resnet50", activation="pre")) == 25_549_352


def test_vgg_with_batch_norm_lacks_the_biases_that_the_norm_makes_void():
    biases = 2 * 64 + 2 * 128 + 3 * 256 + 6 * 512
    assert count(build("VGG.vgg16", norm=True)) == 138_365_992 - biases  # torchvision's vgg16_bn keeps them


def test_every_published_size_is_counted():
    found = {
        f"{name}.{key}"
        for name in models.__all__
        for key, value in vars(getattr(models, name)).items()
        if getattr(getattr(value, "__func__", None), "published", False)
    }
    assert found <= set(COUNTS)
