"""Positions: the numbers of the books, and what the schemes promise."""

import math

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.positions import Alibi, Learned, RelativeBias, RelativeBuckets, Rotary, Sinusoidal


def places(*numbers):
    return torch.tensor([numbers])


def test_the_frequencies_of_eight_features():
    assert torch.allclose(Sinusoidal(8).frequencies, torch.tensor([1, 0.1, 0.01, 0.001]))
    book = Sinusoidal(8, exponent="book").frequencies
    assert torch.allclose(book, torch.tensor([1, 0.316228, 0.1, 0.0316228]), atol=1e-6)


def test_three_sines_at_six():
    """FIG-10.6 of the book: frequencies 0.1, 1 and 10."""
    position = Sinusoidal(6)
    position.frequencies.copy_(torch.tensor([0.1, 1.0, 10.0]))
    sines = position.embed(places(6))[0, 0, ::2]
    assert torch.allclose(sines, torch.tensor([0.5646, -0.2794, -0.3048]), atol=1e-4)


def test_sines_and_cosines_take_turns():
    assert torch.allclose(
        Sinusoidal(4).embed(places(3)),
        torch.tensor([[[math.sin(3), math.cos(3), math.sin(0.03), math.cos(0.03)]]]),
        atol=1e-6,
    )


def test_a_move_is_a_rotation_that_does_not_see_its_start():
    position, move = Sinusoidal(8).double(), 5
    start, end = (position.embed(torch.arange(20)[None] + by)[0].view(20, 4, 2) for by in (0, move))
    angle = position.frequencies * move
    turn = torch.stack([torch.stack([angle.cos(), angle.sin()], -1), torch.stack([-angle.sin(), angle.cos()], -1)], -2)
    assert torch.allclose(torch.einsum("fij,nfj->nfi", turn, start), end)


def test_sinusoidal_vectors_have_one_length_and_products_see_the_distance_alone():
    table = Sinusoidal(16).double().embed(torch.arange(30)[None])[0]
    product = table @ table.t()
    assert torch.allclose(product.diagonal(), torch.full((30,), 8.0, dtype=torch.float64))
    for offset in (1, 7):
        assert product.diagonal(offset).std() < 1e-6


def test_learned_positions_are_rows_of_a_table():
    position = Learned(4, length=6)
    index = torch.tensor([[0, 5], [2, 2]])
    assert torch.equal(position.embed(index), position.weight[index])
    later = Learned(4, length=6, offset=2)
    assert later.weight.shape == (8, 4)
    assert later.length == 6
    assert torch.equal(later.embed(index), later.weight[index + 2])


def test_tied_biases_are_one_number_for_each_offset_and_the_last_for_all_beyond():
    position = RelativeBias(8, heads=2, length=3)
    torch.nn.init.normal_(position.weight)
    bias = position.bias(torch.arange(6)[None], torch.arange(6)[None])[0]
    for head in range(2):
        for i in range(6):
            for j in range(6):
                offset = max(-2, min(2, i - j))
                assert bias[head, i, j] == position.weight[offset + 2, head]


def test_free_biases_are_one_number_for_each_pair():
    position = RelativeBias(8, heads=1, length=4, tied=False)
    torch.nn.init.normal_(position.weight)
    bias = position.bias(places(1, 3), places(0, 2, 3))[0, 0]
    assert torch.equal(bias, position.weight.view(4, 4)[[1, 3]][:, [0, 2, 3]])


def test_the_slopes_of_eight_heads():
    position = Alibi(4, heads=8)
    assert position.slopes.tolist() == [2.0**-t for t in range(1, 9)]
    assert position.bias(places(5), places(2, 5, 6))[0, 0].tolist() == [[-1.5, 0.0, -0.5]]


def test_slopes_are_fixed_unless_trained():
    assert not list(Alibi(4, heads=2).parameters())
    assert [value.shape for value in Alibi(4, heads=2, trainable=True).parameters()] == [(2,)]


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_rotation_written_out(layout):
    position = Rotary(6, layout=layout).double()
    x = torch.randn(1, 4, 2, 6, dtype=torch.float64)
    y = position.rotate(x, places(0, 1, 5, 9))
    for step, place in enumerate((0, 1, 5, 9)):
        for j in range(3):
            one, other = (j, j + 3) if layout == "half" else (2 * j, 2 * j + 1)
            angle = place * 10000 ** (-2 * j / 6)
            a, b = x[0, step, :, one], x[0, step, :, other]
            assert torch.allclose(y[0, step, :, one], a * math.cos(angle) - b * math.sin(angle), atol=1e-6)
            assert torch.allclose(y[0, step, :, other], b * math.cos(angle) + a * math.sin(angle), atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"layout": "interleaved"}, {"fraction": 0.5}])
