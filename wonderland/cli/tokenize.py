"""tokenize: learn tokens from text and write the text as a memory-mapped file of numbers."""

import argparse
from pathlib import Path


def options(verb: argparse.ArgumentParser) -> None:
    """What can be said to tokenize."""
    verb.add_argument("source", help="a text file, a folder of text files, JSON lines or CSV, also gzipped")
    verb.add_argument("--out", metavar="DIR", required=True, help="folder for tokenizer.json and tokens.safetensors")
    verb.add_argument(
        "--kind",
        choices=["characters", "words", "bpe", "wordpiece", "unigram"],
        help="kind of tokens (default bpe, over bytes)",
    )
    verb.add_argument("--vocab", type=int, help="how many tokens at most (default 8000)")
    verb.add_argument("--tokenizer", metavar="FILE", help="use this tokenizer.json instead of learning one")
    verb.add_argument("--lowercase", action="store_true", help="read everything in small letters")
    verb.add_argument("--column", metavar="NAME", help="the field or column with the text (default: found by its name)")
    verb.add_argument("--lines", action="store_true", help="each line of a text file is a document")
    verb.add_argument("--sample", type=int, default=128, metavar="MB", help="learn from this much text (default 128)")
    verb.add_argument("--strict", action="store_true", help="stop at bytes that are not UTF-8")
    verb.add_argument("--quiet", action="store_true", help="say only what went wrong")


def run(found: argparse.Namespace) -> int:
    """Learn, write, and say what was written."""
    from wonderland.cli import show
    from wonderland.core import WonderlandError, disk_trouble
    from wonderland.data.text import Tokenizer, read_documents, write_tokens

    if found.sample < 1:
        raise WonderlandError(f"sample is a number of megabytes of at least 1, not {found.sample}.")
    if found.tokenizer:
        for name in ("kind", "vocab", "lowercase"):
            if getattr(found, name):
                raise WonderlandError(
                    f"--{name} is for tokens that are to be learned, and --tokenizer names those of a file."
                )
    documents = read_documents(found.source, column=found.column, lines=found.lines, strict=found.strict)
    folder = Path(found.out)
    if found.tokenizer:
        tokenizer = Tokenizer.load(found.tokenizer)
    else:
        skip = max(1, -(-documents.size // (found.sample << 20)))
        with show.working("learning tokens", documents.size // skip, found.quiet) as told:
            tokenizer = Tokenizer.train(
                _some(documents.texts(), skip, told),
                kind=found.kind or "bpe",
                vocab=8000 if found.vocab is None else found.vocab,
                lowercase=found.lowercase,
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_trouble(error, folder) from error
    with show.working("writing tokens", documents.size, found.quiet) as told:
        made = write_tokens(documents, tokenizer, folder / "tokens.safetensors", told=told)
    tokenizer.save(folder)
    if not found.quiet:
        show.noticed(documents.findings)
        size = int(made.bytes[-1])
        print(
            f"{len(made):,} tokens from {size:,} bytes of text ({size / len(made):.2f} bytes a token), "
            f"{show.counted(len(made.documents) - 1, 'document')}, vocabulary {made.vocab:,}"
        )
        print(f"Written: {folder / 'tokenizer.json'} and {folder / 'tokens.safetensors'}")
    return 0


def _some(texts, skip: int, told):
    """Every `skip`-th piece, counted."""
    read = 0
    for i, text in enumerate(texts):
        if i % skip == 0:
            read += len(text)
            told(read)
            yield text
