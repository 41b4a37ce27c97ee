"""Each family: a folder written by transformers, loaded here, gives its numbers; and goes back as it came."""

import json

import pytest
import torch
import transformers

from tests.checkpoints.families.oracle import HEADS, VOCAB, answer, batch, double, make, places
from wonderland.checkpoints import load_pretrained, save_pretrained
from wonderland.checkpoints.families import FAMILIES

CASES = [(kind, name) for kind, names in HEADS.items() for name in names]
QUICK = [(kind, name) for kind, names in HEADS.items() for name in names[:2]]
PLACED = ("gpt2", "llama", "bert", "distilbert")
# They read the first place of a row, which is padding where padding stands on the left.
FIRST = ("BertForNextSentencePrediction", "BertForSequenceClassification", "DistilBertForSequenceClassification")


def ours(model, kind, name, tokens, mask):
    """What our model answers where theirs answers that."""
    head = FAMILIES[kind].heads[name]
    if head == "pretraining":
        return model.both(tokens, mask)[0]
    return (
        model.features(tokens, mask)
        if head == "trunk" and kind in ("gpt2", "llama", "mamba", "rwkv")
        else model(tokens, mask)
    )


def theirs(model, kind, tokens, mask, side):
    if kind == "rwkv":  # which has no masks: each row alone
        rows = [answer(model(tokens[i : i + 1, mask[i]]))[0] for i in range(len(tokens))]
        actual = torch.zeros(*tokens.shape, rows[0].shape[-1], dtype=rows[0].dtype)
        for i, row in enumerate(rows):
            actual[i, mask[i]] = row
        return actual
    if type(model).__name__ in FIRST and side == "left":
        return torch.cat([answer(model(tokens[i : i + 1, mask[i]])) for i in range(len(tokens))])
    more = {"position_ids": places(mask)} if kind in PLACED and side == "left" else {}
    return answer(model(input_ids=tokens, attention_mask=mask.long(), **more))


def compare(kind, name, seed, folder, side="right", dtype=torch.float32, **more):
    model = make(kind, name, seed, folder, dtype=dtype, **more)
    loaded = load_pretrained(folder)
    tokens, mask = batch(seed, kind, side)
    with torch.no_grad():
        if name in ("T5ForConditionalGeneration", "T5Model"):
            written = torch.randint(VOCAB, (3, 6))
            expected = answer(model(input_ids=tokens, attention_mask=mask.long(), decoder_input_ids=written))
            actual = loaded(tokens, written, mask) if "For" in name else loaded._features(tokens, written, mask, None)
        else:
            expected = theirs(model, kind, tokens, mask, side)
            actual = ours(loaded, kind, name, tokens, mask)
            if actual.dim() == 3:
                expected, actual = expected[mask], actual[mask]
    return model, loaded, expected, actual


@pytest.mark.parametrize(
    ("kind", "name"), [pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow) for case in CASES]
)
def test_the_numbers_are_theirs_and_go_back(kind, name, tmp_path):
    seed = CASES.index((kind, name))
    model, loaded, expected, actual = compare(kind, name, seed, tmp_path / "there")
    assert torch.allclose(actual, expected, atol=1e-5), float((actual - expected).abs().max())
    save_pretrained(loaded, tmp_path / "back")
    back, told = getattr(transformers, name).from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not any(told.values()), told
    if kind == "rwkv":  # whose weights are halved where they stand, in evaluation
        again = load_pretrained(tmp_path / "back").state_dict()
        assert all(torch.equal(value, loaded.state_dict()[key]) for key, value in again.items())
    else:
        assert all(torch.equal(value, back.state_dict()[key]) for key, value in model.state_dict().items())
    assert json.loads((tmp_path / "there/config.json").read_text()) == json.loads(
        (tmp_path / "back/config.json").read_text()
    )