def test_rotation_keeps_norms_and_leaves_the_first_place_alone(options):
    position = Rotary(8, **options).double()
    x = torch.randn(2, 5, 3, 8, dtype=torch.float64)
    y = position.rotate(x, torch.arange(5)[None])
    assert torch.allclose(y.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(y[:, 0], x[:, 0])


def test_a_fraction_turns_the_first_features_only():
    x = torch.randn(1, 3, 2, 8)
    y = Rotary(8, fraction=0.25).rotate(x, places(4, 5, 6))
    assert torch.equal(y[..., 2:], x[..., 2:])
    assert torch.equal(y[..., :2], Rotary(2).rotate(x[..., :2], places(4, 5, 6)))


def test_the_two_layouts_differ_by_the_order_of_features():
    x = torch.randn(1, 3, 2, 8)
    half = Rotary(8).rotate(torch.cat([x[..., ::2], x[..., 1::2]], -1), places(4, 5, 6))
    interleaved = Rotary(8, layout="interleaved").rotate(x, places(4, 5, 6))
    assert torch.allclose(half, torch.cat([interleaved[..., ::2], interleaved[..., 1::2]], -1), atol=1e-6)


@pytest.mark.parametrize("position", [RelativeBias(8, heads=2, length=3), Alibi(8, heads=2), Rotary(8)], ids=repr)
def test_relative_schemes_do_not_see_where_a_sequence_begins(position):
    position = position.double()
    here = torch.arange(5)[None]
    if position.kind == "bias":
        scores = [position.bias(here + by, here + by) for by in (0, 100)]
    else:
        q, k = torch.randn(2, 1, 5, 2, 8, dtype=torch.float64)
        turned = [(position.rotate(q, here + by), position.rotate(k, here + by)) for by in (0, 100)]
        scores = [torch.einsum("bihk,bjhk->bhij", *both) for both in turned]
    assert position.relative
    assert torch.allclose(*scores)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: Sinusoidal(5),
            "Sinusoidal cannot be built with dim=5, base=10000.0, exponent='original': "
            'dim is even, base is above 1, exponent is "original" or "book".',
        ),
        (
            lambda: Learned(4, length=0),
            "Learned cannot be built with dim=4, length=0: both are whole numbers from 1.",
        ),
        (
            lambda: Learned(4, length=6, offset=-1),
            "Learned cannot be built with offset=-1: it is a whole number from 0.",
        ),
        (
            lambda: Learned(4, length=6, offset=2).embed(places(3, 6)),
            "Learned has 6 positions and was asked for position 6, counted from 0: "
            "give shorter sequences, or build it with a larger length.",
        ),
        (
            lambda: Learned(4, length=6).embed(places(3, 6)),
            "Learned has 6 positions and was asked for position 6, counted from 0: "
            "give shorter sequences, or build it with a larger length.",
        ),
        (
            lambda: RelativeBias(4, heads=0),
            "RelativeBias cannot be built with heads=0, length=128: both are whole numbers from 1.",
        ),
        (lambda: Alibi(4, heads=0), "Alibi cannot be built with heads=0: it is a whole number from 1."),
        (
            lambda: Rotary(4, stretch=0),
            "Rotary cannot be built with stretch=0, bands=None: stretch is above 0, bands are three numbers, two counts of "
            "turns of which the second is larger, and a length.",
        ),
        (
            lambda: Rotary(4, bands=(4.0, 1.0, 64)),
            "Rotary cannot be built with stretch=1.0, bands=(4.0, 1.0, 64): stretch is above 0, bands are three numbers, two "
            "counts of turns of which the second is larger, and a length.",
        ),
        (
            lambda: Rotary(6, fraction=0.5),
            "Rotary cannot be built with dim=6, base=10000.0, layout='half', fraction=0.5: the number of turned "
            'features, dim times fraction, is even, base is above 1, layout is "half" or "interleaved".',
        ),
    ],
)
def test_errors_say_what_to_do(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == sentence


def test_a_stretch_is_a_slower_clock():
    x, slow = torch.randn(1, 6, 2, 8, dtype=torch.float64), Rotary(8, stretch=2.0).double()
    at = torch.arange(6).unsqueeze(0)
    torch.testing.assert_close(slow.rotate(x, 2 * at), Rotary(8).double().rotate(x, at))
    plain, banded = Rotary(8).frequencies, Rotary(8, stretch=8.0, bands=(1.0, 4.0, 64)).frequencies
    assert banded[0] == plain[0]
    torch.testing.assert_close(banded[3], plain[3] / 8)


def test_distances_fall_into_the_buckets_of_the_published_code():
    from transformers.models.t5.modeling_t5 import T5Attention

    offsets = torch.arange(-200, 200)
    for count, farthest, causal in ((32, 128, False), (32, 128, True), (7, 20, False), (8, 50, True)):
        expected = T5Attention._relative_position_bucket(offsets, not causal, count, farthest)
        found = RelativeBuckets(8, heads=1, buckets=count, farthest=farthest, causal=causal).bucket(offsets)
        assert torch.equal(found, expected)
