"""Families described by a table: logits, gradients, padding, streams and the way back, equal to transformers."""

import json
import subprocess
import sys

import pytest
import torch
import transformers

from tests.checkpoints.families.oracle import VOCAB, answer, batch, places
from wonderland.checkpoints import load_pretrained, outline, save_pretrained
from wonderland.checkpoints.families import FAMILIES
from wonderland.core import WonderlandError

ENCODER = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "max_position_embeddings": 24,
}
GATED = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 20,
    "num_key_value_heads": 2,
}
POINTWISE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "tie_word_embeddings": True}
DISENTANGLED = ENCODER | {
    "relative_attention": True,
    "position_buckets": 6,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "type_vocab_size": 2,
}
STATE_SPACE = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_heads": 4,
    "head_dim": 8,
    "state_size": 6,
    "n_groups": 2,
    "chunk_size": 4,
}
SLIDING = {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1}

# The name of the classes, the head, and options that differ from the defaults.
CASES = [
    ("Roberta", "ForMaskedLM", ENCODER),
    ("XLMRoberta", "ForMaskedLM", ENCODER | {"tie_word_embeddings": False, "pad_token_id": 0}),
    ("Electra", "ForMaskedLM", ENCODER | {"embedding_size": 12}),
    ("Albert", "ForMaskedLM", ENCODER | {"embedding_size": 12, "num_hidden_layers": 5, "num_hidden_groups": 2, "inner_group_num": 2}),
    ("ModernBert", "ForMaskedLM", ENCODER | {"num_hidden_layers": 4, "local_attention": 4, "norm_bias": True, "classifier_bias": True}),
    ("DebertaV2", "ForMaskedLM", DISENTANGLED),
    ("Mistral", "ForCausalLM", GATED | {"sliding_window": 3, "head_dim": 6}),
    ("Qwen2", "ForCausalLM", GATED | SLIDING),
    ("Qwen3", "ForCausalLM", GATED | SLIDING | {"head_dim": 6, "tie_word_embeddings": True}),
    ("Mamba2", "ForCausalLM", STATE_SPACE),
    ("Phi3", "ForCausalLM", GATED),
    ("SmolLM3", "ForCausalLM", GATED | {"no_rope_layer_interval": 2}),
    ("OPT", "ForCausalLM", POINTWISE | {"ffn_dim": 20, "max_position_embeddings": 24}),
    ("GPTNeoX", "ForCausalLM", POINTWISE | {"intermediate_size": 20, "rope_parameters": {"partial_rotary_factor": 0.5}}),
    ("Phi", "ForCausalLM", GATED | {"num_attention_heads": 2, "num_key_value_heads": 1, "qk_layernorm": True}),
    ("Olmo2", "ForCausalLM", GATED),
    ("Gemma", "ForCausalLM", GATED | {"head_dim": 6}),
    ("Gemma2", "ForCausalLM", GATED | {"head_dim": 6, "sliding_window": 3, "query_pre_attn_scalar": 20, "attn_logit_softcapping": 2.0,
                                       "final_logit_softcapping": 3.0, "attn_implementation": "eager"}),
]  # fmt: skip
HEADS = {
    "ForMaskedLM": ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "Model"),
    "ForCausalLM": ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "Model"),
}
MORE = [
    (stem, head, options)
    for stem, first, options in CASES
    for head in HEADS[first]
    if hasattr(transformers, stem + head)
]


def family(stem):
    return FAMILIES[getattr(transformers, f"{stem}Config").model_type]


