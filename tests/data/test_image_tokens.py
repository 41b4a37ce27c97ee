"""Images as tokens: in any order and back, by levels of brightness or by a codebook of patches."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.data import ImageTokens
from wonderland.models import Decoder


@pytest.mark.parametrize("order", ["rows", "columns"])
def test_pixels_there_and_back(order):
    tokens = ImageTokens.pixels(8, height=4, width=6, order=order)
    images = tokens.codebook[torch.randint(0, 8, (3, 24))].view(3, 1, 4, 6)
    codes = tokens.encode(images)
    assert torch.equal(tokens.decode(codes), images)
    second = codes[:, 1] == (images[:, 0, 0, 1] if order == "rows" else images[:, 0, 1, 0]).mul(7 / 255).round()
    assert second.all()


@pytest.mark.parametrize("order", ["rows", "columns"])
def test_patches_of_colour_become_the_nearest_code(order):
    torch.manual_seed(0)
    kinds = torch.randint(0, 256, (5, 3, 2, 2)).float()
    grid = torch.randint(0, 5, (6, 2, 3))
    images = kinds[grid].permute(0, 3, 1, 4, 2, 5).reshape(6, 3, 4, 6)
    tokens = ImageTokens.fitted(images, 5, patch=2, order=order)
    assert torch.allclose(tokens.decode(tokens.encode(images)), images, atol=1e-3)
    noisy = (images + torch.randn_like(images)).clamp(0, 255)
    assert torch.equal(tokens.encode(noisy), tokens.encode(images))
    assert tokens.length == 6
    assert torch.equal(tokens.places[tokens.places.argsort()], torch.arange(6))


def test_a_decoder_learns_to_draw():
    torch.manual_seed(0)
    tokens = ImageTokens.pixels(2, height=3, width=3)
    images = torch.zeros(2, 1, 3, 3)
    images[0, 0, 1], images[1, 0, :, 1] = 255, 255  # a bar that lies, and one that stands
    model = Decoder(vocab=tokens.vocab + 2, dim=32, depth=2)
    named = torch.cat([torch.tensor([[2], [3]]), tokens.encode(images)], 1)  # the class comes first
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(80):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(named[:, :-1]).mT, named[:, 1:]).backward()
        optimizer.step()
    from wonderland.generation import sample

    drawn = sample(model, torch.tensor([[3], [2]]), tokens.length, temperature=0)
    assert torch.equal(tokens.decode(drawn.clamp_max(1)), images.flip(0))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ImageTokens.pixels(1, height=2, width=2), "Brightness has 2 to 256 levels, not 1."),
        (
            lambda: ImageTokens.pixels(4, height=2, width=2, order="spiral"),
            "Patches come in the order of rows or columns, not 'spiral'.",
        ),
        (
            lambda: ImageTokens(torch.zeros(3, 4), 5, 4, 2),
            "Patches of 2 pixels do not divide images of 5 x 4: choose another patch.",
        ),
        (
            lambda: ImageTokens(torch.zeros(3, 3), 4, 4, 2),
            "A codebook has a row of c * 2 * 2 numbers for each token, not (3, 3).",
        ),
        (
            lambda: ImageTokens.pixels(4, height=2, width=2).encode(torch.zeros(1, 3, 2, 2)),
            "These tokens are for images (b, 1, 2, 2), not (1, 3, 2, 2).",
        ),
        (
            lambda: ImageTokens.pixels(4, height=2, width=2).decode(torch.zeros(1, 3, dtype=torch.int64)),
            "An image has 4 tokens, not 3.",
        ),
        (
            lambda: ImageTokens.fitted(torch.zeros(2, 1, 4, 4), 3, patch=2),
            "These images have 1 kinds of patches, too few for 3 codes.",
        ),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == sentence
