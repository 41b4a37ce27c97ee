r"""Rules of matrix factorizations: Cholesky, LU, QR, eigenvalues, singular values, and products of reflections.

Each rule follows from differentiating the factorization and keeping the form of the factors: triangular, unitary, diagonal.
For unitary Q, :math:`Q^H dQ` is skew-Hermitian. Where a factor is unique only up to a phase, the loss must not depend on it.
"""

import torch

from wonderland.autodiff.rules.linalg import h
from wonderland.autodiff.rules.table import conj, from_program, no_rule, rule

aten = torch.ops.aten


def _half(x):
    """The lower triangle with half of the diagonal."""
    return x.tril() - torch.diag_embed(x.diagonal(dim1=-2, dim2=-1)) / 2


def _cholesky(g, y, upper):
    r""":math:`L^{-1} dL = \Phi(L^{-1} dA\,L^{-H})`, where Phi takes the lower triangle and half of the diagonal."""
    if g is None:
        return None
    low, g = (h(y), h(g)) if upper else (y, g)
    inner = _half(h(low) @ g)
    inner = (inner + h(inner)) / 2
    left = torch.linalg.solve_triangular(h(low), inner, upper=True)
    return torch.linalg.solve_triangular(low, left, upper=False, left=False)


rule("linalg_cholesky_ex", self=lambda g, n: _cholesky(g[0], n.y[0], n.upper), nondifferentiable=(1,))
rule("cholesky", self=lambda g, n: _cholesky(g, n.y, n.upper))


def _to_factor(to_gram, factor, upper):
    r"""The cotangent of a Cholesky factor by that of :math:`A = LL^H` or :math:`U^H U`; only a triangle is read."""
    both = to_gram + h(to_gram)
    return (factor.triu() @ both).triu() if upper else (both @ factor.tril()).tril()


def _cholesky_inverse(g, n):
    return _to_factor(-n.y @ g @ n.y, n.self, n.upper)


def _cholesky_solve(needs, g, n):
    to_b = torch.cholesky_solve(g, n.input2, upper=n.upper)
    return {"self": to_b, "input2": _to_factor(-to_b @ h(n.y), n.input2, n.upper)}


rule("cholesky_inverse", self=_cholesky_inverse)
rule("cholesky_solve", joint=_cholesky_solve)


def _lower(packed):
    return packed[..., :, : min(packed.shape[-2:])].tril(-1)


def _upper(packed):
    return packed[..., : min(packed.shape[-2:]), :].triu()


def _pack_lu(low, up, like):
    """Cotangents of L and U in one packed matrix."""
    rows, columns = like.shape[-2:]
    size = min(rows, columns)
    terms = []
    if low is not None:
        terms.append(aten.constant_pad_nd(low.tril(-1), [0, columns - size]))
    if up is not None:
        terms.append(aten.constant_pad_nd(up.triu(), [0, 0, 0, rows - size]))
    return sum(terms[1:], terms[0]) if terms else None


rule(
    "lu_unpack",
    LU_data=lambda g, n: _pack_lu(g[1], g[2], n.LU_data),
    tangent=lambda t, n: [None, _lower(t["LU_data"]), _upper(t["LU_data"])] if n.unpack_data else [None] * 3,
    nondifferentiable=(0,),
)


def _lu(to_low, to_up, p, low, up):
    r"""With :math:`M = L^{-1} P^T dA\,U^{-1}`, dL is L times the strict lower triangle of M, and dU the upper one times U.

    The part outside the leading square is :math:`L_2 = A_2 U^{-1}` of a tall matrix, :math:`U_2 = L^{-1} A_2` of a wide.
    """
    size = low.shape[-1]
    to_low = torch.zeros_like(low) if to_low is None else to_low
    to_up = torch.zeros_like(up) if to_up is None else to_up
    low1, low2, up1, up2 = low[..., :size, :], low[..., size:, :], up[..., :size], up[..., size:]
    below = torch.linalg.solve_triangular(h(up1), to_low[..., size:, :], upper=False, left=False)
    beside = torch.linalg.solve_triangular(h(low1), to_up[..., size:], upper=True, unitriangular=True)
    to_up1 = to_up[..., :size] - h(low2) @ below
    to_low1 = to_low[..., :size, :] - beside @ h(up2)
    inner = (h(low1) @ to_low1).tril(-1) + (to_up1 @ h(up1)).triu()
    inner = torch.linalg.solve_triangular(h(up1), inner, upper=False, left=False)
    inner = torch.linalg.solve_triangular(h(low1), inner, upper=True, unitriangular=True)
    return (
        p @ torch.cat([torch.cat([inner, beside], -1), below], -2)
        if low2.shape[-2]
        else p @ torch.cat([inner, beside], -1)
    )


