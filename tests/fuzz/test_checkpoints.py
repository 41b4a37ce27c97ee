"""Mutated checkpoint folders of published families: loaded or refused in a sentence, within a second and 200 MB."""

import random
import shutil
import time

import pytest

from tests.fuzz import mutate
from tests.fuzz.worker import reset_peak, resident
from wonderland.checkpoints import load_pretrained
from wonderland.core import WonderlandError


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    home = tmp_path_factory.mktemp("checkpoints")
    import transformers as hf

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    models = {
        "gpt2": hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=1)),
        "llama": hf.LlamaForCausalLM(hf.LlamaConfig(vocab_size=50, **sizes)),
        "bert": hf.BertForMaskedLM(hf.BertConfig(vocab_size=50, max_position_embeddings=32, **sizes)),
        "convnext": hf.ConvNextForImageClassification(hf.ConvNextConfig(hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1])),
        "mamba": hf.MambaForCausalLM(hf.MambaConfig(vocab_size=50, hidden_size=16, state_size=4, num_hidden_layers=2)),
    }  # fmt: skip
    for name, model in models.items():
        model.save_pretrained(home / name)
        load_pretrained(home / name)
    return home


def failures(folders, seeds) -> list[str]:
    found = []
    for seed in seeds:
        draw = random.Random(seed)
        place = folders / "mutated"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(folders / draw.choice(["bert", "convnext", "gpt2", "llama", "mamba"]), place)
        words = mutate.mutate_file(place / draw.choice(["config.json", "config.json", "model.safetensors"]), draw)
        reset_peak()
        before, began = resident("VmRSS"), time.process_time()
        try:
            load_pretrained(place)
        except WonderlandError:
            pass
        except Exception as error:
            found.append(f"seed {seed} ({words}): {error!r}")
        if time.process_time() - began > 1 or resident("VmHWM") - before > 200:
            found.append(f"seed {seed} ({words}): too much time or memory")
    return found


def test_a_few_mutations(folders):
    assert failures(folders, range(150)) == []


@pytest.mark.slow
def test_many_mutations(folders):
    assert failures(folders, range(10_000, 14_000)) == []
