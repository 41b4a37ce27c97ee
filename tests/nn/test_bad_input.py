"""Bad input where a mixer's own checks do not reach: contexts, heads, extra tokens, positions, states."""

import inspect
import re

import pytest
import torch

from wonderland import models, nn
from wonderland.core import WonderlandError
from wonderland.generation import sample
from wonderland.nn.contract.state import over

X, Z = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
TOKENS = torch.randint(7, (2, 5))
CROSS = nn.CrossAttention(8, heads=2)
BLOCK = nn.Block(8, nn.GRU.spec(), cross=nn.CrossAttention.spec(heads=2))
STACK = nn.Stack(8, 2, nn.Block.spec(mixer=nn.GRU.spec(), cross=nn.CrossAttention.spec(heads=2)))
DECODER = models.Decoder(vocab=7, dim=8, depth=1, mixer=nn.GRU.spec())
REGRESSION = nn.KernelRegression()
STATE = nn.GRU(8).start(2)
WIDE = "takes a tensor (batch, time, 8) with at least one row and one position, not one of type list."


def regress(*inputs):
    """Without the annotations, which speak first under test and not in use."""
    return inspect.unwrap(nn.KernelRegression.forward)(REGRESSION, *inputs)


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (lambda: BLOCK(X, None, [1]), f"The context of CrossAttention {WIDE}"),
        (lambda: STACK(X, None, [1]), f"The context of CrossAttention {WIDE}"),
        (
            lambda: STACK.prepare(None),
            "This Stack has cross mixers: give forward a context, or stream from prepare(context).",
        ),
        (
            lambda: nn.Stack(8, 1, nn.MLP.spec()).prepare(Z),
            "No block of this Stack has a cross mixer, so it reads no context: leave it out.",
        ),
        (
            lambda: BLOCK(X, None, Z.double()),
            "The context of CrossAttention has weights of torch.float32 and got features of torch.float64: "
            "convert one of them with .to().",
        ),
        (lambda: BLOCK(X, None, Z[:1]), "The context has 1 rows and the input 2: give one for each."),
        (lambda: CROSS.maps(X, Z[:1]), "The context has 1 rows and the input 2: give one for each."),
        (lambda: CROSS.maps([1], Z), f"CrossAttention {WIDE}"),
        (
            lambda: CROSS.maps(X, Z, torch.ones(2, 4, dtype=torch.bool)),
            "CrossAttention takes a mask of booleans (2, 5), True where a token is real, not torch.bool (2, 4).",
        ),
        (
            lambda: CROSS.stream(
                X, tuple(one.double() if one.is_floating_point() else one for one in CROSS.prepare(Z))
            ),
            "The context of this CrossAttention was prepared in torch.float64 and the input is torch.float32: "
            "prepare it again.",
        ),
        (lambda: nn.Pool(8)([1]), f"Pool {WIDE}"),
        (lambda: nn.Pool(8)(X.long()), "Pool takes floating point features, not torch.int64: embed tokens first."),
        (lambda: nn.SequenceHead(8, 3)(None), f"SequenceHead {WIDE.replace('list', 'NoneType')}"),
        (
            lambda: nn.TokenHead(8, 3)(X.double()),
            "TokenHead has weights of torch.float32 and got features of torch.float64: convert one of them with .to().",
        ),
        (
            lambda: nn.LatentAttention(8)(X.double()),
            "LatentAttention has weights of torch.float32 and got features of torch.float64: convert one of them with .to().",
        ),
        (
            lambda: nn.ClassToken(8)([1]),
            "ClassToken takes a sequence (batch, time, 8), of one token at least beside its own, not a list.",
        ),
        (
            lambda: nn.ClassToken(8).split(X[:, :1]),
            "ClassToken takes a sequence (batch, time, 8), of one token at least beside its own, not (2, 1, 8).",
        ),
        (
            lambda: nn.Registers(8)(X.long()),
            "Registers takes floating point features, not torch.int64: embed tokens first.",
        ),
        (
            lambda: nn.Bidirectional(8).both(X, torch.ones(2, 5)),
            "Bidirectional takes a mask of booleans (2, 5), True where a token is real, not torch.float32 (2, 5).",
        ),
        (lambda: regress(X[0], Z[0][:, :3], Z[0]), "KernelRegression takes keys of shape (m, d) = (4, 8), not (4, 3)."),
        (lambda: regress(X[0], Z[0], Z[0][:2]), "KernelRegression takes values of shape (m, o) = (4, o), not (2, 8)."),
        (
            lambda: inspect.unwrap(nn.KernelRegression.weights)(REGRESSION, X[0], Z[0], torch.ones(5, 4)),
            "KernelRegression takes a mask of booleans (5, 4), True where a key may be seen, not torch.float32 (5, 4).",
        ),
        (
            lambda: inspect.unwrap(nn.Rotary.rotate)(nn.Rotary(8), torch.zeros(2, 4, 3, 6), torch.arange(4)[None]),
            "Rotary takes queries or keys (batch, time, heads, 8), not (2, 4, 3, 6).",
        ),
        (
            lambda: inspect.unwrap(nn.Rotary.rotate)(nn.Rotary(8), torch.zeros(2, 4, 3, 8), torch.arange(3)[None]),
            "Rotary takes positions (2, 4), or one row for all, not (1, 3).",
        ),
        (
            lambda: nn.Rotary(8).embed(torch.arange(4)[None]),
            "Rotary is a position of the kind 'rotate', so it has no embed.",
        ),
        (
            lambda: nn.Learned(8).embed(torch.arange(-1, 3)[None]),
            "Learned was asked for position -1: positions count from 0.",
        ),
        (
            lambda: inspect.unwrap(nn.Learned.embed)(nn.Learned(8), [0, 1]),
            "Learned takes positions as whole numbers (batch, time), not a list.",
        ),
        (lambda: nn.GRU(8).start(-1), "GRU starts a state for a whole number of rows from 1, not -1."),
        (lambda: DECODER.start("2"), "Decoder starts a state for a whole number of rows from 1, not '2'."),
        (
            lambda: sample(DECODER, TOKENS, 2.5),
            "Sampling takes at least one step and a temperature of at least 0, not 2.5 and 1.0.",
        ),
        (
            lambda: sample(DECODER, TOKENS, 2, temperature="warm"),
            "Sampling takes at least one step and a temperature of at least 0, not 2 and warm.",
        ),
        (
            lambda: nn.rows(STATE, torch.tensor([5])),
            "rows was asked for rows [5] of a state with 2: they count from 0.",
        ),
        (
            lambda: nn.rows(STATE, torch.tensor([0.0])),
            "rows takes the numbers of the rows to pick, a tensor or list of whole numbers.",
        ),
        (lambda: nn.detach([X]), "A state is a tuple of tensors, as stream returns it, not a list."),
        (
            lambda: nn.EchoState(8).fit_readout(X, X, washout=-1),
            "fit_readout takes a ridge and a washout of at least 0, not 1e-06 and -1.",
        ),
    ],
)
def test_it_is_told(run, sentence):
    with pytest.raises(WonderlandError) as error:
        run()
    assert str(error.value) == sentence


