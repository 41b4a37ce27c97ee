"""Information measures of discrete variables: entropy, cross-entropy, KL divergence, mutual information."""

import math

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.ops.algebra.arguments import Numbers
from wonderland.probability.arguments import probabilities, same_shape


def _unit(base: float | None) -> float:
    if base is None:
        return 1.0
    if not base > 1:
        raise WonderlandError(f"`base` has to be above 1 (2 for bits), or None for nats, not {base}.")
    return math.log(base)


def self_information(p: Numbers, *, base: float | None = None) -> Tensor:
    r"""The information of an event of probability p; infinity for p = 0.

    .. math:: I(x) = -\log p(x)

    In nats, or in bits with base 2. Shapes: p (...), each within [0, 1] -> (...). Book: D2L 22.11.

    >>> self_information([0.5, 0.125], base=2)
    tensor([1., 3.], dtype=torch.float64)
    """
    probs = torch.as_tensor(p, dtype=torch.float64)
    if not bool(((probs >= 0) & (probs <= 1)).all()):
        raise WonderlandError("`p` has to lie between 0 and 1.")
    return -probs.log() / _unit(base)


def entropy(p: Numbers, *, base: float | None = None) -> Tensor:
    r"""The expected information of a distribution; a table of joint probabilities gives the joint entropy.

    .. math:: H(p) = -\sum_i p_i \log p_i, \qquad 0 \le H(p) \le \log k

    with 0 log 0 = 0; largest for equal probabilities. Shapes: p of any shape, summing to 1 -> one number.
    Book: Alice A.5; D2L 4.1, 22.11.

    >>> entropy([0.25, 0.25, 0.25, 0.25], base=2)
    tensor(2., dtype=torch.float64)
    """
    return torch.special.entr(probabilities("p", p)).sum() / _unit(base)


def cross_entropy(p: Numbers, q: Numbers, *, base: float | None = None) -> Tensor:
    r"""The expected information under p, measured with q; infinity when q is 0 where p is not.

    .. math:: \operatorname{CE}(p, q) = -\sum_i p_i \log q_i = H(p) + \operatorname{KL}(p \| q)

    Shapes: p and q of one shape -> one number. Book: Alice 4.2.2 (E.4.17); D2L 22.11.

    >>> cross_entropy([1.0, 0.0], [0.25, 0.75], base=2)
    tensor(2., dtype=torch.float64)
    """
    p, q = probabilities("p", p), probabilities("q", q)
    same_shape("p", p, "q", q)
    return -torch.xlogy(p, q).sum() / _unit(base)


def kl_divergence(p: Numbers, q: Numbers, *, base: float | None = None) -> Tensor:
    r"""The Kullback-Leibler divergence of q from p: never negative, 0 only for p = q, not symmetric.

    .. math:: \operatorname{KL}(p \| q) = \sum_i p_i \log \frac{p_i}{q_i}

    Infinity when q is 0 where p is not. Shapes: p and q of one shape -> one number. Book: Alice A.5; D2L 22.11.

    >>> kl_divergence([0.5, 0.5], [0.25, 0.75]), kl_divergence([0.25, 0.75], [0.5, 0.5])
    (tensor(0.1438, dtype=torch.float64), tensor(0.1308, dtype=torch.float64))
    """
    p, q = probabilities("p", p), probabilities("q", q)
    same_shape("p", p, "q", q)
    return (torch.xlogy(p, p) - torch.xlogy(p, q)).sum() / _unit(base)


def conditional_entropy(joint: Numbers, *, base: float | None = None) -> Tensor:
    r"""The entropy of the column variable Y given the row variable X.

    .. math:: H(Y | X) = -\sum_{x, y} p(x, y) \log p(y | x) = H(X, Y) - H(X)

    Shapes: joint (a, b), p(x, y) with x in rows -> one number. Book: D2L 22.11.

    >>> conditional_entropy([[0.5, 0.0], [0.0, 0.5]])
    tensor(0., dtype=torch.float64)
    """
    table = probabilities("joint", joint, 2)
    return (entropy(table) - entropy(table.sum(1))).clamp_min(0.0) / _unit(base)


def pointwise_mutual_information(joint: Numbers, *, base: float | None = None) -> Tensor:
    r"""For each pair of values, the log ratio of joint probability to that of independent variables; -infinity for 0.

    .. math:: \operatorname{PMI}(x, y) = \log \frac{p(x, y)}{p(x) p(y)}

    NaN where a value has probability 0. Its mean under the joint is the mutual information.

    Shapes: joint (a, b) -> (a, b). Book: D2L 22.11.

    >>> pointwise_mutual_information([[0.5, 0.0], [0.0, 0.5]], base=2)
    tensor([[1., -inf],
            [-inf, 1.]], dtype=torch.float64)
    """
    table = probabilities("joint", joint, 2)
    rows, columns = table.sum(1, keepdim=True), table.sum(0, keepdim=True)
    # Logs are subtracted, since the product of two small margins may underflow.
    return (table.log() - rows.log() - columns.log()) / _unit(base)


def mutual_information(joint: Numbers, *, base: float | None = None) -> Tensor:
    r"""The mutual information of two variables: symmetric, and 0 only for independent ones.

    .. math::
        I(X, Y) = \sum_{x, y} p(x, y) \log \frac{p(x, y)}{p(x) p(y)} = H(X) + H(Y) - H(X, Y)
        = \operatorname{KL}(p(x, y) \| p(x) p(y))

    Shapes: joint (a, b) -> one number. Book: D2L 22.11.

    >>> tickets = torch.tensor([[58.0, 2.0], [27.0, 3.0], [2.0, 8.0]], dtype=torch.float64) / 100
    >>> mutual_information(tickets)
    tensor(0.1511, dtype=torch.float64)
    """
    table = probabilities("joint", joint, 2)
    information = entropy(table.sum(0)) + entropy(table.sum(1)) - entropy(table)
    return information.clamp_min(0.0) / _unit(base)
