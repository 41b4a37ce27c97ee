"""Cross-attention: one sequence reads another, prepared once."""

import math

import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn.contract.cross_mixer import check_features
from wonderland.nn.mixers.additive_attention import AdditiveAttention
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.cross_attention import CrossAttention


def pair(t=5, m=7, dim=12, width=12, dtype=torch.float64):
    return torch.randn(2, t, dim, dtype=dtype), torch.randn(2, m, width, dtype=dtype)


@pytest.mark.parametrize("width", [12, 9])
@pytest.mark.parametrize("bias", [True, False])
def test_a_module_of_torch_becomes_a_cross_mixer(width, bias):
    theirs = nn.MultiheadAttention(
        12, 3, batch_first=True, kdim=width, vdim=width, bias=bias, dtype=torch.float64
    ).eval()
    ours, (x, context) = CrossAttention.from_torch(theirs), pair(width=width)
    mask = torch.arange(7) < torch.tensor([[7], [3]])
    expected = theirs(x, context, context, key_padding_mask=~mask, need_weights=False)[0]
    assert torch.allclose(ours(x, context, context_mask=mask), expected)
    assert not ours.training


@pytest.mark.parametrize("width", [12, 9])
def test_it_is_multihead_attention_of_torch_in_values_and_gradients(width):
    theirs = nn.MultiheadAttention(12, 3, batch_first=True, kdim=width, vdim=width)
    ours = CrossAttention(12, heads=3, context_dim=width, bias=True)
    nn.init.normal_(theirs.in_proj_bias)
    if theirs.in_proj_weight is not None:
        parts = theirs.in_proj_weight.split(12)
    else:
        parts = (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight)
    ours.query.load_state_dict({"weight": parts[0], "bias": theirs.in_proj_bias[:12]})
    ours.project.load_state_dict({"weight": torch.cat(parts[1:]), "bias": theirs.in_proj_bias[12:]})
    ours.out.load_state_dict(theirs.out_proj.state_dict())
    x, context = (part.requires_grad_() for part in pair(width=width, dtype=torch.float32))
    mask = torch.arange(7) < torch.tensor([[7], [3]])
    expected, maps = theirs(x, context, context, key_padding_mask=~mask, average_attn_weights=False)
    y = ours(x, context, context_mask=mask)
    assert torch.allclose(y, expected, atol=1e-5)
    assert torch.allclose(ours.maps(x, context, context_mask=mask), maps, atol=1e-5)
    weight = torch.randn_like(y)
    for one, other in zip(
        *(torch.autograd.grad((out * weight).sum(), (x, context)) for out in (y, expected)), strict=True
    ):
        assert torch.allclose(one, other, atol=1e-5)


def test_attending_to_itself_is_self_attention():
    cross, own = CrossAttention(12, heads=3, kv_heads=1), Attention(12, heads=3, kv_heads=1, causal=False)
    own.project.load_state_dict({"weight": torch.cat([cross.query.weight, cross.project.weight])})
    own.out.load_state_dict(cross.out.state_dict())
    x, _ = pair(dtype=torch.float32)
    assert torch.allclose(cross(x, x), own(x), atol=1e-6)


def test_it_is_self_attention_on_both_sequences_that_sees_the_context_only():
    cross, own = CrossAttention(12, heads=3).double(), Attention(12, heads=3, causal=False).double()
    own.project.load_state_dict({"weight": torch.cat([cross.query.weight, cross.project.weight])})
    x, context = pair()
    maps = own.maps(torch.cat([x, context], 1))[:, :, :5, 5:]
    assert torch.allclose(maps / maps.sum(-1, keepdim=True), cross.maps(x, context), atol=1e-12)


@pytest.mark.parametrize("build", [CrossAttention, AdditiveAttention])
def test_order_matters_in_x_and_not_in_the_context(build):
    mixer = build(12).double()
    x, context = pair()
    y, order = mixer(x, context), torch.randperm(7)
    assert torch.allclose(mixer(x.flip(1), context), y.flip(1))
    assert torch.allclose(mixer(x, context[:, order]), y)