def test_the_beginning_is_detached_and_picked_from_like_any_state():
    assert nn.detach(None) is None
    assert nn.rows(None, [0]) is None
    assert torch.equal(nn.rows(STATE, [1, 1, 0])[0], torch.zeros(3, 8))


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (
            lambda: nn.rows(nn.Attention(8, window=1).stream(X)[1], [5]),
            "rows was asked for rows [5] of a state with 2: they count from 0.",
        ),
        (
            lambda: nn.rows(nn.Mamba(8, width=1).stream(X)[1], [-1]),
            "rows was asked for rows [-1] of a state with 2: they count from 0.",
        ),
        (
            lambda: nn.GRU(8)(X.to("meta")),
            "GRU has its weights on cpu and got features on meta: move one of them with .to().",
        ),
        (
            lambda: nn.Attention(8)(X.to_sparse()),
            "Attention takes dense features, not torch.sparse_coo: call .to_dense() on them.",
        ),
    ],
)
def test_rows_devices_and_layouts(run, sentence):
    with pytest.raises(WonderlandError) as told:
        run()
    assert str(told.value) == sentence


def test_states_of_another_window_are_told():
    x, states = torch.randn(2, 9, 8), {}
    windows = {
        None: nn.Attention(8, heads=2),
        3: nn.Attention(8, heads=2, window=3),
        6: nn.Attention(8, heads=2, window=6),
    }
    for window, mixer in windows.items():
        states[window] = mixer.stream(x)[1]
    for own, mixer in windows.items():
        mixer.stream(x[:, :1], states[own])
        for other in set(windows) - {own}:
            kind = "Attention" if other is None else f"Attention with a window of {other}"
            with pytest.raises(WonderlandError, match=f"comes from a module of the kind {kind}. A state belongs to"):
                mixer.stream(x[:, :1], states[other])


