"""Vectors of words: samples, trees, pieces, and that what goes together comes together."""

import heapq

import pytest
import torch
import torch.nn.functional as F

from wonderland.core import Spec, WonderlandError
from wonderland.models import FastText, GloVe, Word2Vec, words
from wonderland.models.words.samples import sentences_of


def drawn(seed=0):
    return torch.Generator().manual_seed(seed)


def two_topics(count=200):
    """Sentences of words 0-4 or of words 5-9, never mixed."""
    g = drawn()
    return [torch.randint(5, (8,), generator=g) + 5 * int(torch.randint(2, (), generator=g)) for _ in range(count)]


def test_pairs_are_all_neighbours():
    sentence = torch.tensor([3, 1, 4, 1, 5])
    centers, contexts = words.pairs([sentence], 2, shrink=False)
    expected = sorted((int(sentence[i]), int(sentence[j])) for i in range(5) for j in range(5) if 0 < abs(i - j) <= 2)
    assert sorted(zip(centers.tolist(), contexts.tolist(), strict=True)) == expected
    centers, contexts, real = words.context_windows([sentence], 2, shrink=False)
    assert (
        sorted(
            (c, w) for c, row, shown in zip(centers.tolist(), contexts, real, strict=True) for w in row[shown].tolist()
        )
        == expected
    )


def test_near_words_count_more_where_the_window_shrinks():
    sentence = torch.arange(2000)
    centers, contexts = words.pairs([sentence], 4, generator=drawn())
    share = (centers - contexts).abs().bincount(minlength=5)[1:].double() / (2 * 2000)
    torch.testing.assert_close(share, torch.tensor([1, 0.75, 0.5, 0.25]).double(), atol=0.03, rtol=0)


def test_frequent_words_are_left_out_as_often_as_stated():
    text = torch.tensor([0] * 9000 + [1] * 900 + [2] * 100)
    kept = words.subsample([text], 3, threshold=0.04, generator=drawn())[0].bincount() / text.bincount()
    torch.testing.assert_close(kept, torch.tensor([(0.04 / 0.9) ** 0.5, (0.04 / 0.09) ** 0.5, 1.0]), atol=0.03, rtol=0)


def test_negatives_follow_their_power_and_leave_out_what_is_right():
    drawer = words.NegativeSampler(torch.tensor([16, 81, 0, 1]))
    actual = drawer.draw(4000, 5, generator=drawn()).flatten().bincount(minlength=4) / 20_000
    torch.testing.assert_close(actual, torch.tensor([8, 27, 0, 1]) / 36, atol=0.01, rtol=0)
    right = torch.randint(2, (500, 1), generator=drawn())
    assert not (drawer.draw(500, 5, generator=drawn(), exclude=right) == right).any()


def test_the_tree_is_as_short_as_huffmans():
    counts = torch.randint(1, 50, (40,), generator=drawn())
    tree = words.huffman(counts)
    heap = counts.tolist()
    heapq.heapify(heap)
    best = 0
    while len(heap) > 1:
        both = heapq.heappop(heap) + heapq.heappop(heap)
        best += both
        heapq.heappush(heap, both)
    assert int((counts * tree.directions.abs().sum(1)).sum()) == best
    ways = {
        tuple(zip(n[t != 0].tolist(), t[t != 0].tolist(), strict=True))
        for n, t in zip(tree.nodes, tree.directions, strict=True)
    }
    assert len(ways) == 40
    assert tree.nodes.max() == 38


@pytest.mark.parametrize("tree", [None, [5, 1, 1, 2, 9, 3]])
def test_guesses_are_distributions(tree):
    torch.manual_seed(0)
    model = Word2Vec(6, 4, tree=tree).double()
    torch.nn.init.normal_(model.outward.weight)
    read = torch.tensor([[0, 3], [1, 2]])
    mask = torch.tensor([[True, False], [True, True]])
    total = sum(model.log_probability(read, torch.full((2,), word), mask).exp() for word in range(6))
    torch.testing.assert_close(total, torch.ones(2).double())


