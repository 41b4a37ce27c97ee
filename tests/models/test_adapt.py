"""Fine-tuning: adapters begin as nothing, learn alone, merge exactly, and go through files."""

import pytest
import torch
import transformers
from torch import nn

from tests.checkpoints.families.oracle import VOCAB, batch, make
from wonderland import laws
from wonderland.checkpoints import load_pretrained, save_pretrained
from wonderland.core import Spec, WonderlandError, save_tensors
from wonderland.models import (
    Decoder,
    Encoder,
    PrefixTuned,
    PromptTuned,
    SequenceClassifier,
    adapt,
    load_adapter,
    merge,
    save_adapter,
    train_only,
)
from wonderland.nn import (
    GLU,
    IA3,
    MLP,
    RWKV,
    Adapter,
    Attention,
    BiasTuning,
    Bottleneck,
    Learned,
    LoRA,
    Mamba,
    Rotary,
    consuming,
)

SMALL = {"vocab": VOCAB, "dim": 8, "depth": 2, "mixer": Attention.spec(heads=2, position=Rotary.spec())}
TOKENS = torch.randint(VOCAB, (3, 7), generator=torch.Generator().manual_seed(0))
ADAPTERS = [
    LoRA.spec(rank=2, alpha=6.0),
    LoRA.spec(rank=3, even=True),
    IA3.spec(),
    IA3.spec(side="input"),
    BiasTuning.spec(),
    Bottleneck.spec(width=3),
]


