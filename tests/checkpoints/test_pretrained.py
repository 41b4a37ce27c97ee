"""Folders: shards, old names, options that are not known, hostile files; models built here that go out."""

import json

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from tests.checkpoints.families.oracle import VOCAB, batch, make
from wonderland.checkpoints import load_pretrained, save_pretrained
from wonderland.checkpoints.families import FAMILIES
from wonderland.core import WonderlandError
from wonderland.models import Decoder, Encoder, EncoderDecoder, MaskedLM, SequenceClassifier, TokenClassifier
from wonderland.nn import (
    GLU,
    MLP,
    RWKV,
    Attention,
    CrossAttention,
    LayerNorm,
    Learned,
    Mamba,
    RelativeBuckets,
    RMSNorm,
    Rotary,
    RWKVChannel,
    elu,
)

TOKENS, MASK = batch(0, "gpt2")
KNOWN = ", ".join(FAMILIES)


def changed(folder, **options):
    """The folder with other options in its configuration; None takes one out."""
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **options}
    path.write_text(json.dumps({key: value for key, value in config.items() if value != "absent"}))
    return folder


def rewritten(folder, change):
    """The folder with other weights."""
    tensors = load_file(folder / "model.safetensors")
    save_file(change(tensors) or tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def small(folder, kind="gpt2", name="GPT2LMHeadModel", **more):
    return make(kind, name, 2, folder, **more)


def test_shards_are_one_model(tmp_path):
    theirs = small(tmp_path)
    theirs.save_pretrained(tmp_path / "cut", max_shard_size="4KB")
    assert (tmp_path / "cut/model.safetensors.index.json").exists()
    assert not (tmp_path / "cut/model.safetensors").exists()
    assert torch.equal(load_pretrained(tmp_path / "cut")(TOKENS, MASK), load_pretrained(tmp_path)(TOKENS, MASK))


def test_older_names_of_tensors_are_known(tmp_path):
    small(tmp_path, tie_word_embeddings=True)
    expected = load_pretrained(tmp_path)(TOKENS)
    bare = {"h.0.attn.bias": torch.ones(1, 1, 4, 4), "lm_head.weight": "transformer.wte.weight"}

    def older(tensors):
        renamed = {name.removeprefix("transformer."): value for name, value in tensors.items()}
        return {**renamed, "h.0.attn.bias": bare["h.0.attn.bias"], "lm_head.weight": renamed["wte.weight"].clone()}

    rewritten(tmp_path, older)
    changed(tmp_path, n_ctx=24, torch_dtype="float32", task_specific_params={"a": {"max_length": 5}})
    model = load_pretrained(tmp_path)
    assert torch.equal(model(TOKENS), expected)
    assert model.head is None
    make("bert", "BertForMaskedLM", 2, tmp_path / "bert", tie_word_embeddings=True)
    expected = load_pretrained(tmp_path / "bert")(TOKENS, MASK)

    def oldest(tensors):
        renamed = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
                   for name, value in tensors.items()}  # fmt: skip
        size = tensors["bert.embeddings.word_embeddings.weight"].shape[1]
        more = {"bert.pooler.dense.weight": torch.zeros(size, size), "bert.pooler.dense.bias": torch.zeros(size)}
        more["bert.embeddings.position_ids"] = torch.arange(24).unsqueeze(0)
        more["cls.seq_relationship.weight"], more["cls.seq_relationship.bias"] = torch.zeros(2, size), torch.zeros(2)
        return renamed | more

    rewritten(tmp_path / "bert", oldest)
    assert torch.equal(load_pretrained(tmp_path / "bert")(TOKENS, MASK), expected)


def test_a_head_with_other_values_is_not_tied_whatever_the_config_says(tmp_path):
    theirs = small(tmp_path, tie_word_embeddings=True)
    rewritten(tmp_path, lambda tensors: {**tensors, "lm_head.weight": torch.randn(VOCAB, theirs.config.n_embd)})
    model = load_pretrained(tmp_path)
    assert model.head is not None
    again = transformers.GPT2LMHeadModel.from_pretrained(tmp_path).eval()
    assert torch.allclose(model(TOKENS), again(TOKENS).logits, atol=1e-5)


