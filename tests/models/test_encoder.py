"""The encoder and its heads: padding anywhere, segments, spans, holes in texts, words for what does not fit."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.models import (
    Decoder,
    Encoder,
    MaskedLM,
    SequenceClassifier,
    SpanFinder,
    TokenClassifier,
    best_spans,
    mask_spans,
    mask_tokens,
    replace_spans,
)
from wonderland.models.tokens import unpadded
from wonderland.nn import Learned, Rotary

SMALL = {"vocab": 11, "dim": 8, "depth": 2}
TRUNK = Encoder.spec(**SMALL, segments=2, separator=10, pooler=True)
TOKENS = torch.tensor([[1, 2, 10, 3, 4], [5, 10, 6, 0, 0]])


def test_left_and_right_padding_give_what_a_row_gives_alone():
    model = Encoder(**SMALL, segments=2).double().eval()
    tokens, segments = torch.randint(11, (2, 6)), torch.randint(2, (2, 6))
    for mask in (torch.arange(6) < torch.tensor([[6], [3]]), torch.arange(6) >= torch.tensor([[0], [3]])):
        actual = model(tokens, mask, segments)
        alone = model(tokens[1:, mask[1]], None, segments[1:, mask[1]])
        assert torch.allclose(actual[1:, mask[1]], alone, atol=1e-12)
        assert (actual[1, ~mask[1]] == 0).all()


def test_segments_are_counted_by_their_separator():
    model = Encoder(**SMALL, segments=2, separator=10)
    assert model.segments_of(TOKENS).tolist() == [[0, 0, 0, 1, 1], [0, 0, 1, 1, 1]]
    given = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 1, 1, 1]])
    assert torch.equal(model(TOKENS), model(TOKENS, segments=given))
    assert not torch.equal(model(TOKENS), model(TOKENS, segments=torch.zeros_like(TOKENS)))


def test_positions_can_be_given():
    model = Encoder(**SMALL)
    mask = torch.tensor([[False, False, True, True, True]])
    places = torch.arange(5).unsqueeze(0)
    shifted = model(TOKENS[:1], mask, positions=places)
    assert not torch.allclose(shifted, model(TOKENS[:1], mask))
    assert torch.allclose(shifted[:, 2:], model(TOKENS[:1, 2:], positions=places[:, 2:]), atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        lambda: SequenceClassifier(TRUNK, 3),
        lambda: SequenceClassifier(TRUNK, 3, pool="summary"),
        lambda: SequenceClassifier(Decoder.spec(**SMALL), 3, pool="last", bias=False),
        lambda: SequenceClassifier(TRUNK, 3, at=10),
        lambda: TokenClassifier(TRUNK, 3),
        lambda: SpanFinder(TRUNK),
        lambda: MaskedLM(TRUNK),
    ],
)
def test_padding_is_found_in_the_tokens(model):
    head = model().double().eval()
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    actual = head(TOKENS)
    assert torch.equal(actual, head(TOKENS, mask))
    alone = head(TOKENS[1:, :3])
    assert torch.allclose(actual[1:, :3] if actual.dim() == 3 else actual[1:], alone, atol=1e-12)
    moved = torch.tensor([[1, 2, 10, 3, 4], [0, 0, 5, 10, 6]])
    again = head(moved)
    assert torch.allclose(again[1:, 2:] if actual.dim() == 3 else again[1:], alone, atol=1e-12)


def test_padding_inside_a_text_is_real_and_an_empty_text_has_one_token():
    assert unpadded(torch.tensor([[7, 0, 8, 0], [0, 0, 0, 0]]), 0).tolist() == [
        [True] * 3 + [False],
        [True] + [False] * 3,
    ]
    assert torch.isfinite(SequenceClassifier(TRUNK, 3)(torch.zeros(2, 4, dtype=torch.int64))).all()


def test_sentences_and_words_come_together():
    model = MaskedLM(TRUNK, sentences=True).eval()
    words, pair = model.both(TOKENS)
    assert torch.equal(words, model(TOKENS))
    assert pair.shape == (2, 2)
    assert MaskedLM(TRUNK, tie=False).head.weight.shape == (11, 8)


def test_spans_end_after_they_begin():
    scores = torch.tensor([[[1.0, 9.0], [5.0, 0.0], [0.0, 2.0], [0.0, 3.0]]])
    assert best_spans(scores).tolist() == [[0, 0]]
    scores[0, 0, 1] = 0
    assert best_spans(scores).tolist() == [[1, 3]]
    assert best_spans(scores, longest=2).tolist() == [[1, 2]]
    assert best_spans(scores, torch.tensor([[True, True, True, False]])).tolist() == [[1, 2]]


def test_holes_are_dug_as_bert_digs_them():
    tokens = torch.randint(5, 100, (200, 100))
    tokens[:, 0] = 1
    generator = torch.Generator().manual_seed(0)
    hidden, labels = mask_tokens(tokens, mask_token=4, vocab=100, special=(1,), generator=generator)
    asked = labels != -100
    assert torch.equal(labels[asked], tokens[asked])
    assert torch.equal(hidden[~asked], tokens[~asked])
    assert not asked[:, 0].any()
    assert abs(asked[:, 1:].float().mean() - 0.15) < 0.01
    masked, kept = (hidden == 4)[asked].float().mean(), (hidden == tokens)[asked].float().mean()
    assert abs(masked - 0.8) < 0.02
    assert abs(kept - 0.101) < 0.02
    again = mask_tokens(tokens, mask_token=4, vocab=100, special=(1,), generator=generator.manual_seed(0))
    assert torch.equal(again[0], hidden)


def test_spans_are_taken_as_the_book_takes_them():
    words = ["Thank", "you", "for", "inviting", "me", "to", "your", "party", "last", "week"]
    source, target = replace_spans(words, [(2, 4), (8, 9)], sentinels=["<X>", "<Y>", "<Z>"])
    assert " ".join(source) == "Thank you <X> me to your party <Y> week"
    assert " ".join(target) == "<X> for inviting <Y> last <Z>"


@pytest.mark.parametrize(("n", "chance", "mean"), [(2, 0.15, 3.0), (50, 0.15, 3.0), (100, 0.5, 2.0), (9, 0.9, 1.0)])
def test_hidden_spans_can_be_put_back(n, chance, mean):
    tokens, sentinels = list(range(n)), list(range(1000, 1100))
    source, target = mask_spans(tokens, sentinels=sentinels, probability=chance, mean_length=mean)
    gone = sum(token < 1000 for token in target)
    assert gone == min(max(round(n * chance), 1), n - 1)
    spans: dict[int, list[int]] = {}
    for token in target:
        if token >= 1000:
            spans[token] = []
        else:
            spans[max(spans)].append(token)
    whole = [back for token in source for back in (spans[token] if token >= 1000 else [token])]
    assert whole == tokens
    assert len(spans) - 1 == sum(token >= 1000 for token in source)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: Encoder(vocab=3, segments=-1),
            "An Encoder needs at least one token and one feature, and no fewer than 0 segments, not vocab=3, dim=128, "
            "segments=-1.",
        ),
        (
            lambda: Encoder(**SMALL, position=Rotary.spec()),
            "nn.Rotary cannot be added to an embedding: put it into the mixer's spec, or give it as relative.",
        ),
        (
            lambda: Encoder(**SMALL)(TOKENS, segments=TOKENS),
            "This Encoder has no segments: leave them out, or build it with segments=2.",
        ),
        (
            lambda: Encoder(**SMALL, segments=2)(TOKENS, segments=TOKENS[:1]),
            "An Encoder takes segments as integers (2, 5), one for each token.",
        ),
        (
            lambda: Encoder(**SMALL, segments=2)(TOKENS, segments=TOKENS),
            "The segments of this Encoder are 0 to 1.",
        ),
        (
            lambda: Encoder(**SMALL)(TOKENS, positions=TOKENS[:, :2]),
            "An Encoder takes positions as integers (2, 5), one for each token.",
        ),
        (
            lambda: Encoder(**SMALL, position=Learned.spec(length=4))(TOKENS),
            "Learned has 4 positions and was asked for position 4, counted from 0: "
            "give shorter sequences, or build it with a larger length.",
        ),
        (
            lambda: SequenceClassifier("bert", 3),
            "SequenceClassifier takes its trunk as a spec such as models.Encoder.spec(...), or as a module, not as a str.",
        ),
        (
            lambda: SequenceClassifier(Rotary.spec(dim=4), 3),
            "Rotary has no method features, which a head needs: give an Encoder, Decoder or EncoderDecoder.",
        ),
        (
            lambda: SequenceClassifier(TRUNK, 3, pool="firt"),
            "There is no pooling called 'firt'. Did you mean 'first'? "
            "The choices are mean, max, first, last, attention, summary.",
        ),
        (
            lambda: SequenceClassifier(Decoder.spec(**SMALL), 3, pool="summary"),
            "Decoder has no summary: choose another pool.",
        ),
        (
            lambda: SequenceClassifier(TRUNK, 3, at=9)(TOKENS),
            "Row 0 has no token 9, whose features this SequenceClassifier uses: add it.",
        ),
        (lambda: TokenClassifier(TRUNK, 0), "TokenClassifier needs at least one class, not 0."),
        (
            lambda: MaskedLM(TRUNK).both(TOKENS),
            "This MaskedLM has no next-sentence classifier: build it with sentences=True.",
        ),
        (lambda: best_spans(torch.zeros(2, 3)), "best_spans takes scores (batch, time, 2), not (2, 3)."),
        (lambda: best_spans(torch.zeros(2, 3, 2), longest=0), "A span has at least one token, so longest is not 0."),
        (
            lambda: mask_tokens(torch.zeros(3), mask_token=1, vocab=3),
            "mask_tokens takes tokens (batch, time) as whole numbers, not (3,).",
        ),
        (
            lambda: mask_tokens(TOKENS, mask_token=11, vocab=11),
            "mask_tokens takes a probability from 0 to 1 and a mask token below 11, not 0.15 and 11.",
        ),
        (
            lambda: mask_spans([1], sentinels=[9]),
            "A text of 1 tokens has no span to mask: give at least 2.",
        ),
        (
            lambda: mask_spans([1, 2], sentinels=[9], probability=1.0),
            "mask_spans takes a probability between 0 and 1 and a mean length of at least 1, not 1.0 and 3.0.",
        ),
        (
            lambda: replace_spans([1, 2, 3], [(0, 1)], sentinels=[9]),
            "1 spans need 2 sentinels, one each and one at the end, but there are 1: mask fewer or longer spans, or shorten the text.",
        ),
        (
            lambda: replace_spans([1, 2, 3], [(2, 2)], sentinels=[9, 8]),
            "The span from 2 up to 2 is empty, out of order or beyond the text.",
        ),
    ],
)
def test_what_does_not_fit_is_told(call, words):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == words