@pytest.mark.parametrize("kind", [kind for kind in HEADS if kind not in ("t5",)])
def test_padding_on_the_left_and_double_precision(kind, tmp_path):
    with double():
        name = HEADS[kind][0]
        # Their Mamba hides padding before its first projection, whose bias then stands before the text.
        more = {"use_bias": False} if kind == "mamba" else {}
        _, _, expected, actual = compare(kind, name, 7, tmp_path, side="left", dtype=torch.float64, **more)
    assert actual.dtype == torch.float64
    assert torch.allclose(actual, expected, atol=1e-10), float((actual - expected).abs().max())


def test_t5_in_double_precision_with_padding_on_the_left(tmp_path):
    with double():
        _, _, expected, actual = compare("t5", HEADS["t5"][0], 7, tmp_path, side="left", dtype=torch.float64)
    assert torch.allclose(actual, expected, atol=1e-10), float((actual - expected).abs().max())


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_cache_gives_what_theirs_gives(kind, side, tmp_path):
    model = make(kind, HEADS[kind][0], 3, tmp_path)
    loaded = load_pretrained(tmp_path)
    tokens, mask = batch(3, kind, "left" if side == "left" else "right", t=8)
    more = torch.randint(2, VOCAB, (3, 3))
    with torch.no_grad():
        first = model(tokens, attention_mask=mask.long(), position_ids=places(mask), use_cache=True)
        head, state = loaded.stream(tokens, None, mask)
        assert torch.allclose(head[mask], first.logits[mask], atol=1e-5)
        seen, cache = mask, first.past_key_values
        for step in range(3):
            seen = torch.cat([seen, torch.ones(3, 1, dtype=torch.bool)], 1)
            here = (seen.sum(1, keepdim=True) - 1) if side == "left" else places(seen)[:, -1:]
            after = model(
                more[:, step : step + 1], attention_mask=seen.long(), position_ids=here, past_key_values=cache,
                use_cache=True,
            )  # fmt: skip
            cache = after.past_key_values
            actual, state = loaded.stream(more[:, step : step + 1], state)
            assert torch.allclose(actual, after.logits, atol=1e-5)


@pytest.mark.parametrize("kind", ["mamba", "rwkv"])
def test_a_state_gives_what_theirs_gives(kind, tmp_path):
    model = make(kind, HEADS[kind][0], 3, tmp_path)
    loaded = load_pretrained(tmp_path)
    tokens = torch.randint(VOCAB, (1, 8))  # their RWKV mixes rows up when it goes on from a state with several
    name = "cache_params" if kind == "mamba" else "state"
    with torch.no_grad():
        first = model(tokens[:, :5], use_cache=True)
        cache = getattr(first, name)
        actual, state = loaded.stream(tokens[:, :5])
        assert torch.allclose(actual, first.logits, atol=1e-5)
        for step in range(5, 8):
            after = model(tokens[:, step : step + 1], use_cache=True, **{name: cache})
            cache = getattr(after, name)
            actual, state = loaded.stream(tokens[:, step : step + 1], state)
            assert torch.allclose(actual, after.logits, atol=1e-5)


def test_t5_streams_as_its_cache_does(tmp_path):
    model = make("t5", HEADS["t5"][0], 3, tmp_path)
    loaded = load_pretrained(tmp_path)
    tokens, mask = batch(3, "t5", "left")
    written = torch.randint(VOCAB, (3, 5))
    with torch.no_grad():
        state = loaded.prepare(tokens, mask)
        read = model.get_encoder()(tokens, attention_mask=mask.long())
        cache = None
        for step in range(5):
            given = {
                "encoder_outputs": read,
                "attention_mask": mask.long(),
                "past_key_values": cache,
                "use_cache": True,
            }
            after = model(decoder_input_ids=written[:, step : step + 1], **given)
            cache = after.past_key_values
            actual, state = loaded.stream(written[:, step : step + 1], state)
            assert torch.allclose(actual, after.logits, atol=1e-5)