def _lu_factor(g, n):
    if g[0] is None:
        return None
    p, low, up = torch.lu_unpack(n.y[0], n.y[1])
    return _lu(_lower(g[0]), _upper(g[0]), p, low, up)


rule("linalg_lu", A=lambda g, n: _lu(g[1], g[2], *n.y), nondifferentiable=(0,))
rule("linalg_lu_factor_ex", A=_lu_factor, nondifferentiable=(1, 2))


def _lu_solve(n):
    p, low, up = torch.lu_unpack(n.LU, n.pivots)
    b = n.B if n.left else h(n.B)
    if n.adjoint == n.left:
        x = torch.linalg.solve_triangular(h(up), b, upper=False)
        x = p @ torch.linalg.solve_triangular(h(low), x, upper=True, unitriangular=True)
    else:
        x = torch.linalg.solve_triangular(low, p.mT @ b, upper=False, unitriangular=True)
        x = torch.linalg.solve_triangular(up, x, upper=True)
    return x if n.left else h(x)


from_program("linalg_lu_solve", _lu_solve)


def _qr(g, n):
    """A wide matrix is a square one and further columns, which are Q times those of R."""
    (q, r), (to_q, to_r) = n.y, g
    if n.mode == "r" or q.shape[-1] > r.shape[-1]:
        raise no_rule(n.op_, f"reverse (mode {n.mode!r}, of which Q is not unique)")
    if to_q is None and to_r is None:
        return None
    to_q = torch.zeros_like(q) if to_q is None else to_q
    to_r = torch.zeros_like(r) if to_r is None else to_r
    size = q.shape[-1]
    beside = n.A[..., size:]
    to_q = to_q + beside @ h(to_r[..., size:])
    to_a = _qr_tall(to_q, to_r[..., :size], q, r[..., :size])
    return torch.cat([to_a, q @ to_r[..., size:]], -1)


def _qr_tall(to_q, to_r, q, r):
    r"""With :math:`C = Q^H dA\,R^{-1}`, the skew part :math:`Q^H dQ` has C's strict lower triangle, and dR R^{-1} is the rest."""
    along = h(q) @ to_q
    upper = to_r @ h(r)
    skew = along - upper
    inner = upper + (skew - h(skew)).tril(-1) - along
    if skew.is_complex():
        inner = inner + torch.diag_embed(skew.diagonal(dim1=-2, dim2=-1).imag * 1j)
    return torch.linalg.solve_triangular(h(r), to_q + q @ inner, upper=False, left=False)


rule("linalg_qr", A=_qr)


def _pairwise_differences(values):
    """Differences of all pairs, column minus row, with ones on the diagonal."""
    gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
    return gaps + torch.eye(values.shape[-1], dtype=gaps.dtype, device=gaps.device)


def _off_diagonal(x):
    return x - torch.diag_embed(x.diagonal(dim1=-2, dim2=-1))


def _eigh(g, n):
    r""":math:`d\lambda = \operatorname{diag}(V^H dA V)` and :math:`V^H dV = V^H dA V / (\lambda_j - \lambda_i)` off the diagonal."""
    values, vectors = n.y if n.compute_v else torch.linalg.eigh(n.A, UPLO=n.UPLO)
    inner = None
    if g[1] is not None and n.compute_v:
        inner = _off_diagonal(h(vectors) @ g[1]) / _pairwise_differences(values)
    if g[0] is not None:
        diagonal = torch.diag_embed(g[0]).to(vectors.dtype)
        inner = diagonal if inner is None else inner + diagonal
    if inner is None:
        return None
    to_a = vectors @ inner @ h(vectors)
    return (to_a + h(to_a)) / 2


rule("_linalg_eigh", A=_eigh)


