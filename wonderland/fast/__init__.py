"""Fast forms of mixers, blocks and models: one table of rules, keyed by exact type.

- `table`: what a rule is. `rules`: the entries.
- `decode_program`, `step_rules`: one token as instructions for a C++ interpreter. `compiled_step` runs them for a token,
  `decode_session` for a whole text.
- `fused_rules`: a residual block over whole sequences as one kernel, with gradients.
- `convolutions`: convolutions in use, with batch norm, activation and shortcut inside one kernel.
- `entry`: what the hook in `nn.contract.fast_path` calls.
- `guard`: when a fast form may be used at all.
"""
