"""What is mixed lies between two examples, and its label with it."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.data.mixing import cutmix, mixup

Y = torch.tensor([0, 1, 2, 0, 1])


@pytest.mark.parametrize("shape", [(5, 3), (5, 7, 3), (5, 2, 6, 6)])
def test_labels_sum_to_one_and_shares_agree(shape):
    x = torch.randn(shape, dtype=torch.float64)
    for mix in (mixup, cutmix):
        found, y = mix(x, Y, classes=3, alpha=1.0)
        assert found.shape == x.shape
        torch.testing.assert_close(y.sum(1), torch.ones(5))
        assert y.min() >= 0


def test_shares_of_0_and_1_give_the_partner_and_the_example():
    x = torch.randn(5, 4)
    found, y = mixup(x, Y, classes=3, share=1.0)
    assert torch.equal(found, x)
    assert torch.equal(y.argmax(1), Y)
    found, _ = mixup(x, Y, classes=3, share=0.0)
    assert torch.equal(found.sort(0).values, x.sort(0).values)


def test_dicts_and_tuples_are_mixed_alike():
    x = torch.randn(5, 4)
    found, _ = mixup({"a": x, "b": (2 * x,)}, Y, classes=3)
    torch.testing.assert_close(2 * found["a"], found["b"][0])


def test_cutmix_takes_every_number_from_one_of_two_and_labels_by_area():
    x = torch.arange(5.0).view(5, 1, 1, 1).expand(5, 2, 8, 6)
    found, y = cutmix(x, torch.eye(5), alpha=1.0)
    for row in range(5):
        seen = torch.stack([(found[row] == one).float().mean() for one in range(5)])
        torch.testing.assert_close(y[row], seen)


def test_tokens_can_be_cut_and_not_blended():
    tokens = torch.randint(9, (5, 7))
    found, _ = cutmix(tokens, Y, classes=3, axes=[1])
    assert found.dtype == torch.int64


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: mixup(torch.zeros(5, 2, dtype=torch.int64), Y, classes=3),
            "mixup blends floating point numbers, and x holds torch.int64: convert them, or mix embeddings of tokens.",
        ),
        (lambda: mixup(torch.zeros(5, 2), Y, classes=2), "y holds the label 2, and the classes are 0 to 1."),
        (
            lambda: mixup(torch.zeros(5, 2), Y),
            "Labels y (b,) are mixed as probabilities: say how many classes there are with classes.",
        ),
        (lambda: mixup(torch.zeros(5, 2), Y, classes=3, alpha=-1), "mixup takes an alpha above 0, not -1."),
        (lambda: cutmix(torch.zeros(5, 2), Y, classes=3, share=2), "cutmix takes a share from 0 to 1, not 2."),
        (
            lambda: cutmix(torch.zeros(5, 2), Y, classes=3, label="areas"),
            "cutmix takes a label of 'area' or 'random', not 'areas'.",
        ),
        (
            lambda: cutmix(torch.zeros(5, 2), Y, classes=3, axes=[0]),
            "cutmix cuts along axes other than the batch, axis 0: name at least one.",
        ),
    ],
)
def test_errors_to_the_word(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == sentence
