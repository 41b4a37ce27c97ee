"""Sums over workers: equal to torch's, with the bytes that the book counts."""

import pytest
import torch

from wonderland import WonderlandError
from wonderland.train.parallel import ParameterServer, naive_all_reduce, ring_all_reduce


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_both_ways_give_the_sum_to_every_worker(workers):
    torch.manual_seed(0)
    tensors = [torch.randn(4, 5) for _ in range(workers)]
    kept = [tensor.clone() for tensor in tensors]
    for way in (naive_all_reduce, ring_all_reduce):
        reduced = way(tensors)
        assert all(torch.allclose(value, torch.stack(tensors).sum(0), atol=1e-5) for value in reduced.values)
        assert all(torch.equal(a, b) for a, b in zip(tensors, kept, strict=True))
    assert sum(ring_all_reduce(tensors).sent) == 2 * (workers - 1) * 20
    assert max(ring_all_reduce(tensors).sent) <= 2 * 20
    assert max(naive_all_reduce(tensors).sent) == 20 * (workers - 1)


def test_a_parameter_server_updates_as_one_machine_with_the_whole_batch():
    torch.manual_seed(0)
    x, y, weight = torch.randn(8, 3), torch.randn(8), torch.zeros(3)
    server = ParameterServer({"w": weight}, workers=2, lr=0.1)
    for _ in range(5):
        for rows in (slice(0, 4), slice(4, 8)):
            pulled = server.pull("w").requires_grad_()
            (x[rows] @ pulled - y[rows]).square().sum().backward()
            server.push("w", pulled.grad)
        weight = weight.detach().requires_grad_()
        (x @ weight - y).square().sum().backward()
        weight = weight.detach() - 0.1 * weight.grad
    assert torch.allclose(server.pull("w"), weight, atol=1e-4)
    for call, words in (
        (lambda: server.pull("v"), "The parameter server has no value 'v'."),
        (lambda: server.push("w", torch.ones(2)), "The gradient of 'w' has the shape (2,), and the value (3,)."),
        (lambda: ring_all_reduce([]), "A sum over workers needs a tensor of the same shape from each of them."),
    ):
        with pytest.raises(WonderlandError) as told:
            call()
        assert str(told.value) == words
