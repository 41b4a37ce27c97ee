"""Mutated checkpoint folders of published families. `python -m tests.fuzz.checkpoints FIRST COUNT` prints what did not hold."""

import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.mutate_files import mutate_file
from tests.fuzz.worker import reset_peak, resident

FILES = ("config.json", "config.json", "config.json", "model.safetensors", "model.safetensors", "model.safetensors.index.json", "tokenizer.json",
         "preprocessor_config.json", "tokenizer_config.json")  # fmt: skip


def write_checkpoints(home: Path) -> list[Path]:
    """A small checkpoint of every family, some with a tokenizer, some in several files."""
    import transformers

    from tests.checkpoints.families import oracle, test_images, test_more_families
    from wonderland.data import Tokenizer

    transformers.logging.set_verbosity_error()
    for kind, heads in oracle.HEADS.items():
        oracle.make(kind, heads[0], 1, home / kind)
    for stem, head, options in test_more_families.CASES:
        test_more_families.made(stem, head, options, home / stem)
    for name in test_images.CASES:
        test_images.make(name, home / name.replace(", ", "-").replace(" ", "-"))
    for name in ("bert", "Qwen2"):
        Tokenizer.train(["the fox ran over the hill", "a small town"] * 9, kind="words", vocab=oracle.VOCAB).save(
            home / name
        )
    model = transformers.AutoModelForCausalLM.from_pretrained(home / "llama")
    shutil.rmtree(home / "llama")
    model.save_pretrained(home / "llama", max_shard_size="10KB")
    return sorted(path for path in home.iterdir() if path.is_dir())


def use(folder: Path) -> None:
    """What a user does with a checkpoint."""
    from wonderland.checkpoints import load_pretrained, outline
    from wonderland.data import Tokenizer

    repr(outline(folder))
    load_pretrained(folder)
    if (folder / "tokenizer.json").exists():
        Tokenizer.load(folder).encode("the fox")


def failures(folders: list[Path], seeds: range) -> list[str]:
    """Mutations that were neither loaded nor refused in a sentence, within a second and 200 MB."""
    from wonderland.core import WonderlandError

    found = []
    for folder in folders:
        use(folder)
    place = folders[0].parent.parent / "mutated"
    for seed in seeds:
        draw = random.Random(seed)
        shutil.rmtree(place, ignore_errors=True)
        folder = draw.choice(folders)
        shutil.copytree(folder, place)
        names = [name for name in FILES if (place / name).exists()] + sorted(
            path.name for path in place.glob("model-*.safetensors")
        )
        chosen = {draw.choice(names)} | ({draw.choice(names)} if draw.random() < 0.15 else set())
        strangers = tuple(other for other in folders if other != folder)
        words = f"{folder.name}: " + " | ".join(mutate_file(place / name, draw, strangers) for name in sorted(chosen))
        reset_peak()
        before, began = resident("VmRSS"), time.process_time()
        try:
            use(place)
        except WonderlandError as error:
            if any(not (letter.isprintable() or letter in "\n\t") for letter in str(error)):
                found.append(f"seed {seed} ({words}): control characters in {str(error)!r}")
        except Exception as error:
            found.append(f"seed {seed} ({words}): {error!r}")
        seconds, taken = time.process_time() - began, resident("VmHWM") - before
        if seconds > 1 or taken > 200:
            found.append(f"seed {seed} ({words}): {seconds:.1f} s and {taken:.0f} MB")
    return found


def main() -> None:
    import torch

    torch.set_num_threads(1)
    first, count = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "families").mkdir()
        folders = write_checkpoints(Path(home) / "families")
        for begin in range(first, first + count, 100):
            for failure in failures(folders, range(begin, min(begin + 100, first + count))):
                print(json.dumps(failure), flush=True)
            print(f"{begin + 100 - first} done", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