@pytest.mark.parametrize("build", [CrossAttention, AdditiveAttention])
def test_pieces_of_x_read_one_prepared_context(build):
    mixer = build(12, context_dim=9).double()
    x, context = pair(width=9)
    mask, seen = torch.arange(7) < torch.tensor([[7], [3]]), torch.arange(5) < torch.tensor([[2], [5]])
    context = context.masked_fill(~mask.unsqueeze(-1), math.nan)
    state = mixer.prepare(context, mask)
    whole = mixer(x.masked_fill(~seen.unsqueeze(-1), math.nan), context, seen, mask)
    pieces = [mixer.stream(x[:, i : i + 2], state, seen[:, i : i + 2]) for i in (0, 2, 4)]
    assert torch.allclose(torch.cat(pieces, 1), whole)
    assert whole[~seen].eq(0).all()
    assert torch.allclose(mixer(x[1:], context[1:, :3]), whole[1:])


def test_maps_of_masked_queries_are_zero():
    mixer = CrossAttention(12, heads=3).double()
    x, context = pair()
    mask = torch.arange(5) < torch.tensor([[2], [5]])
    assert torch.allclose(mixer.maps(x, context, mask).sum(-1), mask[:, None].expand(2, 3, 5).double())


def test_a_prepared_context_is_as_large_as_the_key_heads():
    state = CrossAttention(12, heads=3, kv_heads=1, key_dim=2, value_dim=5).prepare(torch.randn(2, 7, 12))
    assert [tuple(entry.shape) for entry in state] == [(2, 7, 7), (2, 0)]


X, CONTEXT = torch.zeros(2, 3, 8), torch.zeros(2, 4, 6)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda mixer: mixer(X, CONTEXT, context_mask=torch.tensor([[True] * 4, [False] * 4])),
            "The context of CrossAttention has no real token in row 1: leave rows without a context out of the batch.",
        ),
        (
            lambda mixer: mixer(X, X),
            "The context of CrossAttention takes a tensor (batch, time, 6) with at least one row and one position, "
            "not one of shape (2, 3, 8).",
        ),
        (
            lambda mixer: check_features([1], 8, "CrossAttention"),
            "CrossAttention takes a tensor (batch, time, 8) with at least one row and one position, not one of type list.",
        ),
        (
            lambda mixer: mixer(X.long(), CONTEXT),
            "CrossAttention takes floating point features, not torch.int64: embed tokens first.",
        ),
        (
            lambda mixer: mixer(X, CONTEXT, context_mask=torch.ones(2, 3, dtype=torch.bool)),
            "The context of CrossAttention takes a mask of booleans (2, 4), True where a token is real, "
            "not torch.bool (2, 3).",
        ),
        (
            lambda mixer: mixer.stream(X[:1], mixer.prepare(CONTEXT)),
            "The context does not fit this CrossAttention: entry 0 is for 2 rows and the input has 1. "
            "A prepared context belongs to the module and the batch that made it: call prepare again.",
        ),
        (
            lambda mixer: CrossAttention(8, heads=3),
            "CrossAttention cannot be built with dim=8, heads=3: heads divides dim, unless key_dim and value_dim are given.",
        ),
        (
            lambda mixer: CrossAttention.from_torch(nn.Linear(2, 2)),
            "CrossAttention.from_torch takes a torch.nn.MultiheadAttention, not a Linear.",
        ),
        (
            lambda mixer: CrossAttention.from_torch(nn.MultiheadAttention(8, 2, kdim=3, vdim=5)),
            "CrossAttention.from_torch takes keys and values of one context, so kdim is vdim, "
            "without bias_k, bias_v and add_zero_attn.",
        ),
        (
            lambda mixer: CrossAttention(8, context_dim=0),
            "CrossAttention cannot be built with context_dim=0: it is a whole number from 1.",
        ),
    ],
)
def test_errors_say_what_to_do(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call(CrossAttention(8, heads=2, context_dim=6))
    assert str(error.value) == sentence