def test_negative_sampling_is_the_papers():
    torch.manual_seed(0)
    model = Word2Vec(6, 4)
    torch.nn.init.normal_(model.outward.weight)
    read, right, wrong = torch.tensor([0, 1]), torch.tensor([2, 3]), torch.tensor([[4, 5], [5, 0]])
    v, u = model.inward.weight, model.outward.weight
    expected = (
        -sum(
            F.logsigmoid(v[c] @ u[w]) + sum(F.logsigmoid(-v[c] @ u[n]) for n in ns)
            for c, w, ns in zip(read, right, wrong, strict=True)
        )
        / 2
    )
    torch.testing.assert_close(model.loss(read, right, wrong), expected)


@pytest.mark.parametrize(
    ("make", "how"),
    [
        pytest.param(lambda: Word2Vec(10, 8), {"epochs": 5}, id="skip-gram"),
        pytest.param(lambda: Word2Vec(10, 8), {"way": "cbow", "epochs": 30}, id="cbow", marks=pytest.mark.slow),
        pytest.param(lambda: Word2Vec(10, 8, tree=[1] * 10), {"negatives": 0}, id="tree", marks=pytest.mark.slow),
        pytest.param(
            lambda: FastText([f"{'animal' if i < 5 else 'vehicle'}{i}" for i in range(10)], 8, buckets=200),
            {"epochs": 3},
            id="fasttext",
            marks=pytest.mark.slow,
        ),
        pytest.param(lambda: GloVe(10, 8), {"epochs": 40}, id="glove"),
    ],
)
def test_words_that_go_together_come_together(make, how):
    torch.manual_seed(0)
    model = make()
    losses = words.learn(model, two_topics(), **{"window": 3, "threshold": None, "epochs": 8, "rate": 0.02, **how})
    assert losses[-1] < losses[0]
    v = F.normalize(model.vectors - model.vectors.mean(0), dim=1)
    alike = v @ v.T
    within = (alike[:5, :5].sum() + alike[5:, 5:].sum() - 10) / 40
    assert within > alike[:5, 5:].mean() + 0.3


def test_the_same_seed_gives_the_same_vectors():
    actual = []
    for _ in range(2):
        torch.manual_seed(0)
        model = Word2Vec(10, 4)
        words.learn(model, two_topics(20), epochs=1, threshold=0.05, seed=3)
        actual.append(model.vectors)
    assert torch.equal(*actual)


def test_cooccurrences_by_hand():
    actual = words.cooccurrences([torch.tensor([0, 1, 2]), torch.tensor([2, 1])], 3, window=2)
    table = torch.zeros(3, 3).index_put((actual.words, actual.contexts), actual.counts)
    torch.testing.assert_close(table, torch.tensor([[0, 1, 0.5], [1, 0, 2], [0.5, 2, 0]]))


def test_glove_is_the_papers():
    torch.manual_seed(0)
    model = GloVe(5, 3, full=10)
    i, j, x = torch.tensor([0, 1]), torch.tensor([2, 4]), torch.tensor([5.0, 40.0])
    product = (model.word.weight[i] * model.context.weight[j]).sum(1) + model.bias[i] + model.context_bias[j]
    expected = (torch.tensor([0.5**0.75, 1.0]) * (product - x.log()) ** 2).mean()
    torch.testing.assert_close(model.loss(i, j, x), expected)