def _eig(g, n):
    r"""As for Hermitian matrices with :math:`V^{-1}` for :math:`V^H`; the columns of V keep length 1."""
    values, vectors = n.y
    inner = None
    if g[1] is not None:
        along = h(vectors) @ g[1]
        along = along - h(vectors) @ vectors * along.diagonal(dim1=-2, dim2=-1).real.unsqueeze(-2)
        inner = _off_diagonal(along) / conj(_pairwise_differences(values))
    if g[0] is not None:
        inner = torch.diag_embed(g[0]) if inner is None else inner + torch.diag_embed(g[0])
    return None if inner is None else torch.linalg.solve(h(vectors), inner @ h(vectors))


rule("linalg_eig", self=_eig)


def _svd(g, n):
    r"""With :math:`P = U^H dA V`, dS is the diagonal of P, :math:`U^H dU = (PS + SP^H)/E`, :math:`V^H dV = (SP + P^H S)/E`,

    where :math:`E_{ij} = s_j^2 - s_i^2`; U and V of thin factorizations also change orthogonally to their column spaces.
    """
    u, s, vh = n.y if n.compute_uv else torch.linalg.svd(n.A, full_matrices=False)
    to_u, to_s, to_vh = g if n.compute_uv else (None, g[1], None)
    size = s.shape[-1]
    u, to_u = _thin(u, to_u, size)
    v, to_v = _thin(h(vh), None if to_vh is None else h(to_vh), size)
    inner = None if to_s is None else torch.diag_embed(to_s).to(u.dtype)
    if to_u is None and to_v is None:
        return None if inner is None else u @ inner @ h(v)
    to_u = torch.zeros_like(u) if to_u is None else to_u
    to_v = torch.zeros_like(v) if to_v is None else to_v
    inner = (
        _svd_rotations(h(u) @ to_u, h(v) @ to_v, s)
        if inner is None
        else inner + _svd_rotations(h(u) @ to_u, h(v) @ to_v, s)
    )
    to_a = u @ inner @ h(v)
    if u.shape[-2] > size:
        to_a = to_a + _outside(to_u, u) / s.unsqueeze(-2) @ h(v)
    if v.shape[-2] > size:
        to_a = to_a + u @ h(_outside(to_v, v) / s.unsqueeze(-2))
    return to_a


def _thin(u, g, size):
    """The columns of the thin factor and their cotangent.

    The other columns stay orthogonal to them, so their cotangent is added to that of the thin columns.
    """
    if u.shape[-1] == size:
        return u, g
    thin, rest = u[..., :size], u[..., size:]
    if g is None:
        return thin, None
    return thin, g[..., :size] - rest @ (h(g[..., size:]) @ thin)


def _svd_rotations(along_u, along_v, s):
    gaps = _pairwise_differences(s.square())
    to_a = _off_diagonal(along_u - h(along_u)) / gaps * s.unsqueeze(-2) + s.unsqueeze(-1) * (
        _off_diagonal(along_v - h(along_v)) / gaps
    )
    if along_u.is_complex():
        phase = (along_u - along_v).diagonal(dim1=-2, dim2=-1).imag / (2 * s)
        to_a = to_a + torch.diag_embed(phase * 1j)
    return to_a


def _outside(g, u):
    return g - u @ (h(u) @ g)


rule("_linalg_svd", A=_svd)


def _reflection(columns, k):
    """The vector of a Householder reflection: zeros, a one at place k, and what a column has below it."""
    rows = columns.shape[-2]
    place = torch.arange(rows, device=columns.device)
    below = torch.where(place > k, columns[..., k], torch.zeros((), dtype=columns.dtype))
    return (below + (place == k).to(columns.dtype)).unsqueeze(-1)


def _reflect(x, vector, tau):
    return x - tau[..., None, None] * (vector @ (h(vector) @ x))


def _householder(n):
    columns = n.input
    x = torch.eye(*columns.shape[-2:], dtype=columns.dtype).expand(columns.shape)
    for k in reversed(range(n.tau.shape[-1])):
        x = _reflect(x, _reflection(columns, k), n.tau[..., k])
    return x


from_program("linalg_householder_product", _householder)


def _ormqr(n):
    """Q times a matrix, by applying the reflections one after another; from the right, by the adjoint of the product."""
    x = n.input3 if n.left else h(n.input3)
    adjoint = n.transpose == n.left
    order = range(n.input2.shape[-1])
    for k in order if adjoint else reversed(order):
        tau = n.input2[..., k]
        x = _reflect(x, _reflection(n.self, k), conj(tau) if adjoint else tau)
    return x if n.left else h(x)


from_program("ormqr", _ormqr)
