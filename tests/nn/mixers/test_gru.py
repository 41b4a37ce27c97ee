"""The two places of the reset gate."""

import torch

from wonderland.nn.mixers.gru import GRU


def twins():
    """Two GRUs that differ in nothing but the place of the reset gate."""
    after, before = GRU(5), GRU(5, reset="before")
    with torch.no_grad():
        for name in ("weight_input", "weight_state", "bias"):
            getattr(before, name).copy_(getattr(after, name))
        after.bias_candidate.zero_()
    return after, before


def test_resetting_before_and_after_are_two_models():
    after, before = twins()
    x = torch.randn(2, 6, 5)
    torch.testing.assert_close(after(x)[:, 0], before(x)[:, 0])
    assert not torch.allclose(after(x)[:, 1:], before(x)[:, 1:], atol=1e-4)


def test_with_an_open_reset_gate_both_are_one_model():
    after, before = twins()
    for mixer in (after, before):
        with torch.no_grad():
            mixer.bias[:5] = 1e3
    x = torch.randn(2, 6, 5)
    torch.testing.assert_close(after(x), before(x))


def test_reset_before_is_the_books_equation():
    mixer = GRU(3, reset="before")
    x, h = torch.randn(2, 4, 3), torch.zeros(2, 3)
    wr, wz, wn = mixer.weight_input.chunk(3)
    vr, vz, vn = mixer.weight_state.chunk(3)
    br, bz, bn = mixer.bias.chunk(3)
    states = []
    for i in range(4):
        r = torch.sigmoid(x[:, i] @ wr.T + h @ vr.T + br)
        z = torch.sigmoid(x[:, i] @ wz.T + h @ vz.T + bz)
        n = torch.tanh(x[:, i] @ wn.T + (r * h) @ vn.T + bn)
        h = z * h + (1 - z) * n
        states.append(h)
    torch.testing.assert_close(mixer(x), torch.stack(states, 1))


def test_an_update_gate_of_one_keeps_the_state():
    mixer = GRU(4)
    with torch.no_grad():
        mixer.bias[4:8] = 1e3
    start = (torch.randn(2, 4), torch.zeros(2, dtype=torch.int64))
    y, (last, _) = mixer.stream(torch.randn(2, 9, 4), start)
    torch.testing.assert_close(last, start[0])
    torch.testing.assert_close(y, start[0].unsqueeze(1).expand_as(y))