def moved(model: nn.Module) -> nn.Module:
    """A step away from where an adapter begins."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter += 0.3 * torch.randn_like(parameter)
    return model


@pytest.mark.parametrize("spec", ADAPTERS, ids=lambda spec: f"{spec.name}-{spec.arguments}")
def test_an_adapter_begins_as_nothing_and_learns_alone(spec):
    model = Decoder(**SMALL).double().eval()
    before, weights = model(TOKENS), {name: value.clone() for name, value in model.state_dict().items()}
    model = adapt(model, spec)
    assert torch.allclose(model(TOKENS), before, atol=1e-12)
    learning = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert learning
    assert all(".layer." not in name and "blocks" in name for name in learning)
    model(TOKENS).sum().backward()
    assert all(parameter.grad is None for parameter in model.parameters() if not parameter.requires_grad)
    moved(model)
    assert not torch.allclose(model(TOKENS), before)
    for name, value in weights.items():
        kept = model.state_dict()
        at = name if name in kept else f"{name.rpartition('.')[0]}.layer.{name.rpartition('.')[2]}"
        assert torch.equal(kept[at], value)


@pytest.mark.parametrize("spec", ADAPTERS[:-1], ids=lambda spec: f"{spec.name}-{spec.arguments}")
def test_merged_and_apart_give_the_same(spec):
    model = moved(adapt(Decoder(**SMALL, channel=MLP.spec(bias=True)).double().eval(), spec))
    plain = merge(model)
    assert torch.allclose(plain(TOKENS), model(TOKENS), atol=1e-10)
    assert not any(isinstance(module, Adapter) for module in plain.modules())
    assert any(isinstance(module, Adapter) for module in model.modules())
    assert all(parameter.requires_grad for parameter in plain.parameters())


def test_dropout_acts_on_the_change_and_only_in_training():
    layer = LoRA(nn.Linear(6, 4), rank=2, dropout=0.5)
    x = torch.ones(64, 6)
    assert torch.equal(layer.eval()(x), layer.eval()(x))
    layer.train()
    assert torch.allclose(layer(x), layer.layer(x), atol=1e-6)
    moved(layer)
    assert layer(x).std(0).max() > 0


def test_an_adapted_model_keeps_its_laws_and_streams():
    model = moved(adapt(Decoder(**SMALL), LoRA.spec(rank=2), "*project"))
    example = laws.Example.tokens(2, 5, vocab=VOCAB)
    for law in (laws.streaming, laws.padding_invariance, laws.save_load):
        assert law(model, example).outcome == "holds", law.__name__
    model.eval()
    with torch.no_grad(), consuming():
        state, actual = None, []
        for step in range(7):
            y, state = model.stream(TOKENS[:, step : step + 1], state)
            actual.append(y)
    assert torch.allclose(torch.cat(actual, 1), model(TOKENS), atol=1e-5)


def test_the_outer_spec_builds_it_again(tmp_path):
    make("gpt2", "GPT2LMHeadModel", 3, tmp_path)
    model = load_pretrained(tmp_path)
    model = moved(adapt(model, LoRA.spec(rank=2), "*mixer.*"))
    model = moved(adapt(model, BiasTuning.spec(), "*channel.outward"))
    built = Spec.from_json(model.origin.spec.to_json()).build()
    built.load_state_dict(model.state_dict())
    assert torch.equal(built.eval()(TOKENS), model(TOKENS))
    assert merge(model).origin.spec == load_pretrained(tmp_path).origin.spec


@pytest.mark.parametrize(
    "spec", [*ADAPTERS, PromptTuned.spec(length=3), PrefixTuned.spec(length=3)], ids=lambda s: s.name
)
def test_what_was_learned_is_saved_alone(spec, tmp_path):
    plain = Decoder(**SMALL)
    weights = {name: value.clone() for name, value in plain.state_dict().items()}
    model = moved(adapt(plain, spec, "*mixer.*", also="embedding*")).eval()
    save_adapter(model, tmp_path / "adapter.safetensors")
    fresh = Decoder(**SMALL)
    fresh.load_state_dict(weights)
    again = load_adapter(fresh, tmp_path / "adapter.safetensors").eval()
    assert torch.equal(again(TOKENS), model(TOKENS))
    assert (tmp_path / "adapter.safetensors").stat().st_size < 12_000


@pytest.mark.parametrize(
    "mixer",
    [
        Attention.spec(heads=2, position=Rotary.spec()),
        pytest.param(Attention.spec(heads=2), marks=pytest.mark.slow),
        pytest.param(RWKV.spec(), marks=pytest.mark.slow),
        Mamba.spec(state_size=2),
    ],
    ids=lambda spec: spec.name,
)
@pytest.mark.parametrize("kind", [PromptTuned, PrefixTuned])
def test_a_tuned_start_is_a_language_model(kind, mixer):
    position = Learned.spec(length=24) if mixer.arguments == {"heads": 2} else None
    model = kind(Decoder.spec(vocab=VOCAB, dim=8, depth=2, mixer=mixer, position=position), length=3)
    example = laws.Example.tokens(2, 5, vocab=VOCAB)
    for law in (laws.streaming, laws.padding_invariance):
        assert law(model, example).outcome == "holds", law.__name__
    learning = {name.split(".")[0] for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert learning == {"prompt"} if kind is PromptTuned else {"memory"}
    model(TOKENS).sum().backward()
    grads = [parameter.grad for parameter in model.parameters() if parameter.requires_grad]
    # The scale of RWKV's sums is a way of writing them, and has no gradient.
    assert sum(grad is None for grad in grads) == (2 if (kind, mixer.name) == (PrefixTuned, "nn.RWKV") else 0)
    assert all(grad.abs().sum() > 0 for grad in grads if grad is not None)


def test_a_prefix_begins_as_the_tokens_it_stands_for():
    model = Decoder(**SMALL).double().eval()
    tokens = torch.linspace(0, VOCAB - 1, 3).long().expand(3, -1)
    expected = model(torch.cat([tokens, TOKENS], 1))[:, 3:]
    for kind in (PromptTuned, PrefixTuned):
        assert torch.allclose(kind(model, length=3)(TOKENS), expected, atol=1e-12)


def test_a_prompt_is_what_transformers_reads_before_a_text(tmp_path):
    theirs = make("gpt2", "GPT2LMHeadModel", 3, tmp_path)
    model = moved(adapt(load_pretrained(tmp_path), PromptTuned.spec(length=4)))
    read = torch.cat([model.prompt.expand(3, -1, -1), theirs.transformer.wte(TOKENS)], 1)
    expected = theirs(inputs_embeds=read).logits[:, 4:]
    assert torch.allclose(model(TOKENS), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("gpt2", "GPT2LMHeadModel"), ("llama", "LlamaForCausalLM"), ("bert", "BertForSequenceClassification"),
     ("distilbert", "DistilBertForMaskedLM"), ("t5", "T5ForConditionalGeneration"), ("mamba", "MambaForCausalLM")],
)  # fmt: skip
def test_tuned_here_merged_and_loaded_there(kind, name, tmp_path):
    make(kind, name, 11, tmp_path / "there")
    model = adapt(load_pretrained(tmp_path / "there"), LoRA.spec(rank=2), "*blocks.*", also="head*")
    tokens, mask = batch(1, kind)
    given = (tokens, tokens, mask) if kind == "t5" else (tokens, mask)
    model.train()
    optimizer = torch.optim.SGD([value for value in model.parameters() if value.requires_grad], 0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(*given).square().mean().backward()
        optimizer.step()
    model.eval()
    save_pretrained(merge(model), tmp_path / "back")
    theirs = getattr(transformers, name).from_pretrained(tmp_path / "back").eval()
    more = {"decoder_input_ids": tokens} if kind == "t5" else {}
    with torch.no_grad():
        expected, actual = theirs(input_ids=tokens, attention_mask=mask.long(), **more).logits, model(*given)
        again = load_pretrained(tmp_path / "back")(*given)
    if actual.dim() == 3 and kind != "t5":
        expected, actual, again = expected[mask], actual[mask], again[mask]
    assert torch.allclose(actual, expected, atol=1e-5)
    assert torch.allclose(again, expected, atol=1e-5)


def test_a_new_head_on_a_trunk_that_was_loaded(tmp_path):
    make("bert", "BertModel", 4, tmp_path / "there", vocab_size=VOCAB)
    trunk = load_pretrained(tmp_path / "there")
    model = SequenceClassifier(trunk, 4, pool="summary", dropout=0.1)
    rest = sum(value.numel() for value in trunk.parameters())
    assert train_only(model, "head*") == model.head.weight.numel() + 4
    assert train_only(model, "*") == rest + model.head.weight.numel() + 4
    save_pretrained(model.eval(), tmp_path / "back")
    theirs = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "back").eval()
    tokens, mask = batch(2, "bert")
    assert torch.allclose(theirs(tokens, attention_mask=mask.long()).logits, model(tokens, mask), atol=1e-5)
    assert theirs.config.num_labels == 4


def test_only_chosen_weights_learn():
    model = Decoder(**SMALL, tie=False)
    assert train_only(model, ["head*", "*norm*"]) == VOCAB * 8 + 5 * 16
    assert {name for name, value in model.named_parameters() if value.requires_grad} == {
        name for name, _ in model.named_parameters() if name.startswith("head") or "norm" in name
    }


def hostile(path, adaptations):
    save_tensors(path, {"x": torch.zeros(3)}, {"adaptations": adaptations})
    return path


LORA = {"part": "nn.LoRA", "arguments": {"rank": 1 << 23}}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda path: adapt(Decoder(**SMALL), LoRA(nn.Linear(2, 2))),
            "adapt takes an adapter as a spec such as nn.LoRA.spec(rank=8), not as a LoRA.",
        ),
        (
            lambda path: adapt(Decoder(**SMALL), GLU.spec()),
            "nn.GLU is not an adapter: those are nn.LoRA, nn.IA3, nn.Bottleneck, nn.BiasTuning, models.PromptTuned and "
            "models.PrefixTuned.",
        ),
        (
            lambda path: adapt(Decoder(**SMALL), LoRA.spec(), "*attention*"),
            "No linear layer is called '*attention*'. Some layers are: stack.blocks.0.mixer.project, "
            "stack.blocks.0.mixer.out, stack.blocks.0.channel.inward, stack.blocks.0.channel.outward.",
        ),
        (
            lambda path: train_only(Decoder(**SMALL), "classifier*"),
            "No parameter is called 'classifier*'. Some of them are embedding.weight, stack.blocks.0.mixer.project.weight, "
            "stack.blocks.0.mixer.out.weight, stack.blocks.0.channel.inward.weight.",
        ),
        (lambda path: LoRA(nn.Conv1d(2, 2, 1)), "LoRA adapts a linear layer, not a Conv1d."),
        (lambda path: LoRA(nn.Linear(2, 2), rank=0), "LoRA has a rank of at least 1, not 0."),
        (lambda path: Bottleneck(nn.Linear(2, 2), width=0), "Bottleneck has a width of at least 1, not 0."),
        (
            lambda path: IA3(nn.Linear(2, 2), side="left"),
            "IA3 scales the 'output' or the 'input' of a layer, not 'left'.",
        ),
        (
            lambda path: merge(adapt(Decoder(**SMALL), Bottleneck.spec())),
            "Bottleneck is not linear, so it cannot become part of a layer: keep the adapter, or use LoRA, IA3 or BiasTuning.",
        ),
        (
            lambda path: merge(PromptTuned(Decoder.spec(**SMALL))),
            "PromptTuned trains an initial state, which cannot be merged into weights: keep it, or use LoRA, IA3 or BiasTuning.",
        ),
        (lambda path: PromptTuned(Encoder.spec(vocab=3)), "PromptTuned takes a Decoder, not a Encoder."),
        (lambda path: PrefixTuned(Decoder.spec(**SMALL), 0), "PrefixTuned has a length of at least 1, not 0."),
        (
            lambda path: save_adapter(Decoder(**SMALL), path),
            "This model has no adapter to save: put one in with adapt, or save the whole model.",
        ),
        (
            lambda path: save_pretrained(adapt(Decoder(**SMALL), LoRA.spec(), "*out"), path),
            "This model has an adapter at stack.blocks.0.mixer.out: save models.merge(model), or the adapter alone with "
            "save_adapter.",
        ),
        (
            lambda path: load_adapter(Decoder(**SMALL), hostile(path, [])),
            "PATH is not an adapter: it was not written by save_adapter.",
        ),
        (
            lambda path: load_adapter(Decoder(**SMALL), hostile(path, [{"adapter": LORA, "where": [1], "also": []}])),
            "PATH is not an adapter: it is damaged or not ours.",
        ),
        (
            lambda path: load_adapter(Decoder(**SMALL), hostile(path, [{"adapter": LORA, "where": ["*"], "also": []}])),
            "PATH describes a larger adapter than it holds: it is damaged.",
        ),
        (
            lambda path: load_adapter(
                Decoder(**SMALL),
                hostile(path, [{"adapter": {"part": "os.system", "arguments": {}}, "where": ["*"], "also": []}]),
            ),
            "'os.system' is not a part of Wonderland, so it is not built.",
        ),
        (
            lambda path: load_adapter(
                Decoder(**SMALL),
                hostile(path, [{"adapter": BiasTuning.spec().to_json(), "where": ["*0.mixer.out"], "also": []}]),
            ),
            "PATH describes a larger adapter than it holds: it is damaged.",
        ),
        (
            lambda path: load_adapter(
                Decoder(**{**SMALL, "dim": 2, "mixer": Attention.spec(heads=1)}),
                hostile(path, [{"adapter": BiasTuning.spec().to_json(), "where": ["*0.mixer.out"], "also": []}]),
            ),
            "PATH does not fit this model at 'stack.blocks.0.mixer.out.shift': it belongs to another model.",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(call, words, tmp_path):
    path = tmp_path / "adapter.safetensors"
    with pytest.raises(WonderlandError) as error:
        call(path)
    assert str(error.value).replace(str(path), "PATH") == words
