"""Models that read two sequences, beside the books' own equations."""

import pytest
import torch
from torch import nn

from wonderland.core import Spec, WonderlandError
from wonderland.models import DecomposableAttention, Seq2Seq
from wonderland.nn import rows

KINDS = {"gru": nn.GRU, "lstm": nn.LSTM}


def peers(model, cell):
    reader = KINDS[cell](6, 5, num_layers=2, batch_first=True).double()
    writer = KINDS[cell](11, 5, num_layers=2, batch_first=True).double()
    for depth in range(2):
        model.reader[depth].load_torch(reader, f"_l{depth}")
        model.writer[depth].load_torch(writer, f"_l{depth}")
    return reader, writer


@pytest.mark.parametrize("cell", KINDS)
def test_plain_is_the_books(cell):
    torch.manual_seed(0)
    model = Seq2Seq(9, 8, dim=6, state_size=5, cell=cell).double()
    reader, writer = peers(model, cell)
    source, tokens = torch.randint(9, (3, 4)), torch.randint(8, (3, 5))
    read, hidden = reader(model.source(source))
    x = torch.cat([model.target(tokens), read[:, -1:].expand(-1, 5, -1)], 2)
    torch.testing.assert_close(model(source, tokens), model.head(writer(x, hidden)[0]))


@pytest.mark.parametrize("cell", KINDS)
def test_attention_is_the_books(cell):
    torch.manual_seed(0)
    model = Seq2Seq(9, 8, dim=6, state_size=5, cell=cell, attention=True).double()
    reader, writer = peers(model, cell)
    source, tokens = torch.randint(9, (3, 4)), torch.randint(8, (3, 5))
    shown = torch.tensor([[True] * 4, [True] * 2 + [False] * 2, [True] * 3 + [False]])
    packed = nn.utils.rnn.pack_padded_sequence(
        model.source(source), shown.sum(1), batch_first=True, enforce_sorted=False
    )
    read, hidden = reader(packed)
    read = nn.utils.rnn.pad_packed_sequence(read, batch_first=True, total_length=4)[0]
    out, look = [], model.attention
    for at in range(5):
        top = (hidden if cell == "gru" else hidden[0])[-1]
        scores = look.score(torch.tanh(look.query(top).unsqueeze(1) + look.key(read))).squeeze(2)
        weights = scores.masked_fill(~shown, -torch.inf).softmax(1)
        x = torch.cat([model.target(tokens[:, at]), (weights.unsqueeze(1) @ read).squeeze(1)], 1)
        y, hidden = writer(x.unsqueeze(1), hidden)
        out.append(y)
    torch.testing.assert_close(model(source, tokens, shown), model.head(torch.cat(out, 1)))


@pytest.mark.parametrize("attention", [False, True])
def test_pieces_padding_and_beams(attention):
    torch.manual_seed(0)
    model = Seq2Seq(9, 8, dim=6, state_size=5, attention=attention).double().eval()
    source, tokens = torch.randint(9, (3, 4)), torch.randint(8, (3, 5))
    shown = torch.tensor([[True] * 4, [False] + [True] * 3, [True] * 2 + [False] * 2])
    mask = torch.tensor([[True] * 5, [False] * 2 + [True] * 3, [True] * 2 + [False] * 3])
    whole = model(source, tokens, shown, mask)
    assert bool((whole[~mask] == 0).all())
    for row in range(3):
        alone = model(source[row : row + 1, shown[row]], tokens[row : row + 1, mask[row]])
        torch.testing.assert_close(whole[row, mask[row]], alone[0])
    state, said = model.prepare(source, shown), []
    for piece in (slice(0, 2), slice(2, 3), slice(3, 5)):
        logits, state = model.stream(tokens[:, piece], state, mask[:, piece])
        said.append(logits)
    torch.testing.assert_close(torch.cat(said, 1), whole)
    assert state[-1].tolist() == [5, 3, 2]
    index = torch.tensor([1, 1, 0])
    beams, _ = model.stream(tokens[index, :1], rows(state, index))
    torch.testing.assert_close(beams, model.stream(tokens[:, :1], state)[0][index])


@pytest.mark.slow
def test_it_learns_to_turn_a_sequence_around():
    torch.manual_seed(0)
    source = torch.randint(2, 8, (256, 4))
    target = torch.cat([torch.ones(256, 1, dtype=torch.int64), source.flip(1)], 1)
    model = Seq2Seq(8, 8, dim=16, state_size=32, depth=1, attention=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.5


def test_decomposable_attention_is_the_books():
    torch.manual_seed(0)
    model = DecomposableAttention(9, 3, dim=6, hidden=5, pad=None).double().eval()
    one, other = torch.randint(9, (2, 4)), torch.randint(9, (2, 3))
    a, b = model.embedding(one), model.embedding(other)
    e = torch.bmm(model.attend(a), model.attend(b).permute(0, 2, 1))
    beta, alpha = e.softmax(-1) @ b, e.permute(0, 2, 1).softmax(-1) @ a
    sides = [model.compare(torch.cat(pair, 2)).sum(1) for pair in ((a, beta), (b, alpha))]
    torch.testing.assert_close(model(one, other), model.head(model.aggregate(torch.cat(sides, 1))))


def test_padding_of_either_sentence_changes_nothing():
    model = DecomposableAttention(9, 3, dim=6, hidden=5).eval()
    one, other = torch.tensor([[3, 4, 5]]), torch.tensor([[6, 7]])
    padded = model(nn.functional.pad(one, (1, 2)), nn.functional.pad(other, (2, 1)))
    torch.testing.assert_close(padded, model(one, other))
    assert model(torch.zeros_like(one), other).isfinite().all()


def test_they_survive_json_and_errors_speak():
    for spec in (Seq2Seq.spec(source_vocab=5, vocab=6, attention=True), DecomposableAttention.spec(vocab=5)):
        assert Spec.from_json(spec.to_json()) == spec
    model, tokens = Seq2Seq(9, 8, dim=6, state_size=5), torch.zeros(2, 3, dtype=torch.int64)
    for call, sentence in (
        (
            lambda: model.stream(tokens, None),
            "The state does not fit this Seq2Seq: there is none. Start from prepare(source) of the same batch.",
        ),
        (
            lambda: model(tokens, tokens[:1]),
            "Seq2Seq got 2 sources and 1 targets: give one for each.",
        ),
        (
            lambda: model(tokens, tokens, tokens > 0),
            "Seq2Seq got a source_mask whose row 0 has no real token.",
        ),
        (
            lambda: model(tokens, tokens + 8),
            "Token 8 in row 0, position 0 is not in the vocabulary: tokens are 0 to 7.",
        ),
        (
            lambda: model(tokens - 1, tokens),
            "Token -1 in row 0, position 0 is not in the vocabulary: tokens are 0 to 8.",
        ),
        (
            lambda: DecomposableAttention(9)(tokens, tokens[:1]),
            "DecomposableAttention got 2 premises and 1 hypotheses: give pairs.",
        ),
        (lambda: DecomposableAttention(9, 1), "DecomposableAttention needs at least two classes, not 1."),
    ):
        with pytest.raises(WonderlandError) as caught:
            call()
        assert str(caught.value) == sentence
