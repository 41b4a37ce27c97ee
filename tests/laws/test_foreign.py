"""Laws on unmodified models of another library."""

import pytest
import torch

import wonderland
from wonderland.laws import Example

transformers = pytest.importorskip("transformers")

TOKENS = Example.tokens(2, 9, vocab=50, mask="attention_mask")
LEFT = Example.tokens(2, 9, vocab=50, mask="attention_mask", side="left")


@pytest.fixture(autouse=True)
def _quiet():
    transformers.logging.set_verbosity_error()


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=50, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config)


def bert():
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    return transformers.BertModel(config)


def mamba():
    config = transformers.MambaConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, state_size=4)
    return transformers.MambaForCausalLM(config)


def test_gpt2_is_causal_and_does_not_read_padding_on_the_right():
    verdicts = wonderland.check(gpt2(), TOKENS)
    assert verdicts.broken == [], str(verdicts)
    assert verdicts["causality"].outcome == "holds"
    assert verdicts["padding_invariance"].outcome == "holds"


def test_gpt2_counts_positions_from_padding_on_the_left():
    verdict = wonderland.check(gpt2(), LEFT, "padding_invariance")[0]
    assert not verdict
    assert "padded positions came beside it" in verdict.witness


def test_bert_is_found_not_causal():
    verdicts = wonderland.check(bert(), TOKENS, ["causality", "padding_invariance", "batch_independence"])
    assert [verdict.law for verdict in verdicts.broken] == ["causality"]
    assert "output 0 moved by" in verdicts["causality"].witness
    assert "when input " in verdicts["causality"].witness
    assert "such" in verdicts["causality"].witness or "7 later outputs moved too" in verdicts["causality"].witness


def test_mamba_is_causal_and_known_to_compute_in_float32():
    verdicts = wonderland.check(mamba(), TOKENS, ["causality", "gradients", "padding_invariance", "batch_independence"])
    assert verdicts.broken == [], str(verdicts)
    assert verdicts["causality"].outcome == "holds"
    assert verdicts["gradients"].witness.startswith("it computes in float32 whatever it is given")


def test_the_part_of_the_answer_can_be_chosen():
    example = Example.tokens(2, 9, vocab=50, output="pooler_output")
    assert wonderland.check(bert(), example, "causality")[0].witness == (
        "the output of shape (2, 16) does not have the 9 positions of the input"
    )


def test_a_mask_that_hides_the_wrong_token_is_found():
    class Late(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = bert()

        def forward(self, ids, attention_mask=None):
            if attention_mask is not None:
                attention_mask = torch.nn.functional.pad(attention_mask[:, :-1], (1, 0), value=1)
            return self.inner(ids, attention_mask=attention_mask)

    assert not wonderland.check(Late(), TOKENS, "padding_invariance")[0]