def test_pieces_of_words():
    assert words.subwords("to", 3, 6) == ["<to", "<to>", "to>"]
    assert words.subwords("ab", 1, 2) == ["<a", "a", "ab", "b", "b>"]
    model = FastText(["where", "here"], 4, buckets=64, shortest=3, longest=4)
    rows = [words.fasttext.bucket(piece, 64) for piece in words.subwords("where", 3, 4)]
    own = torch.cat([model.inward.weight[64:65], model.inward.weight[rows]]).mean(0)
    torch.testing.assert_close(model.vector("where"), own.detach())
    torch.testing.assert_close(model.vectors[0], own.detach())
    torch.testing.assert_close(model.look(torch.tensor([[1, 0]]))[0, 1], own)
    rows = [words.fasttext.bucket(piece, 64) for piece in words.subwords("there", 3, 4)]
    torch.testing.assert_close(model.vector("there"), model.inward.weight[rows].mean(0).detach())
    # Bytes above 127 have a sign in fastText.
    assert (
        words.fasttext.bucket("é", 2**32)
        == ((((2166136261 ^ 0xFFFFFFC3) * 16777619 & 0xFFFFFFFF) ^ 0xFFFFFFA9) * 16777619) & 0xFFFFFFFF
    )


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Word2Vec(1), "Word2Vec needs a vocabulary of at least two words."),
        (
            lambda: Word2Vec(3, tree=[1, 2]),
            "Word2Vec takes a count for each of the 3 words to build its tree, not 2.",
        ),
        (
            lambda: Word2Vec(3).loss(torch.tensor([3]), torch.tensor([0])),
            "Token 3 in row 0, position 0 is not in the vocabulary: tokens are 0 to 2.",
        ),
        (
            lambda: Word2Vec(3).read(torch.ones(2)),
            "Word2Vec takes words as integers, (n,) for skip-gram or (n, m) for CBOW.",
        ),
        (
            lambda: Word2Vec(3, tree=[1, 1, 1]).scores(torch.ones(1, 100), torch.zeros(1, 1, dtype=torch.int64)),
            "This Word2Vec has a hierarchical softmax, in which words have no score of their own: use log_probability.",
        ),
        (
            lambda: words.learn(Word2Vec(3), [torch.tensor([0])], objective="cow"),
            "The objective is 'skip-gram' or 'cbow', not 'cow'.",
        ),
        (lambda: words.learn(Word2Vec(3), []), "learn got sentences without any word."),
        (
            lambda: words.learn(Word2Vec(3), [torch.ones(3)]),
            "learn takes sentences as tensors (n,) or lists of integers.",
        ),
        (lambda: words.pairs([torch.tensor([1])], 2), "pairs got no sentence of at least two words."),
        (lambda: words.pairs([torch.tensor([1])], 0), "pairs needs window to be a whole number of at least 1, not 0."),
        (
            lambda: words.subsample([torch.tensor([0])], 1, threshold=0.0),
            "subsample takes a threshold above 0, not 0.0.",
        ),
        (lambda: words.NegativeSampler(torch.zeros(3)), "NegativeSampler needs at least one count above 0."),
        (
            lambda: words.NegativeSampler(torch.tensor([1, 1])).draw(1, 1, exclude=torch.tensor([[0, 1]])),
            "There are not enough different words to draw one that is not excluded.",
        ),
        (
            lambda: words.huffman(torch.tensor([1])),
            "A Huffman tree takes the counts of at least two words, none of them negative.",
        ),
        (
            lambda: GloVe(3).loss(torch.tensor([0]), torch.tensor([0]), torch.zeros(1)),
            "GloVe takes counts above 0: leave out pairs that never occur together.",
        ),
        (lambda: FastText(["a", "a"]), "The words of a FastText have to be different, and one occurs twice."),
        (lambda: words.subwords(""), "subwords takes a word with at least one letter, not ''."),
        (lambda: words.subwords("a", 4, 3), "subwords takes lengths from 1, the shortest first, not 4 and 3."),
    ],
)
def test_errors_speak(call, sentence):
    with pytest.raises(WonderlandError) as caught:
        call()
    assert str(caught.value) == sentence


def test_they_survive_json():
    for spec in (Word2Vec.spec(vocab=5, tree=[1, 2, 3, 4, 5]), GloVe.spec(vocab=5), FastText.spec(words=["a", "b"])):
        assert Spec.from_json(spec.to_json()) == spec
        with torch.device("meta"):
            outline = spec.build().state_dict()
        assert {name: value.shape for name, value in spec.build().state_dict().items()} == {
            name: value.shape for name, value in outline.items()
        }


def test_sentences_may_be_lists():
    actual = sentences_of([[1, 2], (0,), torch.tensor([2])], 3, "learn")
    assert [one.tolist() for one in actual] == [[1, 2], [0], [2]]
