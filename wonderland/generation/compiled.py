"""Whole models by compiled steps: one token through a `Decoder` in one call."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.fast import decode_program as op
from wonderland.fast import rules  # noqa: F401  (fills the table)
from wonderland.fast.compiled_step import CompiledStep, allowed, compiled_step
from wonderland.fast.decode_program import Program
from wonderland.fast.decode_session import DecodeSession
from wonderland.fast.step_rules import ends_with_norm
from wonderland.fast.table import Rule, register, rule_of, write_norm, write_step
from wonderland.models.decoder import Decoder
from wonderland.nn.contract.state import may_consume
from wonderland.nn.positions import Learned


def write_decoder(model: Any, program: Program) -> bool:
    """One token of a decoder: embedding and position, the stack, the head."""
    embedding, position, stack, head, embed_norm = (
        program.look(model._modules, name) for name in ("embedding", "position", "stack", "head", "embed_norm")
    )
    if program.look(model, "embed_scale") != 1 or program.look(model, "logit_cap") is not None:
        return False
    table, learned = program.look(embedding._parameters, "weight"), None
    if _from_row_0(position):
        learned = program.look(position._parameters, "weight")
    length, first = 0 if learned is None else learned.shape[0], len(program.kinds)
    program.add(op.EMBED, (table.shape[0], length, first), (table, learned))
    program.count("")
    if embed_norm is not None:
        if not write_norm(embed_norm, program):
            return False
        program.add(op.BACK)
    if not program.no_dropout(model, "dropout") or not program.reads(table) or not write_step(stack, program):
        return False
    weight, bias = table, None
    if head is not None:
        if type(head) is not nn.Linear:
            return False
        weight, bias = (program.look(head._parameters, name) for name in ("weight", "bias"))
    program.add(op.HEAD, (weight.shape[0], int(ends_with_norm(stack))), (weight, bias))
    return program.reads(weight) and (learned is None or program.reads(learned))


def _from_row_0(position: Any) -> bool:
    """Whether a position is a table that the program reads: one whose first row is position 0."""
    return type(position) is Learned and position.offset == 0


register(Decoder, Rule(step=write_decoder, residual=True))


def compiled(model: Any, rows: int, t: int) -> CompiledStep | None:
    """The compiled step of a model, if it has one that may be used for these rows now."""
    if rule_of(model).step is None:
        return None
    # Submodules are read from their dictionaries: attributes go through Python, a microsecond each.
    table: Tensor = model._modules["embedding"]._parameters["weight"]
    if not rows or not allowed(rows, t, table):
        return None
    return compiled_step(model, table.dtype, model.dim, write_step)


def step(model: Any, tokens: Any, state: Any) -> tuple[Tensor, Any] | None:
    """Logits and the next state after one token of each row; None where there is no such form."""
    if not isinstance(tokens, Tensor) or tokens.dim() != 2:
        return None
    rows, t = tokens.shape
    compiled_model = compiled(model, rows, t)
    if compiled_model is None:
        return None
    if not compiled_model.returned(state) or len(state[0]) != rows or tokens.dtype != torch.int64:
        model.check(tokens, None)
        model.check_state(state, rows)
    position, at = model._modules.get("position"), None
    if position is not None and not _from_row_0(position):
        at = position.embed(state[0].unsqueeze(1)).to(compiled_model.dtype).expand(rows, 1, model.dim).contiguous()
    return compiled_model.run(tokens.long(), state, (rows, 1, model.vocab), extra=at, consume=may_consume())


def decode_session(model: Any, state: Any) -> DecodeSession | None:
    """Many single tokens from a state on; None where there is no such form."""
    if rule_of(model).step is None:
        return None
    position = model._modules.get("position")
    if position is not None and not _from_row_0(position):
        return None
    rows = len(state[0])
    compiled_model = compiled(model, rows, 1)
    return None if compiled_model is None else DecodeSession.begin(compiled_model, state, rows, model.vocab)