def test_bert_reads_segments_and_judges_pairs(tmp_path):
    model = make("bert", "BertForPreTraining", 5, tmp_path, type_vocab_size=2)
    loaded = load_pretrained(tmp_path)
    tokens, mask = batch(5, "bert")
    segments = torch.randint(2, tokens.shape)
    with torch.no_grad():
        expected = model(tokens, attention_mask=mask.long(), token_type_ids=segments)
        words, pair = loaded.both(tokens, mask, segments)
    assert torch.allclose(words[mask], expected.prediction_logits[mask], atol=1e-5)
    assert torch.allclose(pair, expected.seq_relationship_logits, atol=1e-5)


def test_positions_of_padding_can_be_counted_as_theirs_are(tmp_path):
    model = make("bert", "BertForMaskedLM", 6, tmp_path)
    loaded = load_pretrained(tmp_path)
    tokens, mask = batch(6, "bert", "left")
    with torch.no_grad():
        expected = model(tokens, attention_mask=mask.long()).logits
        actual = loaded(tokens, mask, positions=torch.arange(tokens.shape[1]).expand_as(tokens))
    assert torch.allclose(actual[mask], expected[mask], atol=1e-5)


def test_a_model_trained_there_gives_the_same_gradients_here(tmp_path):
    model = make("llama", "LlamaForCausalLM", 4, tmp_path, dtype=torch.float64, attention_dropout=0.0)
    with double():
        loaded = load_pretrained(tmp_path)
        tokens, _ = batch(4, "llama")
        weight = torch.randn(3, 9, VOCAB, dtype=torch.float64)
        (model.train()(tokens).logits * weight).sum().backward()
        (loaded.train()(tokens) * weight).sum().backward()
    expected = model.model.layers[0].mlp.down_proj.weight.grad
    assert torch.allclose(loaded.stack.blocks[0].channel.outward.weight.grad, expected, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", list(HEADS))
def test_random_options_give_equal_numbers(kind, seed, tmp_path):
    for number, name in enumerate(HEADS[kind]):
        for side in ("right", "left"):
            if kind == "t5" and side == "left" and name in ("T5ForSequenceClassification", "T5ForQuestionAnswering"):
                continue  # their decoder reads the padding before a text
            folder = tmp_path / f"{name}-{side}"
            more = {"use_bias": False} if kind == "mamba" and side == "left" else {}
            _, loaded, expected, actual = compare(kind, name, 1000 * number + seed, folder, side, **more)
            scale = max(1.0, float(expected.abs().max()))
            assert float((actual - expected).abs().max()) <= 1e-5 * scale, (name, side)
            save_pretrained(loaded, folder / "back")
            assert json.loads((folder / "config.json").read_text()) == json.loads(
                (folder / "back/config.json").read_text()
            )


@pytest.mark.parametrize(
    "changed",
    [
        {"rope_parameters": {"rope_type": "default"}, "rope_theta": 50.0},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0}, "rope_theta": 50.0},
        {"rope_scaling": {"rope_type": "linear", "factor": 4.0}},
        {"rope_parameters": None, "rope_theta": 70.0},
        {"rope_parameters": None, "rope_scaling": {"type": "linear", "factor": 2.0}, "rope_theta": 30.0},
    ],
)
def test_rotations_are_read_wherever_a_description_has_them(changed, tmp_path):
    config = transformers.LlamaConfig(
        vocab_size=VOCAB, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2
    )
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(5)
    model.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    tokens = torch.randint(VOCAB, (2, 9))
    with torch.no_grad():
        expected = transformers.LlamaForCausalLM.from_pretrained(tmp_path).eval()(tokens).logits
        torch.testing.assert_close(load_pretrained(tmp_path)(tokens), expected, rtol=1e-4, atol=1e-5)
        if "rope_theta" in changed or "rope_scaling" in changed:
            assert not torch.allclose(model(tokens).logits, expected, atol=1e-3)


def test_a_rotation_that_is_no_table_is_told(tmp_path):
    transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=VOCAB, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1
        )
    ).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "rope_scaling": "linear"}))
    with pytest.raises(ValueError, match="rope_scaling"):
        load_pretrained(tmp_path)
