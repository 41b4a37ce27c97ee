"""fit from a checkpoint of transformers on disk: texts, classes and pairs; every method; back to transformers; refusals."""

import io
import json
import re
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
import torch
import transformers

import wonderland
from tests.kinds.pairs.test_kind import pairs
from tests.texts import labelled, rhyme
from wonderland import checkpoints, data, models, nn
from wonderland.checkpoints.families import FAMILIES
from wonderland.cli.main import main
from wonderland.core import WonderlandError
from wonderland.tasks.abilities.writing import show_token

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def refuses(text, call):
    with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
        call()


@cache
def place() -> Path:
    """Three small checkpoints with their tokenizers, and what they are tuned with."""
    folder = Path(mkdtemp(prefix="wonderland-start-"))
    torch.manual_seed(0)
    texts = [rhyme(50), *(text for _, text in labelled(60)), *pairs(60)["source"], *pairs(60)["target"]]
    names = {"gpt2": ("<|endoftext|>",), "bert": ("[PAD]", "[UNK]", "[CLS]", "[SEP]"), "t5": ("<pad>", "</s>", "<unk>")}
    from tokenizers.processors import TemplateProcessing

    for name, specials in names.items():
        tokenizer = data.Tokenizer.train(texts, kind="bpe", vocab=300, specials=specials)
        around = {"bert": ("[CLS] $A [SEP]", [("[CLS]", 2), ("[SEP]", 3)]), "t5": ("$A </s>", [("</s>", 1)])}
        if name in around:
            tokenizer._inner.post_processor = TemplateProcessing(single=around[name][0], special_tokens=around[name][1])
        (folder / name).mkdir()
        tokenizer.save(folder / name)
    T = transformers
    T.GPT2LMHeadModel(
        T.GPT2Config(vocab_size=310, n_positions=48, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    ).save_pretrained(folder / "gpt2")
    T.BertForMaskedLM(
        T.BertConfig(
            vocab_size=300, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
            max_position_embeddings=40, pad_token_id=0,
        )
    ).save_pretrained(folder / "bert")  # fmt: skip
    T.T5ForConditionalGeneration(
        T.T5Config(vocab_size=300, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0)
    ).save_pretrained(folder / "t5")
    (folder / "rhyme.txt").write_text(rhyme(150))
    (folder / "topics.csv").write_text("label,text\n" + "".join(f"{label},{text}\n" for label, text in labelled(120)))
    pairs(120).to_csv(folder / "pairs.csv", index=False)
    return folder


def there(run, checkpoint, folder):
    """The model of a run, as transformers loads it."""
    checkpoints.save_pretrained(run.model, folder, like=checkpoint, labels=run.classes)
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    found, told = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    assert not any(told.values()), told
    return found.eval()


@pytest.mark.parametrize("method", ["lora", pytest.param("full", marks=pytest.mark.slow)])
def test_a_language_model_starts_from_gpt2_and_is_exported(method, tmp_path, capsys, monkeypatch):
    start = place() / "gpt2"
    run = wonderland.fit(place() / "rhyme.txt", start=start, method=method, steps=4, lr=3e-3, out=tmp_path / "run")
    assert (run.model.vocab, run.encoder.tokenizer.vocab, run.encoder.context) == (310, 300, 48)
    before, writing = checkpoints.load_pretrained(start), run.ability("generate")
    tokens = torch.tensor([writing.read("The fox ran over the hill")])
    with torch.no_grad():
        assert not torch.equal(before(tokens), run.model(tokens))
        assert torch.allclose(there(run, start, tmp_path / "out")(tokens).logits, run.model(tokens), atol=1e-5)
    tied = checkpoints.load_pretrained(tmp_path / "out")
    same = method == "lora"  # which leaves the embedding as it was
    assert torch.equal(tied.embedding.weight, before.embedding.weight) == same
    again = wonderland.load(run.folder)
    loaded = again.ability("generate")
    assert loaded("The ", seed=1) == writing("The ", seed=1)
    assert again.predict([rhyme(20)])["tokens"][0] > 48  # longer than the positions: read in windows
    assert loaded.room(9) == 40
    long = rhyme(20)
    assert 30 < len(loaded.read(loaded.left_context(long, 9))) <= 40
    assert main(["generate", str(run.folder), "--prompt", long, "--count", "9"]) == 0
    assert re.search(
        r"the model has room for the last \d+ of [\d,]+ characters of the prompt, and reads these\.",
        capsys.readouterr().err,
    )
    monkeypatch.setattr("sys.stdin", io.StringIO("The fox\nran over\n/count 99\nthe hill\n"))
    assert main(["chat", str(run.folder)]) == 0
    told = capsys.readouterr()
    assert told.out.count("\n") >= 3
    assert "At most 48 tokens, as many as the model has positions." in told.out
    assert show_token(again.encoder.tokenizer, 305) == "<305>"


@pytest.mark.parametrize("method", ["head", pytest.param("lora", marks=pytest.mark.slow)])
def test_a_classifier_starts_from_bert_and_is_exported(method, tmp_path):
    start = place() / "bert"
    words = ["fit", str(place() / "topics.csv"), "--from", str(start), "--method", method, "--steps", "8", "--quiet"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 0
    run = wonderland.load(tmp_path / "run")
    found = run.encoder.encode(run.encoder.open(["the fox was here", "so " * 200]))[:, : run.encoder.length]
    network = run.model.network
    assert found[0].tolist()[:2] == [2, *run.encoder.tokenizer.encode("the")[:1]]
    assert found[0][found[0] != 0][-1] == found[1, -1] == 3  # a text that is cut keeps its end
    assert run.encoder.length <= 40
    theirs = there(run, start, tmp_path / "out")
    assert type(theirs).__name__ == "BertForSequenceClassification"
    assert theirs.config.id2label == {0: "animals", 1: "food", 2: "weather"}
    refuses("labels must be 3 different names, one for each class of the head, not ['a', 'a', 'b'].",
            lambda: checkpoints.save_pretrained(run.model, tmp_path / "out", like=start, labels=["a", "a", "b"]))  # fmt: skip
    with torch.no_grad():
        expected = theirs(found, attention_mask=(found != 0).long()).logits
        assert torch.allclose(network(found), expected, atol=1e-5)
    before = checkpoints.load_pretrained(start).trunk.state_dict()
    rest = all(torch.equal(value, before[name]) for name, value in network.trunk.state_dict().items() if name in before)
    assert rest == (method == "head")


def test_a_translator_starts_from_t5_and_is_exported(tmp_path):
    start = place() / "t5"
    said = []
    how = {"start": start, "method": "ia3", "steps": 6, "on_start": lambda _, plan, __: said.append(plan.describe())}
    run = wonderland.fit(place() / "pairs.csv", out=tmp_path / "run", **how)
    assert said[0].endswith("peak rate 0.001. From t5: ia3 is trained, and merged.")
    assert (run.encoder.begin, run.encoder.tokenizer.end) == (0, 1)
    theirs, text = there(run, start, tmp_path / "out"), "two dog and one cat"
    ids = torch.tensor([run.encoder.tokenizer.encode(text, add_special_tokens=True)])
    options = {"do_sample": False, "max_new_tokens": 2 * run.encoder.write}
    written = theirs.generate(ids, attention_mask=torch.ones_like(ids), **options)[0, 1:].tolist()
    written = written[: written.index(1)] if 1 in written else written
    assert wonderland.load(run.folder).ability("generate")(text) == run.encoder.tokenizer.decode(written)


@pytest.mark.slow
def test_resume_is_exact(tmp_path):
    whole = wonderland.fit(place() / "topics.csv", start=place() / "bert", method="lora", steps=8, out=tmp_path / "a")

    def cut(dataset, plan, finished):
        shutil.copytree(tmp_path / "b", tmp_path / "c")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wonderland.fit(
            place() / "topics.csv", start=place() / "bert", method="lora", steps=8, out=tmp_path / "b", on_start=cut
        )
    found = wonderland.fit(resume=tmp_path / "c").model.state_dict()
    assert all(torch.equal(value, found[name]) for name, value in whole.model.state_dict().items())
    changed = tmp_path / "changed"
    shutil.copytree(place() / "bert", changed)
    run = {"start": changed, "steps": 2, "out": tmp_path / "d"}
    wonderland.fit(place() / "topics.csv", **run)
    (tmp_path / "d" / "model.safetensors").unlink()
    (changed / "tokenizer_config.json").write_text("{}")
    refuses(f"The checkpoint in {changed} changed since the run began, so the run cannot be resumed. "
            "Restore the checkpoint, or start a new run in another folder.",
            lambda: wonderland.fit(place() / "topics.csv", **run))  # fmt: skip


def test_a_classifier_keeps_its_head_and_any_family_gets_one(tmp_path):
    model = checkpoints.load_classifier(place() / "bert", 3)
    checkpoints.save_pretrained(model, tmp_path / "three")
    kept = checkpoints.load_classifier(tmp_path / "three", 3)
    assert torch.equal(kept.head.weight, model.head.weight)
    assert checkpoints.load_classifier(tmp_path / "three", 2).head.out_features == 2
    mamba = models.Decoder(vocab=20, dim=8, depth=1, mixer=nn.Mamba.spec(), channel=None, norm=nn.RMSNorm.spec())
    checkpoints.save_pretrained(mamba, tmp_path / "mamba")
    found = checkpoints.load_classifier(tmp_path / "mamba", 4, pad=19)
    refuses(f"This SequenceClassifier is none of the families that transformers reads, {', '.join(FAMILIES)} (its trunk is Mamba, for which transformers has no such head).",
            lambda: checkpoints.save_pretrained(found, tmp_path / "back"))  # fmt: skip
    assert found(torch.tensor([[1, 2, 19]])).shape == (1, 4)
    assert found.pad == 19


def test_errors_to_the_word(tmp_path):
    csv, text, gpt2, bert = (place() / name for name in ("topics.csv", "rhyme.txt", "gpt2", "bert"))
    refuses(f"There is no checkpoint in {tmp_path / 'none'}: the folder does not exist.",
            lambda: wonderland.fit(csv, start=tmp_path / "none"))  # fmt: skip
    refuses(f"There is no checkpoint in {text}: a checkpoint is a folder, and this is a file.",
            lambda: wonderland.fit(csv, start=text))  # fmt: skip
    bare = tmp_path / "bare"
    shutil.copytree(bert, bare)
    (bare / "tokenizer.json").unlink()
    refuses(f"The checkpoint in {bare} has no tokenizer.json, so it cannot read text. "
            "AutoTokenizer.from_pretrained(...).save_pretrained(folder) of transformers writes it.",
            lambda: wonderland.fit(csv, start=bare))  # fmt: skip
    refuses("tokens is for a fit without a checkpoint, which has a tokenizer of its own.",
            lambda: wonderland.fit(csv, start=bert, tokens="words"))  # fmt: skip
    refuses("method says how a checkpoint is tuned: name the checkpoint with start (--from).",
            lambda: wonderland.fit(csv, method="lora"))  # fmt: skip
    refuses("There is no method 'lore'. Did you mean 'lora' or 'qlora'? Known are full, head, lora, qlora, ia3, bias.",
            lambda: wonderland.fit(csv, start=bert, method="lore"))  # fmt: skip
    refuses("start is an option of image, text, corpus and pairs, and iris is read as table: leave it out, or name another "
            "kind with kind (--kind).",
            lambda: wonderland.fit("iris", start=bert))  # fmt: skip
    refuses("A checkpoint brings its own model: start does not go with your own module.",
            lambda: wonderland.fit(csv, start=bert, model=torch.nn.Linear(1, 1)))  # fmt: skip
    refuses(f"The checkpoint in {bert} is not a causal language model: plain text needs GPT2LMHeadModel, "
            "LlamaForCausalLM, MambaForCausalLM or another ...ForCausalLM.",
            lambda: wonderland.fit(text, start=bert))  # fmt: skip
    refuses(f"The checkpoint in {gpt2} is not an encoder-decoder that generates text: pairs need "
            "T5ForConditionalGeneration, BartForConditionalGeneration or MarianMTModel.", lambda: wonderland.fit(place() / "pairs.csv", start=gpt2))  # fmt: skip
    refuses("The checkpoint has 48 positions: the context cannot be 64.",
            lambda: wonderland.fit(text, start=gpt2, context=64))  # fmt: skip
    refuses("context is from 3 to 40 for this checkpoint, not 41.",
            lambda: wonderland.fit(csv, start=bert, context=41))  # fmt: skip
    other = tmp_path / "other"
    shutil.copytree(gpt2, other)
    data.Tokenizer.train(rhyme(50), kind="bpe", vocab=400, specials=["</s>", "<other>"]).save(other)
    found = data.Tokenizer.load(other).vocab
    refuses(f"The tokenizer in {other} has {found} tokens and the model 310: the two do not belong together.",
            lambda: wonderland.fit(text, start=other))  # fmt: skip


def test_method_bias_needs_a_model_with_biases(tmp_path):
    refuses(
        f"The model in {place() / 't5'} has no biases to learn: take lora, ia3, head or full.",
        lambda: wonderland.fit(
            place() / "pairs.csv", start=place() / "t5", method="bias", out=tmp_path / "run", steps=2
        ),
    )


def test_a_head_is_fitted_to_the_vectors_of_a_frozen_trunk_in_one_step(tmp_path):
    """The pooling comes from the files of sentence-transformers; the vectors are those of one text after the other."""
    start = tmp_path / "sentences"
    shutil.copytree(place() / "bert", start)
    config = transformers.BertConfig.from_pretrained(start)
    torch.manual_seed(1)
    transformers.BertModel(config).save_pretrained(start)
    modules = [{"idx": 0, "path": "", "type": "x.Transformer"}, {"idx": 1, "path": "1_Pooling", "type": "x.Pooling"}]
    (start / "modules.json").write_text(json.dumps(modules))
    (start / "1_Pooling").mkdir()
    (start / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}'
    )
    run = wonderland.fit(place() / "topics.csv", start=start, method="head", out=tmp_path / "run")
    network, length = run.model.network, run.encoder.length
    assert (run.recipe.steps, network.pool.how) == (1, "mean")
    parts = {part["name"]: part["metrics"]["accuracy"] for part in run.record["measured"]["test"]["parts"]}
    assert parts["network"] > 0.6  # a trunk with random weights
    before = checkpoints.load_pretrained(start).state_dict()
    assert all(torch.equal(value, before[name]) for name, value in network.trunk.state_dict().items())
    texts = [" ".join(["the fox was here"] * (1 + i % 5)) for i in range(70)]
    tokens = run.encoder.encode(run.encoder.open(texts))[:, :length]
    with torch.no_grad():
        alone = torch.cat([network(row[None]) for row in tokens])
        assert torch.allclose(network.eval()(tokens), alone, atol=1e-5)
    (start / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_sqrt_len_tokens": true}')
    refuses(f"{start / '1_Pooling' / 'config.json'} asks for the pooling pooling_mode_mean_sqrt_len_tokens: mean, max, first and last "
            "token are known.", lambda: wonderland.fit(place() / "topics.csv", start=start))  # fmt: skip
    (start / "modules.json").write_text('[{"path": "../2", "type": "x.Pooling"}]')
    refuses(f"{start / 'modules.json'} names a pooling that is not there: copy the folder again.",
            lambda: wonderland.fit(place() / "topics.csv", start=start))  # fmt: skip
