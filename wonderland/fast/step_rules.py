"""How each mixer, norm, block and stack writes one token into a decode program."""

from typing import Any

from torch import nn

from wonderland.fast import decode_program as op
from wonderland.fast.decode_program import Program
from wonderland.fast.table import rule_of, write_norm, write_step
from wonderland.nn.blocks.block import Block
from wonderland.nn.channel.activations import name_of
from wonderland.nn.positions import Alibi, Rotary
from wonderland.ops.cells import CELLS


def alone(module: Any, program: Program) -> bool:
    """A program of one module, whose input is given and whose output is asked for."""
    if not rule_of(module).residual:
        program.read_input()
    written = write_step(module, program)
    program.add(op.FINISH, (int(ends_with_norm(module)),))
    return written


def ends_with_norm(module: Any) -> bool:
    """Whether the output is in the branch, where the final norm of a stack writes it, and not in the stream."""
    return rule_of(module).residual and module._modules.get("norm") is not None


def layer_norm(module: Any, program: Program) -> bool:
    weight, bias = (program.look(module._parameters, name) for name in ("weight", "bias"))
    program.add(op.LAYER_NORM, (), (weight, bias), program.look(module, "eps"))
    return program.reads(weight)


def rms_norm(module: Any, program: Program) -> bool:
    weight = program.look(module._parameters, "weight")
    program.add(op.RMS_NORM, (), (weight,), program.look(module, "eps"))
    return program.reads(weight)


def attention(module: Any, program: Program) -> bool:
    weights = program.matrices(module, ("project", "out"))
    position = program.look(module._modules, "position")
    # A position that blocks share is an attribute and not a submodule: it is a bias that no kernel has.
    shared = program.look(module, "position") is not None
    normed = program.look(module._modules, "query_norm") is not None
    capped = program.look(module, "softcap") is not None
    if weights is None or shared or normed or capped or not program.no_dropout(module, "dropout"):
        return False
    frequencies = slopes = None
    if isinstance(position, Rotary):
        frequencies = program.look(position._buffers, "frequencies")
    elif isinstance(position, Alibi):
        slopes = program.look(position._buffers if "slopes" in position._buffers else position._parameters, "slopes")
    elif position is not None:
        return False
    table = slopes if frequencies is None else frequencies
    if table is not None and not program.reads(table):
        return False
    project, out = program.biases(module, ("project", "out"))
    place = program.keep(op.CACHE, about=program.look(module, "window"))
    program.keep(op.SAME)
    half = isinstance(position, Rotary) and position.layout == "half"
    sizes = (
        module.heads, module.kv_heads, module.key_dim, module.value_dim,
        0 if frequencies is None else frequencies.shape[0], int(half), place, place + 2,
    )  # fmt: skip
    tensors = (weights[0], project, weights[1], out, frequencies, slopes)
    program.add(op.ATTENTION, sizes, tensors, program.look(module, "scale"))
    program.count(module.signature())
    return True


def mamba(module: Any, program: Program) -> bool:
    linear, own = ("in_proj", "x_proj", "dt_proj", "out_proj"), ("conv_weight", "conv_bias", "A_log", "D")
    weights = program.matrices(module, linear, own)
    if weights is None or program.look(module, "rule") != "euler":
        return False
    if any(bias is not None for bias in program.biases(module, ("in_proj", "x_proj", "out_proj"))):
        return False
    place = program.keep(op.FRESH, op.FRESH)
    sizes = module.inner, module.state_size, module.rank, module.width, place
    program.add(op.MAMBA, sizes, (*weights, *program.biases(module, ("dt_proj",))))
    program.count(module.signature())
    return True


def rwkv(module: Any, program: Program) -> bool:
    own = ("mix_receptance", "mix_key", "mix_value", "decay", "bonus")
    weights = program.matrices(module, ("receptance", "key", "value", "output"), own)
    if weights is None or module.inner != module.dim:
        return False
    book = int(program.look(module, "count") == "book")
    program.add(op.RWKV_TIME, (book, program.keep(op.FRESH, op.FRESH, op.FRESH)), weights)
    program.count(module.signature())
    return True


def rwkv_channel(module: Any, program: Program) -> bool:
    weights = program.matrices(module, ("receptance", "key", "value"), ("mix_receptance", "mix_key"))
    if weights is None:
        return False
    program.add(op.RWKV_CHANNEL, (weights[1].shape[0], program.keep(op.FRESH)), weights)
    program.count(module.signature())
    return True


def recurrent(module: Any, program: Program) -> bool:
    weights = program.matrices(module, (), ("weight_input", "weight_state"))
    project = program.look(module._modules, "project")
    # The readout of an RNN reads the token too, which no kernel does.
    readout = program.look(module._modules, "from_token") is not None
    if weights is None or readout or type(project) not in (nn.Linear, nn.Identity):
        return False
    biases = [program.look(module._parameters, name) for name in ("bias", "bias_candidate")]
    projection = [program.look(project._parameters, name) for name in ("weight", "bias")]
    if any(weight is not None and not program.reads(weight) for weight in (*biases, *projection)):
        return False
    kind, _, activation = module.cell.partition("_")
    kind = kind if kind in op.CELLS else module.cell
    sizes = (
        module.state_size,
        CELLS[module.cell].gates,
        op.ACTIVATIONS.index(activation) if activation in op.ACTIVATIONS else 0,
        op.CELLS.index(kind),
        program.keep(*[op.FRESH] * CELLS[module.cell].states),
    )
    program.add(op.RECURRENT, sizes, (*weights, *biases, *projection))
    program.count(module.signature())
    return True


def mlp(module: Any, program: Program) -> bool:
    return _hidden_layer(module, program, "activation", gated=False)


def glu(module: Any, program: Program) -> bool:
    return _hidden_layer(module, program, "gate", gated=True)


def _hidden_layer(module: Any, program: Program, activation: str, gated: bool) -> bool:
    weights, name = program.matrices(module, ("inward", "outward")), name_of(program.look(module, activation))
    if weights is None or name not in op.ACTIVATIONS or not program.no_dropout(module, "dropout"):
        return False
    (inward, outward), biases = weights, program.biases(module, ("inward", "outward"))
    sizes = outward.shape[1], op.ACTIVATIONS.index(name), int(gated)
    program.add(op.MLP, sizes, (inward, biases[0], outward, biases[1]))
    return True


def block(module: Any, program: Program) -> bool:
    """A block with its norms before the slots; other placements, scales and cross mixers have no such form."""
    children, kept = module._modules, program.no_dropout(module, "dropout", "drop_path")
    # Parts that a block does not have are attributes that hold None.
    scales, cross = (program.look(children, name) or vars(module).get(name) for name in ("scales", "cross"))
    if module.placement != "pre" or scales is not None or cross is not None or not kept:
        return False
    norms = program.look(children, "norms")._modules
    for index, slot in enumerate(module.slots):
        norm, part = program.look(norms, str(index)), program.look(children, slot)
        if rule_of(part).residual or not write_norm(norm, program) or not write_step(part, program):
            return False
    return True


def stack(module: Any, program: Program) -> bool:
    """Blocks that add to the stream, one after another, and the final norm."""
    blocks, norm = program.look(module._modules, "blocks")._modules, program.look(module._modules, "norm")
    for name in blocks:
        part = program.look(blocks, name)
        # Other mixers replace the stream instead of adding to it, and an inner stack may end with a norm.
        if type(part) is not Block or not write_step(part, program):
            return False
    program.look(blocks, str(len(blocks)))
    return norm is None or write_norm(norm, program)
