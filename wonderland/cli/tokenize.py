"""tokenize: train a tokenizer on text, and write the text as a memory-mapped file of token ids."""

import argparse
from pathlib import Path


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of tokenize."""
    verb.add_argument("source", help="a text file, a folder of text files, JSON lines or CSV, also gzipped")
    verb.add_argument("--out", metavar="DIR", required=True, help="folder for tokenizer.json and tokens.safetensors")
    verb.add_argument(
        "--kind",
        choices=["characters", "words", "bpe", "wordpiece", "unigram"],
        help="kind of tokens (default bpe, over bytes)",
    )
    verb.add_argument("--vocab", type=int, help="largest size of the vocabulary (default 8000)")
    verb.add_argument("--tokenizer", metavar="FILE", help="use this tokenizer.json instead of training one")
    verb.add_argument("--lowercase", action="store_true", help="convert all text to lower case")
    verb.add_argument("--column", metavar="NAME", help="the field or column with the text (default: by its name)")
    verb.add_argument("--lines", action="store_true", help="each line of a text file is a document")
    verb.add_argument("--sample", type=int, default=128, metavar="MB", help="train on this much text (default 128)")
    verb.add_argument("--strict", action="store_true", help="stop at bytes that are not UTF-8")
    verb.add_argument("--quiet", action="store_true", help="print errors only")


def run(args: argparse.Namespace) -> int:
    """Train a tokenizer, write the tokens, and print what was written."""
    from wonderland.cli import show
    from wonderland.core import WonderlandError, disk_trouble
    from wonderland.data.text import Tokenizer, read_documents, write_tokens

    if args.sample < 1:
        raise WonderlandError(f"sample is a number of megabytes, at least 1, not {args.sample}.")
    if args.tokenizer:
        for name in ("kind", "vocab", "lowercase"):
            if getattr(args, name):
                raise WonderlandError(
                    f"--{name} is for tokens that are to be learned, and --tokenizer names those of a file."
                )
    documents = read_documents(args.source, column=args.column, lines=args.lines, strict=args.strict)
    folder = Path(args.out)
    if args.tokenizer:
        tokenizer = Tokenizer.load(args.tokenizer)
    else:
        skip = max(1, -(-documents.size // (args.sample << 20)))
        with show.byte_progress("learning tokens", documents.size // skip, args.quiet) as progress:
            tokenizer = Tokenizer.train(
                _every_nth(documents.texts(), skip, progress),
                kind=args.kind or "bpe",
                vocab=8000 if args.vocab is None else args.vocab,
                lowercase=args.lowercase,
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_trouble(error, folder) from error
    with show.byte_progress("writing tokens", documents.size, args.quiet) as progress:
        tokens = write_tokens(documents, tokenizer, folder / "tokens.safetensors", progress=progress)
    tokenizer.save(folder)
    if not args.quiet:
        show.print_findings(documents.findings)
        size = int(tokens.bytes[-1])
        print(
            f"{len(tokens):,} tokens from {size:,} bytes of text ({size / len(tokens):.2f} bytes a token), "
            f"{show.counted(len(tokens.documents) - 1, 'document')}, vocabulary {tokens.vocab:,}"
        )
        show.say(f"Written: {folder / 'tokenizer.json'} and {folder / 'tokens.safetensors'}")
    return 0


def _every_nth(texts, skip: int, progress):
    """Every `skip`-th text; `progress` is called with the characters so far."""
    characters = 0
    for i, text in enumerate(texts):
        if i % skip == 0:
            characters += len(text)
            progress(characters)
            yield text