def test_precision_is_that_of_the_file_unless_asked(tmp_path):
    small(tmp_path, "llama", "LlamaForCausalLM", dtype=torch.bfloat16)
    half, wide = load_pretrained(tmp_path), load_pretrained(tmp_path, dtype=torch.float32)
    assert half.embedding.weight.dtype == torch.bfloat16
    assert half.stack.blocks[0].mixer.position.frequencies.dtype == torch.float32
    assert wide.embedding.weight.dtype == torch.float32
    assert torch.isfinite(half(TOKENS)).all()
    theirs = transformers.LlamaForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    assert torch.allclose(wide(TOKENS), theirs(TOKENS).logits, atol=1e-5)


def test_tokenizer_files_are_copied(tmp_path):
    small(tmp_path / "there")
    (tmp_path / "there/tokenizer.json").write_text('{"version": "1.0"}')
    (tmp_path / "there/vocab.txt").write_text("a\nb\n")
    (tmp_path / "there/secret.py").write_text("import os")
    model = load_pretrained(tmp_path / "there")
    save_pretrained(model, tmp_path / "back")
    actual = sorted(path.name for path in (tmp_path / "back").iterdir())
    assert actual == ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "vocab.txt"]
    del model.origin
    save_pretrained(model, tmp_path / "like", like=tmp_path / "there")
    assert (tmp_path / "like/tokenizer.json").read_text() == '{"version": "1.0"}'
    save_pretrained(model, tmp_path / "alone")
    assert sorted(path.name for path in (tmp_path / "alone").iterdir()) == ["config.json", "model.safetensors"]


def test_options_without_effect_are_accepted_and_kept(tmp_path):
    make("gpt2", "GPT2LMHeadModel", 2, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"_num_labels": 1, "transformers.js_config": {"dtype": "q4"}, "max_sequence_length": 2048, "n_ctx": 12}
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_pretrained(load_pretrained(tmp_path), tmp_path / "back")
    assert json.loads((tmp_path / "back/config.json").read_text()) == config


def test_labels_keep_their_names(tmp_path):
    named = {"id2label": {0: "bad", 1: "good"}, "label2id": {"bad": 0, "good": 1}}
    make("distilbert", "DistilBertForSequenceClassification", 1, tmp_path / "there")
    changed(tmp_path / "there", id2label={"0": "bad", "1": "good"}, label2id=named["label2id"])
    size = load_file(tmp_path / "there/model.safetensors")["classifier.weight"].shape[1]
    rewritten(
        tmp_path / "there",
        lambda tensors: {**tensors, "classifier.weight": torch.randn(2, size), "classifier.bias": torch.zeros(2)},
    )
    save_pretrained(load_pretrained(tmp_path / "there"), tmp_path / "back")
    back = transformers.DistilBertForSequenceClassification.from_pretrained(tmp_path / "back")
    assert back.config.id2label == named["id2label"]


def test_a_new_head_on_a_gpt2_goes_there_with_its_padding(tmp_path):
    make("gpt2", "GPT2LMHeadModel", 2, tmp_path / "there", pad_token_id=None)
    model = SequenceClassifier(load_pretrained(tmp_path / "there"), 3, pool="last", bias=False, pad=0).eval()
    save_pretrained(model, tmp_path / "back")
    theirs = transformers.GPT2ForSequenceClassification.from_pretrained(tmp_path / "back").eval()
    assert theirs.config.pad_token_id == 0
    assert theirs.config.num_labels == 3
    with torch.no_grad():
        expected = theirs(TOKENS, attention_mask=MASK.long()).logits
    assert torch.allclose(model(TOKENS), expected, atol=1e-5)


