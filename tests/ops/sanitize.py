"""`make sanitize`: every C++ kernel under the address and undefined behaviour sanitizers, over odd shapes, strides, zero sizes and threads.

python -m tests.ops.sanitize [KERNEL ...]

A kernel is built a second time with both sanitizers, and the process runs with the library of the first one loaded before all else. The
first error that a sanitizer sees ends the process with its report.
"""

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

THREADS = (1, 2, 3)
SIZES = (0, 1, 2, 3, 5, 8, 17, 33)
NAMES = ("decode_step", "fused_block", "gru", "gru_before", "ligru", "lstm", "optimizers", "rnn", "scan", "selective_scan",
         "short_attention", "short_convolution", "sparse", "wkv")  # fmt: skip


def library(name: str) -> str | None:
    """The path of a sanitizer's library, None where the compiler has none."""
    compiler = os.environ.get("CXX", "g++")
    try:
        found = subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return os.path.realpath(found) if os.path.isabs(found) and os.path.exists(found) else None


def run(kernels: list[str]) -> int:
    """Run the sweep in a child that has the sanitizers loaded; its exit code."""
    libraries = [library(f"lib{name}.so") for name in ("asan", "ubsan")]
    if None in libraries:
        print("The compiler has no address and undefined behaviour sanitizers: nothing was checked.", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {
            "LD_PRELOAD": " ".join(map(str, libraries)),
            # Python and torch free little at their end, and OpenMP keeps its threads.
            "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0:abort_on_error=0",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "WONDERLAND_SANITIZE": "1",
            "WONDERLAND_CACHE": os.environ.get("WONDERLAND_CACHE", cache),
            "WONDERLAND_QUIET": "1",
        }
        return subprocess.run(
            [sys.executable, "-m", "tests.ops.sanitize", "--child", *kernels], env=environment
        ).returncode


def child(kernels: list[str]) -> None:
    import torch

    from wonderland.core import WonderlandError
    from wonderland.ops import kernel_cache, native

    kernel_cache.LONGEST_BUILD = 3600  # with sanitizers, a kernel takes minutes to compile
    for name in kernels or NAMES:
        count = refused = 0
        assert native.status(name) == "built", f"{name}: {native.status(name)}"
        for threads in THREADS:
            torch.set_num_threads(threads)
            torch.manual_seed(0)
            for call in SWEEPS[name]():
                try:
                    call()
                    count += 1
                except WonderlandError:
                    if 0 not in [value for value in call.__defaults__ or () if type(value) is int]:
                        raise  # only of zero sizes may an op have no answer
                    refused += 1
        print(f"{name}: {count:,} calls, {refused:,} refused, nothing found", flush=True)
        assert count


def _learn(outputs: object, *inputs: object) -> None:
    """A backward pass through every output, with a gradient that is not contiguous."""
    import torch

    flat = [
        out for out in (outputs if isinstance(outputs, tuple | list) else [outputs]) if isinstance(out, torch.Tensor)
    ]
    leaves = [leaf for leaf in inputs if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    flat = [out for out in flat if out.requires_grad]
    if flat and leaves:
        grads = [torch.randn(*out.shape, 2, dtype=out.dtype)[..., 0] for out in flat]
        torch.autograd.grad(flat, leaves, grads, allow_unused=True)


def _leaf(*shape: int, dtype=None, strided: bool = False):
    """Random numbers; `strided` leaves gaps between them."""
    import torch

    made = torch.randn(*shape, 2 if strided else 1, dtype=dtype)[..., 0] * 0.3
    return made.requires_grad_()


def _shapes(*choices: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*choices)


def _types():
    import torch

    return itertools.product((torch.float32, torch.float64), (False, True))


def _scan() -> Iterator[Callable[[], None]]:
    import torch

    from wonderland.ops.scan import linear_scan

    for (b, t, d), strided, ragged, dtype in itertools.product(
        _shapes((0, 1, 3), (0, 1, 5, 33), (0, 1, 7, 17)), (False, True), (False, True), (torch.float32, torch.float64, torch.complex64, torch.complex128)
    ):  # fmt: skip

        def call(b=b, t=t, d=d, strided=strided, ragged=ragged, dtype=dtype):
            a, x, state = (
                _leaf(b, t, d, dtype=dtype, strided=strided),
                _leaf(b, t, d, dtype=dtype, strided=strided),
                _leaf(b, d, dtype=dtype),
            )
            lengths = torch.randint(0, t + 1, (b,)) if ragged else None
            _learn(linear_scan(a, x, state, lengths=lengths), a, x, state)

        yield call


def _selective_scan() -> Iterator[Callable[[], None]]:
    import torch

    from wonderland.ops.selective_scan import RULES, selective_scan

    for (b, t, d, n), (dtype, strided), ragged in itertools.product(
        _shapes((0, 1, 3), (0, 1, 33), (1, 17), (1, 3, 16, 19)), _types(), (False, True)
    ):

        def call(b=b, t=t, d=d, n=n, dtype=dtype, strided=strided, ragged=ragged):
            u, delta = (_leaf(b, t, d, dtype=dtype, strided=strided) for _ in range(2))
            a, skip, gate = (
                -_leaf(d, n, dtype=dtype).detach().exp().requires_grad_(),
                _leaf(d, dtype=dtype),
                _leaf(b, t, d, dtype=dtype),
            )
            B, C, state = (
                _leaf(b, t, n, dtype=dtype, strided=strided),
                _leaf(b, t, n, dtype=dtype),
                _leaf(b, n, d, dtype=dtype),
            )
            lengths = torch.randint(0, t + 1, (b,)) if ragged else None
            for rule in RULES:
                out = selective_scan(u, delta, a, B, C, skip=skip, gate=gate, state=state, lengths=lengths, rule=rule)
                _learn(out, u, delta, a, B, C, skip, gate, state)
            _learn(selective_scan(u, delta, a, B, C), u, delta, a, B, C)

        yield call


def _wkv() -> Iterator[Callable[[], None]]:
    import torch

    from wonderland.ops.wkv import wkv

    for (b, t, d), (dtype, strided), ragged in itertools.product(
        _shapes((0, 1, 3), (0, 1, 2, 33), (1, 7, 17, 64)), _types(), (False, True)
    ):

        def call(b=b, t=t, d=d, dtype=dtype, strided=strided, ragged=ragged):
            k, v = (_leaf(b, t, d, dtype=dtype, strided=strided) for _ in range(2))
            decay, bonus = -_leaf(d, dtype=dtype).detach().abs(), _leaf(d, dtype=dtype)
            decay.requires_grad_()
            lengths = torch.randint(0, t + 1, (b,)) if ragged else None
            y, (sums, top) = wkv(k, v, decay, bonus, lengths=lengths)
            _learn((y, sums, top), k, v, decay, bonus)
            state = (sums.detach().requires_grad_(), top.detach())
            _learn(wkv(k, v, decay, bonus, state=state)[0], k, v, decay, bonus, state[0])

        yield call


def _recurrence(*cells: str) -> Callable[[], Iterator[Callable[[], None]]]:
    def sweep() -> Iterator[Callable[[], None]]:
        import torch

        from tests.ops.test_recurrence import drawn
        from wonderland.ops.recurrence import recurrence

        shapes = _shapes((0, 1, 3, 9), (0, 1, 2, 17), (1, 5), (1, 7, 16, 33))
        for shape, dtype, ragged, cell in itertools.product(
            shapes, (torch.float32, torch.float64), (False, True), cells
        ):

            def call(shape=shape, dtype=dtype, ragged=ragged, cell=cell):
                first, extra = drawn(cell, *shape, dtype=dtype)
                lengths = torch.randint(0, shape[1] + 1, (shape[0],)) if ragged else None
                x = torch.randn(*shape[:3], 2, dtype=dtype)[..., 0].requires_grad_()
                y, last = recurrence(cell, x, *first[1:], extra=extra, lengths=lengths)
                _learn((y, *last), x, *first[1:4], *first[4], extra)

            yield call

    return sweep


def _short_attention() -> Iterator[Callable[[], None]]:
    from wonderland.ops.short_attention import short_attention

    for (b, t, heads, d), (dtype, strided), causal in itertools.product(
        _shapes((0, 1, 3), (0, 1, 2, 17, 64), (1, 4), (1, 5, 8, 19)), _types(), (True, False)
    ):

        def call(b=b, t=t, heads=heads, d=d, dtype=dtype, strided=strided, causal=causal):
            for kv in {1, heads}:
                fused = _leaf(b, t, (heads + 2 * kv) * d, dtype=dtype, strided=strided)
                _learn(short_attention(fused, heads, kv, 0.3, causal=causal), fused)

        yield call


def _short_convolution() -> Iterator[Callable[[], None]]:
    from wonderland.ops.short_convolution import short_convolution

    for (b, t, d, w), (dtype, strided), silu in itertools.product(
        _shapes((0, 1, 3), (0, 1, 2, 33), (1, 7, 17), (1, 2, 4, 9)), _types(), (False, True)
    ):

        def call(b=b, t=t, d=d, w=w, dtype=dtype, strided=strided, silu=silu):
            x, weight, bias = (
                _leaf(b, t, d, dtype=dtype, strided=strided),
                _leaf(d, w, dtype=dtype),
                _leaf(d, dtype=dtype),
            )
            _learn(short_convolution(x, weight, bias, silu=silu), x, weight, bias)
            if w > 1:
                tail = _leaf(b, w - 1, d, dtype=dtype)
                _learn(short_convolution(x, weight, None, tail=tail, silu=silu), x, weight, tail)

        yield call


def _sparse() -> Iterator[Callable[[], None]]:
    from tests.ops.test_sparse import pattern_of
    from wonderland.ops import row_softmax, sparse_product

    for (rows, entries, heads, wide), (dtype, strided) in itertools.product(
        _shapes((2, 7, 33), (0, 1, 20), (0, 1, 3), (1, 7, 8, 64, 70)), _types()
    ):

        def call(rows=rows, entries=entries, heads=heads, wide=wide, dtype=dtype, strided=strided):
            pattern, more = pattern_of(rows, rows, entries), () if heads == 0 else (heads,)
            x, value = _leaf(rows, *more, wide, dtype=dtype, strided=strided), _leaf(entries, *more, dtype=dtype)
            _learn(sparse_product.sparse_product(pattern, value, x), value, x)
            _learn(sparse_product.sparse_product(pattern, None, x), x)
            score = _leaf(entries, max(1, heads), dtype=dtype, strided=strided)
            _learn(row_softmax.row_softmax(pattern, score), score)
            source, target = _leaf(rows, max(1, heads), dtype=dtype), _leaf(rows, max(1, heads), dtype=dtype)
            _learn(row_softmax.additive_attention(pattern, source, target), source, target)

        yield call


def _optimizers() -> Iterator[Callable[[], None]]:
    import torch

    from wonderland.optim import optimizers

    made = [optimizers.SGD, optimizers.Momentum, optimizers.Nesterov, optimizers.AdaGrad, optimizers.RMSProp, optimizers.Adadelta, optimizers.Adam,
            optimizers.AdamW, optimizers.Yogi, optimizers.Lion]  # fmt: skip
    for kind, dtype in itertools.product(made, (torch.float32, torch.float64)):

        def call(kind=kind, dtype=dtype):
            shapes = [(0,), (1,), (3, 5), (17, 33), (1025,)]
            parameters = [torch.nn.Parameter(torch.randn(*shape, dtype=dtype)) for shape in shapes]
            optimizer = kind(parameters) if kind is optimizers.Adadelta else kind(parameters, lr=0.01)
            for _ in range(3):
                for parameter in parameters:
                    parameter.grad = torch.randn_like(parameter)
                optimizer.step()

        yield call


def _fused_block() -> Iterator[Callable[[], None]]:
    import torch

    from tests.ops import test_fused_attention_block as attention
    from tests.ops.test_fused_mlp_block import weights
    from wonderland.ops.fused_attention_block import fused_attention_block
    from wonderland.ops.fused_mlp_block import ACTIVATIONS, fused_mlp_block

    for dtype in (torch.float32, torch.float64):
        for form in attention.FORMS.values():
            for b, t, dim in _shapes((0, 1, 4, 5), (0, 1, 16, 33), (1, 12)):

                def attend(form=form, b=b, t=t, dim=dim, dtype=dtype):
                    tensors, frequencies, how = attention.given(dtype, b=b, t=t, dim=dim, **form)
                    _learn(fused_attention_block(*tensors, frequencies, **how), *tensors)

                yield attend
        for activation, (rows, d, width) in itertools.product(
            ACTIVATIONS, _shapes((0, 1, 64, 67, 130), (1, 20), (1, 33))
        ):

            def mlp(activation=activation, rows=rows, d=d, width=width, dtype=dtype):
                x = _leaf(rows, d, dtype=dtype, strided=True)
                given = weights(d, width, True, dtype)
                _learn(fused_mlp_block(x, *given, eps=1e-5, centred=True, activation=activation), x, *given)

            yield mlp


def _decode_step() -> Iterator[Callable[[], None]]:
    import torch

    from tests.fast.test_compiled_step import MIXERS, MODELS
    from wonderland.models import Decoder

    for dtype, b in itertools.product((torch.float32, torch.float64), (1, 2, 3)):
        for make in MIXERS.values():

            def mix(make=make, dtype=dtype, b=b):
                mixer, state = make().to(dtype), None
                with torch.no_grad():
                    for _ in range(5):
                        _, state = mixer.stream(torch.randn(b, 1, mixer.dim, dtype=dtype), state)

            yield mix
        for arguments in MODELS.values():

            def decode(arguments=arguments, dtype=dtype, b=b):
                model, state = Decoder(11, 8, 3, **arguments).to(dtype).eval(), None
                with torch.no_grad():
                    for _ in range(8):
                        _, state = model.stream(torch.randint(11, (b, 1)), state)

            yield decode


SWEEPS: dict[str, Callable[[], Iterator[Callable[[], None]]]] = {
    "decode_step": _decode_step,
    "fused_block": _fused_block,
    "gru": _recurrence("gru_after"),
    "gru_before": _recurrence("gru_before"),
    "ligru": _recurrence("ligru_tanh", "ligru_relu", "ligru_identity"),
    "lstm": _recurrence("lstm"),
    "optimizers": _optimizers,
    "rnn": _recurrence("rnn_tanh", "rnn_relu", "rnn_identity"),
    "scan": _scan,
    "selective_scan": _selective_scan,
    "short_attention": _short_attention,
    "short_convolution": _short_convolution,
    "sparse": _sparse,
    "wkv": _wkv,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
    else:
        sys.exit(run(sys.argv[1:]))
