r"""Rules of inverses, linear systems, determinants and matrix functions.

A cotangent `g` pairs with a change of the output as :math:`\operatorname{Re}\operatorname{tr}(g^H dY)`; each rule expresses dY
by dA and reads off the factor of dA.
"""

import torch

from wonderland.autodiff.rules.table import conj, from_program, no_cotangent, rule, total

aten = torch.ops.aten


def h(x):
    """The conjugate transpose of the last two axes."""
    return conj(x.mT)


def _inverse(t, y):
    return -y @ t @ y


rule(
    "linalg_inv_ex",
    A=lambda g, n: None if g[0] is None else _inverse(g[0], h(n.y[0])),
    tangent=lambda t, n: [_inverse(t["A"], n.y[0]), None],
    nondifferentiable=(1,),
)


def _as_matrix(x, vector):
    return x.unsqueeze(-1) if vector else x


def _is_vector(n):
    return n.B.dim() == 1 or (n.B.dim() == n.A.dim() - 1 and n.B.shape == n.A.shape[:-1])


def _solved(matrix, right, left):
    return torch.linalg.solve_ex(matrix, right, left=left)[0]


def _solve(needs, g, n):
    r"""AX = B gives :math:`dX = A^{-1}(dB - dA\,X)`, and XA = B the same from the other side."""
    if g[0] is None:
        return {}
    vector = _is_vector(n)
    x = _as_matrix(n.y[0], vector)
    to_b = _solved(h(n.A), _as_matrix(g[0], vector), n.left)
    to_a = -(to_b @ h(x) if n.left else h(x) @ to_b)
    return {"A": to_a, "B": to_b.squeeze(-1) if vector else to_b}


def _solve_tangent(t, n):
    vector = _is_vector(n)
    x = _as_matrix(n.y[0], vector)
    moved = total(
        (
            None if "B" not in t else _as_matrix(t["B"], vector),
            None if "A" not in t else -(t["A"] @ x if n.left else x @ t["A"]),
        )
    )
    dx = _solved(n.A, moved, n.left)
    return [dx.squeeze(-1) if vector else dx, None, None, None]


rule("_linalg_solve_ex", joint=_solve, tangent=_solve_tangent, nondifferentiable=(1, 2, 3))


def _triangle(x, upper, unit):
    """The entries that a triangular solver reads."""
    return x.triu(int(unit)) if upper else x.tril(-int(unit))


def _solve_triangular(needs, g, n):
    to_b = torch.linalg.solve_triangular(h(n.self), g, upper=not n.upper, left=n.left, unitriangular=n.unitriangular)
    to_a = -(to_b @ h(n.y) if n.left else h(n.y) @ to_b)
    return {"self": _triangle(to_a, n.upper, n.unitriangular), "B": to_b}


def _solve_triangular_tangent(t, n):
    terms = [t.get("B")]
    if "self" in t:
        moved = _triangle(t["self"], n.upper, n.unitriangular)
        terms.append(-(moved @ n.y if n.left else n.y @ moved))
    return torch.linalg.solve_triangular(
        n.self, total(terms), upper=n.upper, left=n.left, unitriangular=n.unitriangular
    )


rule("linalg_solve_triangular", joint=_solve_triangular, tangent=_solve_triangular_tangent)


def _triangular_solve(n):
    matrix = n.A.mT if n.transpose else n.A
    upper = n.upper != n.transpose
    solution = torch.linalg.solve_triangular(matrix, n.self, upper=upper, unitriangular=n.unitriangular)
    return solution, n.A.expand(n.y[1].shape).clone()


from_program("triangular_solve", _triangular_solve)


def _determinant(g, n):
    r""":math:`d\det A = \det A \operatorname{tr}(A^{-1} dA)`; for a singular matrix, from its SVD."""
    g, y = g[0], n.y[0]
    if g is None:
        return None
    if bool((y == 0).any()):
        u, s, vh = torch.linalg.svd(n.A)
        phase = torch.linalg.det(u) * torch.linalg.det(vh)
        return (g * conj(phase))[..., None, None] * ((u * _products_of_others(s).unsqueeze(-2)) @ vh)
    return (g * conj(y))[..., None, None] * h(_inverse_of(n.A))


def _products_of_others(s):
    size = s.shape[-1]
    eye = torch.eye(size, dtype=torch.bool, device=s.device)
    table = s.unsqueeze(-2).expand(*s.shape, size)
    return torch.where(eye, torch.ones_like(table), table).prod(-1)


def _inverse_of(x):
    return torch.linalg.inv_ex(x)[0]


rule("_linalg_det", A=_determinant, nondifferentiable=(1, 2))


def _slogdet(g, n):
    r""":math:`d\log\det A = \operatorname{tr}(A^{-1} dA)`: the real part is the change of the logarithm, the imaginary part that of the phase."""
    cotangent = g[1]
    if g[0] is not None and n.A.is_complex():
        from_phase = torch.complex(torch.zeros_like(n.y[1]), -(conj(g[0]) * n.y[0]).imag)
        cotangent = from_phase if cotangent is None else cotangent + from_phase
    return None if cotangent is None else cotangent[..., None, None] * h(_inverse_of(n.A))


rule("_linalg_slogdet", A=_slogdet, nondifferentiable=(2, 3))


def _frechet(direction, matrix):
    r"""The change of exp(A) along a direction E: the corner of :math:`\exp\begin{pmatrix}A & E\\ 0 & A\end{pmatrix}`."""
    size = matrix.shape[-1]
    top = torch.cat([matrix, direction], -1)
    bottom = torch.cat([torch.zeros_like(matrix), matrix], -1)
    return torch.linalg.matrix_exp(torch.cat([top, bottom], -2))[..., :size, size:]


rule(
    "linalg_matrix_exp",
    self=lambda g, n: _frechet(g, h(n.self)),
    tangent=lambda t, n: _frechet(t["self"], n.self),
)


def _complement(product):
    return torch.eye(product.shape[-1], dtype=product.dtype, device=product.device) - product


def _pinv(g, n):
    r"""At constant rank, :math:`dY = -Y dA\,Y + YY^H dA^H (I - AY) + (I - YA) dA^H Y^H Y`."""
    a, y = n.self, n.y
    inside = -h(y) @ g @ h(y)
    beyond_rows = _complement(a @ y) @ h(g) @ y @ h(y)
    beyond_columns = h(y) @ y @ h(g) @ _complement(y @ a)
    return inside + beyond_rows + beyond_columns


rule("linalg_pinv", self=_pinv, atol=no_cotangent, rtol=no_cotangent, rcond=no_cotangent)


def _least_squares(n):
    vector = n.b.dim() == n.self.dim() - 1
    b = _as_matrix(n.b, vector)
    x = torch.linalg.pinv(n.self) @ b
    if n.y[1].numel():
        rest = (n.self @ x - b).abs().square().sum(-2)
        rest = rest.reshape(n.y[1].shape)
    else:
        rest = torch.zeros_like(n.y[1])
    return x.squeeze(-1) if vector else x, rest, None, None


from_program("linalg_lstsq", _least_squares, nondifferentiable=(2, 3))