def test_masks_and_states_elsewhere_are_told():
    mixer, x = nn.GRU(8), torch.randn(2, 5, 8)
    mask = torch.ones(2, 5, dtype=torch.bool)
    for wrong, says in (
        (mask.to("meta"), "GRU got its input on cpu and a mask on meta: move one of them with .to()."),
        (mask.to_sparse(), "GRU takes a dense mask, not torch.sparse_coo: call .to_dense() on it."),
    ):
        with pytest.raises(WonderlandError, match="^" + re.escape(says) + "$"):
            mixer(x, wrong)
    state = over(mixer.stream(x)[1], lambda tensor: tensor.to("meta"))
    says = "The state of this GRU is on meta and the input on cpu: move one of them with .to()."
    with pytest.raises(WonderlandError, match="^" + re.escape(says) + "$"):
        mixer.stream(x, state)


def test_a_mask_of_a_context_that_nobody_reads_is_told():
    for module in (nn.Block(8, mixer=nn.GRU.spec()), nn.Stack(8, 1, nn.GRU.spec())):
        with pytest.raises(WonderlandError, match="reads no context: leave it out"):
            module(torch.randn(2, 5, 8), context_mask=torch.ones(2, 3, dtype=torch.bool))


def test_rows_that_are_no_numbers_are_told():
    with pytest.raises(WonderlandError, match=r"^rows takes the numbers of the rows to pick"):
        nn.rows((torch.zeros(2),), "a")


def test_contexts_and_masks_of_tokens_elsewhere_are_told():
    cross, x = nn.CrossAttention(8, heads=2), torch.randn(2, 5, 8)
    state = over(cross.prepare(x), lambda tensor: tensor.to("meta"))
    says = (
        "The context of this CrossAttention was prepared on meta and the input is on cpu: move one of them with .to()."
    )
    with pytest.raises(WonderlandError, match="^" + re.escape(says) + "$"):
        cross.stream(x, state)
    tokens, mask = torch.ones(2, 5, dtype=torch.int64), torch.ones(2, 5, dtype=torch.bool)
    model = models.Decoder(vocab=5, dim=8, depth=1)
    for wrong, says in (
        (mask.to("meta"), "A Decoder got its input on cpu and a mask on meta: move one of them with .to()."),
        (mask.to_sparse(), "A Decoder takes a dense mask, not torch.sparse_coo: call .to_dense() on it."),
    ):
        with pytest.raises(WonderlandError, match="^" + re.escape(says) + "$"):
            model(tokens, wrong)


def test_a_state_for_true_rows_is_told():
    with pytest.raises(WonderlandError, match=r"^GRU starts a state for a whole number of rows from 1, not True\.$"):
        nn.GRU(8).start(True)