def test_a_tied_model_is_not_written_like_an_untied_one(tmp_path):
    make("llama", "LlamaForCausalLM", 2, tmp_path / "there", tie_word_embeddings=False)
    model = OURS["LlamaForCausalLM"]()
    model.head = None
    save_pretrained(model, tmp_path / "back", like=tmp_path / "there")
    assert json.loads((tmp_path / "back/config.json").read_text())["tie_word_embeddings"] is True
    again = load_pretrained(tmp_path / "back")
    assert torch.equal(again(TOKENS), model.eval()(TOKENS))


BERTISH = {"vocab": VOCAB, "dim": 8, "depth": 2, "mixer": Attention.spec(heads=2, bias=True), "segments": 2}
T5ISH = {
    "vocab": VOCAB, "dim": 8, "depth": 2, "mixer": Attention.spec(heads=2, scale=1.0), "scale": "head", "position": False,
    "cross": CrossAttention.spec(heads=2, scale=1.0), "channel": MLP.spec(activation="relu"), "norm": RMSNorm.spec(),
    "relative": RelativeBuckets.spec(),
}  # fmt: skip
OURS = {
    "GPT2LMHeadModel": lambda: Decoder(
        VOCAB, 8, 2, mixer=Attention.spec(heads=2, bias=True), channel=MLP.spec(bias=True), position=Learned.spec(length=16)
    ),
    "LlamaForCausalLM": lambda: Decoder(
        VOCAB, 8, 2, mixer=Attention.spec(heads=4, kv_heads=2, position=Rotary.spec(base=500.0)), channel=GLU.spec(hidden=12),
        norm=RMSNorm.spec(), tie=False,
    ),
    "MambaForCausalLM": lambda: Decoder(VOCAB, 8, 2, mixer=Mamba.spec(state_size=4), norm=RMSNorm.spec()),
    "RwkvForCausalLM": lambda: Decoder(
        VOCAB, 8, 2, mixer=RWKV.spec(), channel=RWKVChannel.spec(), embed_norm=LayerNorm.spec(), tie=False
    ),
    "BertForMaskedLM": lambda: MaskedLM(Encoder.spec(**BERTISH)),
    "BertForSequenceClassification": lambda: SequenceClassifier(Encoder.spec(**BERTISH, pooler=True), 3, pool="summary"),
    "DistilBertForTokenClassification": lambda: TokenClassifier(
        Encoder.spec(**{**BERTISH, "segments": 0}, norm=LayerNorm.spec(eps=1e-12)), 3
    ),
    "T5ForConditionalGeneration": lambda: EncoderDecoder(**T5ISH),
}  # fmt: skip


@pytest.mark.parametrize("name", OURS)
def test_a_model_built_here_is_read_there(name, tmp_path):
    torch.manual_seed(0)
    model = OURS[name]().eval()
    save_pretrained(model, tmp_path)
    theirs, told = getattr(transformers, name).from_pretrained(tmp_path, output_loading_info=True)
    assert not any(told.values()), told
    given = (TOKENS, TOKENS[:, :4], MASK) if "T5" in name else (TOKENS, MASK)
    more = {"decoder_input_ids": TOKENS[:, :4]} if "T5" in name else {}
    more |= {} if "Rwkv" in name else {"attention_mask": MASK.long()}
    with torch.no_grad():
        expected, actual = theirs.eval()(input_ids=TOKENS, **more).logits, model(*given)
    if actual.dim() == 3 and "T5" not in name:
        expected, actual = expected[MASK], actual[MASK]
    assert torch.allclose(actual, expected, atol=1e-5)
    again = load_pretrained(tmp_path)
    assert type(again) is type(model)
    with torch.no_grad():
        assert torch.equal(again(*given), model(*given))