def made(stem, head, options, folder):
    """A model of transformers with random weights, in evaluation mode, written to a folder."""
    torch.manual_seed(len(stem) + len(head))
    given = {"vocab_size": VOCAB, "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3, **options}
    model = getattr(transformers, stem + head)(getattr(transformers, f"{stem}Config")(**given)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    return model


def texts(model, side, t=9):
    """Random tokens padded on a side, none of them special."""
    tokens, mask = batch(3, "", side, t)
    return tokens.masked_fill((tokens < 4) & mask, 4).masked_fill(~mask, model.config.pad_token_id), mask


def theirs(model, tokens, mask, **more):
    # RoBERTa and OPT find out where a row padded on the left begins; the others are told.
    if "position_ids" not in more and model.config.model_type not in ("roberta", "xlm-roberta", "opt"):
        more["position_ids"] = places(mask)
    return model(input_ids=tokens, attention_mask=mask.long(), **more)


def same_weights(model, folder):
    """What was saved is read by transformers, and holds the same weights."""
    back, told = type(model).from_pretrained(folder, output_loading_info=True)
    assert not any(told.values()), told
    tied = model.config.tie_word_embeddings
    for name, value in model.state_dict().items():
        # RoBERTa without a tied head holds a second bias, which it does not use.
        assert torch.equal(value, back.state_dict()[name]) or (name == "lm_head.bias" and not tied), name


@pytest.mark.parametrize(("stem", "head", "options"), CASES, ids=[stem for stem, *_ in CASES])
def test_a_language_model_is_equal(stem, head, options, tmp_path):
    model = made(stem, head, options, tmp_path / "there")
    loaded = load_pretrained(tmp_path / "there")
    known = family(stem)

    for side in ("right", "left"):
        tokens, mask = texts(model, side)
        expected, actual = theirs(model, tokens, mask).logits[mask], loaded(tokens, mask)[mask]
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    weight = torch.randn_like(expected)
    (expected * weight).sum().backward()
    (actual * weight).sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    compared = set()
    for name, parameter in loaded.named_parameters():
        conversion = known.conversions(loaded, "lm")[name]
        for published, own in zip(conversion.names, conversion.to_published(parameter.grad), strict=True):
            torch.testing.assert_close(own, gradients[published], rtol=1e-4, atol=1e-4)
            compared.add(published)
    assert compared == {name for name, gradient in gradients.items() if gradient is not None}

    save_pretrained(loaded, tmp_path / "back")
    same_weights(model, tmp_path / "back")
    configs = [json.loads((tmp_path / place / "config.json").read_text()) for place in ("there", "back")]
    assert configs[0] == configs[1]

    if head == "ForCausalLM":
        tokens, mask = texts(model, "left", 8)
        with torch.no_grad():
            whole, state = loaded(tokens, mask), None
            first, state = loaded.stream(tokens[:, :5], None, mask[:, :5])
            parts = [first]
            for step in range(5, 8):
                y, state = loaded.stream(tokens[:, step : step + 1], state)
                parts.append(y)
        kept = mask.clone()
        kept[~mask[:, :5].any(1)] = False  # a row that begins later has steps of padding, which single steps would read
        torch.testing.assert_close(torch.cat(parts, 1)[kept], whole[kept], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("stem", "head", "options"), MORE, ids=[stem + head for stem, head, _ in MORE])
def test_the_other_heads_are_equal_and_go_back(stem, head, options, tmp_path):
    model = made(stem, head, options, tmp_path / "there")
    loaded = load_pretrained(tmp_path / "there")
    tokens, mask = texts(model, "right")
    with torch.no_grad():
        expected = answer(theirs(model, tokens, mask))
        features = head == "Model" and hasattr(loaded, "stream")
        actual = loaded.features(tokens, mask) if features else loaded(tokens, mask)
    if actual.dim() == 3:
        expected, actual = expected[mask], actual[mask]
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    save_pretrained(loaded, tmp_path / "back")
    same_weights(model, tmp_path / "back")


@pytest.mark.parametrize("stem", [stem for stem, *_ in CASES])
def test_an_unknown_option_is_refused_by_name(stem, tmp_path):
    known = family(stem)
    head, options = next((head, options) for name, head, options in CASES if name == stem)
    config = getattr(transformers, f"{stem}Config")(vocab_size=VOCAB, architectures=[stem + head], **options)
    made(stem, head, options, tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict() | {"extra_gate": 0.5}))
    words = f"config.json has the option 'extra_gate' (0.5), which is not supported for {known.title}: "
    with pytest.raises(WonderlandError) as error:
        outline(tmp_path)
    assert str(error.value) == words + "without it the model would not be the same."


@pytest.mark.parametrize(
    ("stem", "published"),
    [
        ("Phi3", {"auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}, "attention_bias": False}),
        ("SmolLM3", {"pretraining_tp": 2}),
        ("GPTNeoX", {"attention_probs_dropout_prob": 0, "hidden_dropout_prob": 0}),
    ],
)
def test_options_of_published_files_without_effect_are_known(stem, published, tmp_path):
    head, options = next((head, options) for name, head, options in CASES if name == stem)
    made(stem, head, options, tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | published))
    assert outline(tmp_path).family == family(stem).model_type


@pytest.mark.parametrize("verb", ["fit", "search"])
def test_an_unknown_family_is_refused_before_the_data_is_looked_at_and_torch_is_loaded(verb, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "falcon"}))
    words = [verb, str(tmp_path / "none.csv"), "--from", str(tmp_path)]
    program = "import sys; from wonderland.cli.main import main; code = main(sys.argv[1:]); print('torch' in sys.modules); sys.exit(code)"
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "False\n")
    assert done.stderr == (
        f"wonderland: {tmp_path}/config.json says model_type = 'falcon'. "
        f"The families that can be loaded are {', '.join(FAMILIES)}.\n"
    )
