"""Words with tags: the default fit beside CRFsuite on the same features of words, on the same test sentences.

    python -m bench.tags TRAIN.conll TEST.conll [--train 1000 --test 500 --steps 600]

CRFsuite (pip install python-crfsuite) reads the features of two words at either side, with L2 of 0.1 and 60 iterations.
"""

import argparse
import tempfile
import time
from pathlib import Path

import wonderland
from wonderland.data.reading import Reading
from wonderland.data.text.tagged import Tagged, read_tagged, write_tagged
from wonderland.data.text.word_features import features_of


def first(path: Path, count: int) -> Tagged:
    """The first sentences of a file."""
    found = read_tagged(path, Reading())
    assert found is not None
    assert found.tags is not None
    return Tagged(found.words[:count], found.tags[:count], found.documents[:count])


def features(words: list[str]) -> list[list[str]]:
    """The features of each word and of two at either side."""
    own = [features_of(word) for word in words]
    return [
        [f"{o}:{name}" for o in range(-2, 3) if 0 <= i + o < len(words) for name in own[i + o]]
        for i in range(len(words))
    ]


def peer(train: Tagged, test: Tagged, folder: Path) -> float:
    """The share of words that CRFsuite tags right."""
    import pycrfsuite  # pyright: ignore[reportMissingImports]

    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({"c1": 0.0, "c2": 0.1, "max_iterations": 60, "feature.possible_transitions": True})
    for words, tags in zip(train.words, train.tags or [], strict=True):
        trainer.append(features(words), tags)
    trainer.train(str(folder / "crf"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "crf"))
    pairs = [
        (a, b)
        for words, tags in zip(test.words, test.tags or [], strict=True)
        for a, b in zip(tagger.tag(features(words)), tags, strict=True)
    ]
    return sum(a == b for a, b in pairs) / len(pairs)


def main() -> None:
    """Compare on one pair of files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs=2)
    for name, default in (("train", 1000), ("test", 500), ("steps", 600)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    parts = [first(path, count) for path, count in zip(args.files, (args.train, args.test), strict=True)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [folder / "train.conll", folder / "test.conll"]
        for path, part in zip(paths, parts, strict=True):
            path.write_text(write_tagged(part.words, part.tags or [], [], [], ".conll"))
        began = time.process_time()
        run = wonderland.fit(paths[0], test=paths[1], out=folder / "run", threads=1, steps=args.steps)
        print(f"default: {run.metrics}, {time.process_time() - began:.0f} CPU seconds")
        began = time.process_time()
        print(f"CRFsuite: accuracy {peer(*parts, folder):.4f}, {time.process_time() - began:.0f} CPU seconds")


if __name__ == "__main__":
    main()