FOREIGN = [
    (
        lambda: Decoder(VOCAB, 8, 2),
        f"This Decoder is none of the families that transformers reads, {KNOWN} (as GPT-NeoX, "
        "stack.blocks.0.channel.inward has bias = None, not (32,)).",
    ),
    (
        lambda: Decoder(
            VOCAB, 8, 2, mixer=Attention.spec(heads=2, bias=True, window=4), channel=MLP.spec(bias=True),
            position=Learned.spec(length=16),
        ),
        f"This Decoder is none of the families that transformers reads, {KNOWN} (as "
        "GPT-2, stack.blocks.0.mixer has window = 4, not None).",
    ),
    (
        lambda: Decoder(
            VOCAB, 8, 2, mixer=Attention.spec(heads=2, bias=True), channel=MLP.spec(bias=True, activation=elu),
            position=Learned.spec(length=16),
        ),
        f"This Decoder is none of the families that transformers reads, {KNOWN} (as GPT-2, its activation_function has no name in transformers).",
    ),
    (
        lambda: Decoder(
            VOCAB, 8, 2, mixer=Attention.spec(heads=2, position=Rotary.spec(layout="interleaved")), channel=GLU.spec(),
            norm=RMSNorm.spec(),
        ),
        f"This Decoder is none of the families that transformers reads, {KNOWN} (as "
        "LLaMA, stack.blocks.0.mixer.position has layout = interleaved, not half).",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("build", "words"), FOREIGN)
def test_a_model_of_no_family_is_refused(build, words, tmp_path):
    with pytest.raises(WonderlandError) as error:
        save_pretrained(build(), tmp_path / "out")
    assert str(error.value) == words
    assert not (tmp_path / "out").exists()


OPTIONS = [
    ("gpt2", "GPT2LMHeadModel", {"n_head": 3}, "config.json says n_head = 3, but GPT-2 can be loaded only with a number of heads that divides n_embd = 8."),
    ("gpt2", "GPT2LMHeadModel", {"n_layer": 0}, "config.json says n_layer = 0, but GPT-2 can be loaded only with a whole number "
     "from 1 to 10,000."),
    ("gpt2", "GPT2LMHeadModel", {"vocab_size": 1 << 40}, "config.json says vocab_size = 1099511627776, but GPT-2 can be loaded only with a whole number from 1 to 16,777,216."),
    ("gpt2", "GPT2LMHeadModel", {"attn_pdrop": 1.0}, "config.json says attn_pdrop = 1.0, but GPT-2 can be loaded only with a "
     "probability below 1."),
    ("gpt2", "GPT2LMHeadModel", {"tie_word_embeddings": "yes"}, "config.json says tie_word_embeddings = 'yes', but GPT-2 can be loaded only with true or false."),
    ("gpt2", "GPT2LMHeadModel", {"sliding_window": 4}, "config.json has the option 'sliding_window' (4), which is not supported for GPT-2: without it the model would not be the same."),
    ("gpt2", "GPT2LMHeadModel", {"auto_map": {"AutoModel": "evil.py"}}, "config.json says auto_map = {'AutoModel': "
     "'evil.py'}, but GPT-2 can be loaded only with no value for it."),
    ("gpt2", "GPT2LMHeadModel", {"architectures": ["GPT2DoubleHeadsModel"]}, "config.json says architectures = "
     "['GPT2DoubleHeadsModel'], but for GPT-2 only these can be loaded: GPT2LMHeadModel, GPT2ForSequenceClassification, "
     "GPT2ForTokenClassification, GPT2ForQuestionAnswering, GPT2Model."),
    ("llama", "LlamaForCausalLM", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}}, "config.json says rope_type "
     "= 'yarn', but LLaMA can be loaded only with default, linear or llama3."),
    ("llama", "LlamaForCausalLM", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "beta": 2}}, "config.json "
     "has the option 'beta' (2), which is not supported for LLaMA: without it the model would not be the same."),
    ("llama", "LlamaForCausalLM", {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}}, "config.json says "
     "partial_rotary_factor = 0.5, but LLaMA can be loaded only with 1.0 or null."),
    ("llama", "LlamaForCausalLM", {"num_key_value_heads": 3}, "config.json says num_key_value_heads = 3, but LLaMA can be loaded only with a number of key heads that divides the 2 query heads."),
    ("llama", "LlamaForCausalLM", {"pretraining_tp": 2}, "config.json says pretraining_tp = 2, but LLaMA can be loaded only with "
     "1 or null."),
    ("bert", "BertForMaskedLM", {"position_embedding_type": "relative_key"}, "config.json says position_embedding_type = "
     "'relative_key', but BERT can be loaded only with 'absolute' or null."),
    ("bert", "BertForMaskedLM", {"is_decoder": True}, "config.json says is_decoder = true, but BERT can be loaded only with "
     "false."),
    ("t5", "T5ForConditionalGeneration", {"feed_forward_proj": "relu-gated", "dense_act_fn": "absent"}, "config.json says "
     "feed_forward_proj = 'relu-gated', but T5 can be loaded only with an activation, or gated- followed by one."),
    ("mamba", "MambaForCausalLM", {"hidden_act": "gelu"}, "config.json says hidden_act = 'gelu', but Mamba can be loaded only with 'silu' or 'swish'."),
    ("rwkv", "RwkvForCausalLM", {"attention_hidden_size": 64}, "FOLDER: 'rwkv.blocks.0.attention.time_decay' has shape "
     "[8], but config.json asks for [64]."),
    ("gpt2", "GPT2LMHeadModel", {"model_type": "gpt3"}, "FOLDER/config.json says model_type = 'gpt3'. Did you mean 'gpt2'? "
     f"The families that can be loaded are {KNOWN}."),
    ("gpt2", "GPT2LMHeadModel", {"n_layer": 9}, "FOLDER lacks 'transformer.h.1.mlp.c_fc.weight', which GPT-2 with these options has: the weights and config.json do not belong together."),
    ("gpt2", "GPT2LMHeadModel", {"n_layer": 9999}, "FOLDER/config.json asks for 9,999 layers, but there are only 16 tensors: the weights and config.json do not belong together."),
    ("gpt2", "GPT2LMHeadModel", {"n_positions": 1 << 23}, "FOLDER: 'transformer.wpe.weight' has shape [24, 8], but config.json asks for [8388608, 8]."),
]  # fmt: skip
SIZES = {
    "gpt2": {"n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 24, "tie_word_embeddings": True},
    "llama": {"hidden_size": 8, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4},
    "rwkv": {"hidden_size": 8, "intermediate_size": None},
}


@pytest.mark.parametrize(("kind", "name", "options", "words"), OPTIONS)
def test_an_unsupported_option_is_refused(kind, name, options, words, tmp_path):
    small(tmp_path, kind, name, **SIZES.get(kind, {}))
    with pytest.raises(WonderlandError) as error:
        load_pretrained(changed(tmp_path, **options))
    actual = str(error.value).replace(str(tmp_path), "FOLDER")
    if "lacks" in words:
        assert actual.startswith("FOLDER lacks 'transformer.h.")
        assert actual.endswith(
            "which GPT-2 with these options has: the weights and config.json do not belong together."
        )
    else:
        assert actual == words


def _index(folder, places):
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


HOSTILE = [
    (lambda folder: (folder / "config.json").unlink(), "FOLDER is not a checkpoint: it has no config.json."),
    (
        lambda folder: (folder / "config.json").write_text("[1]"),
        "FOLDER/config.json is not an object of options: it is damaged or not of a checkpoint.",
    ),
    (
        lambda folder: (folder / "model.safetensors").unlink(),
        "FOLDER has no weights: neither model.safetensors nor model.safetensors.index.json.",
    ),
    (
        lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
        "FOLDER holds its weights as pytorch_model.bin, a pickle. Reading a pickle can run any code, so it is not read. If you trust the file, convert it: AutoModel.from_pretrained(folder).save_pretrained(folder) of transformers writes "
        "model.safetensors (use the class that config.json names under architectures).",
    ),
    (
        lambda folder: (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-9]),
        "FOLDER/model.safetensors is not a safetensors file: it is damaged, cut short or not ours.",
    ),
    (
        lambda folder: rewritten(folder, lambda tensors: {**tensors, "transformer.extra": torch.zeros(2)}),
        "FOLDER holds 'transformer.extra', which GPT-2 with these options does not have: the weights and config.json do not belong "
        "together.",
    ),
    (
        lambda folder: rewritten(folder, lambda tensors: {**tensors, "transformer.ln_f.bias": torch.full((8,), torch.nan)}),
        "FOLDER: 'transformer.ln_f.bias' holds values that are not finite: it is damaged.",
    ),
    (
        lambda folder: rewritten(folder, lambda tensors: {**tensors, "transformer.ln_f.bias": torch.zeros(8, dtype=torch.int8)}),
        "FOLDER: 'transformer.ln_f.bias' has the type I8, but weights are floating point numbers.",
    ),
    (
        lambda folder: _index(folder, {"x": "../../etc/passwd"}),
        "'../../etc/passwd' is not a plain file name, so it is not read from FOLDER.",
    ),
    (
        lambda folder: _index(folder, {"x": "a.safetensors"}),
        "FOLDER/model.safetensors.index.json says that a.safetensors holds 'x', but it does not.",
    ),
    (lambda folder: _index(folder, {"x": 3}), "FOLDER/model.safetensors.index.json does not say which file holds which "
     "tensor: it is damaged."),
    (
        lambda folder: _index(folder, {str(i): f"{i}.safetensors" for i in range(1500)}),
        "FOLDER/model.safetensors.index.json has 1,001 files; the limit is 1,000. If you trust it, raise the limit: WONDERLAND_LIMITS=shards=1001.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("harm", "words"), HOSTILE)
def test_a_damaged_or_hostile_folder_is_refused(harm, words, tmp_path):
    small(tmp_path, **SIZES["gpt2"])
    harm(tmp_path)
    with pytest.raises(WonderlandError) as error:
        load_pretrained(tmp_path)
    assert str(error.value).replace(str(tmp_path), "FOLDER") == words


def test_other_misfits_are_refused(tmp_path):
    with pytest.raises(WonderlandError) as error:
        load_pretrained(tmp_path / "none")
    assert str(error.value) == f"There is no checkpoint in {tmp_path / 'none'}: the folder does not exist."
    with pytest.raises(WonderlandError) as error:
        load_pretrained(tmp_path, dtype=torch.int64)
    assert str(error.value) == "A model can be loaded as float64, float32, bfloat16 or float16, not as torch.int64."
    small(tmp_path, **{**SIZES["gpt2"], "tie_word_embeddings": False})
    rewritten(tmp_path, lambda tensors: {name: value for name, value in tensors.items() if name != "lm_head.weight"})
    with pytest.raises(WonderlandError) as error:
        load_pretrained(tmp_path)
    assert str(error.value) == (
        f"{tmp_path} lacks 'lm_head.weight', the weights of the head, and its config.json says that the head does not share "
        "the weights of the embedding."
    )


def test_copies_that_differ_are_refused(tmp_path):
    make("t5", "T5ForConditionalGeneration", 2, tmp_path / "t5")
    rewritten(
        tmp_path / "t5", lambda tensors: {**tensors, "encoder.embed_tokens.weight": tensors["shared.weight"].clone()}
    )
    load_pretrained(tmp_path / "t5")
    rewritten(tmp_path / "t5", lambda tensors: {**tensors, "encoder.embed_tokens.weight": tensors["shared.weight"] + 1})
    with pytest.raises(WonderlandError) as error:
        load_pretrained(tmp_path / "t5")
    assert (
        str(error.value)
        == "The encoder of this T5 has its own embedding, which is not supported: it must equal shared.weight."
    )
    make("bert", "BertForMaskedLM", 2, tmp_path / "bert", tie_word_embeddings=True)
    rewritten(
        tmp_path / "bert",
        lambda tensors: {**tensors, "cls.predictions.decoder.bias": tensors["cls.predictions.bias"] + 1},
    )
    with pytest.raises(WonderlandError) as error:
        load_pretrained(tmp_path / "bert")
    assert str(error.value) == (
        "The head of this masked language model has two biases that differ, cls.predictions.bias and "
        "cls.predictions.decoder.bias, so it is not clear which one it uses."
    )
