"""Several views of a thing: any number of them, in any order, give one answer."""

import pytest
import torch

from wonderland import models, nn
from wonderland.core import Spec, WonderlandError
from wonderland.data import PhotoAugment, several_views

TRUNK = models.LeNet.spec(classes=0, height=12, width=12)


@pytest.mark.parametrize("mixer", [None, False, nn.DeepSets.spec()], ids=["attention", "mean", "deep sets"])
def test_order_means_nothing_and_any_number_is_read(mixer):
    torch.manual_seed(0)
    net = models.MultiView(TRUNK, 84, 3, mixer=mixer).double().eval()
    x = torch.randn(2, 5, 1, 12, 12, dtype=torch.float64)
    order = torch.tensor([3, 0, 4, 1, 2])
    assert torch.allclose(net(x[:, order]), net(x), atol=1e-10)
    assert torch.allclose(net.views(x[:, order]), net.views(x)[:, order], atol=1e-10)
    assert net(x[:, :1]).shape == (2, 3)
    assert (net.block is None) == (mixer is False)


def test_attention_lets_views_see_each_other():
    torch.manual_seed(0)
    x = torch.randn(1, 3, 1, 12, 12)
    changed = torch.cat([x[:, :2], torch.randn(1, 1, 1, 12, 12)], 1)
    alone, together = (models.MultiView(TRUNK, 84, 3, mixer=mixer).eval() for mixer in (False, None))
    assert torch.equal(alone.views(changed)[:, :2], alone.views(x)[:, :2])
    assert not torch.equal(together.views(changed)[:, :2], together.views(x)[:, :2])


def test_it_is_built_again_from_its_spec():
    spec = models.MultiView.spec(trunk=TRUNK, dim=84, mixer=nn.DeepSets.spec())
    assert isinstance(Spec.from_json(spec.to_json()).build(), models.MultiView)


def test_views_are_functions_of_seed_epoch_and_row():
    x = torch.randint(0, 256, (4, 1, 12, 12), dtype=torch.uint8)
    augment = PhotoAugment(crop=0.4, rotate=10)
    whole = several_views(x, augment, 3, seed=1, epoch=2)
    assert torch.equal(several_views(x[2:], augment, 2, seed=1, epoch=2, rows=[2, 3]), whole[2:, :2])
    assert not torch.equal(whole[:, 0], whole[:, 1])
    assert not torch.equal(several_views(x, augment, 3, seed=1, epoch=3), whole)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: models.MultiView(TRUNK, 84)(torch.zeros(2, 1, 12, 12)),
            "MultiView takes images (b, views, c, h, w), not (2, 1, 12, 12).",
        ),
        (
            lambda: models.MultiView(nn.MLP.spec(dim=3), 3),
            "MultiView needs a network of images with features, and nn.MLP has none.",
        ),
        (lambda: several_views(torch.zeros(1, 1, 4, 4), PhotoAugment(), 0), "An image has at least one view, not 0."),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == sentence
