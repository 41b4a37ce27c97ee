"""Tokenizer: text to numbers and back, in the standard tokenizer.json that the `tokenizers` package reads and writes."""

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wonderland.core import MIB, WonderlandError, nearest, read_bytes, sha256, write_json, write_text
from wonderland.data.text import kinds
from wonderland.data.text.pieces import pieces_of
from wonderland.data.text.pieces import read_json as parse
from wonderland.data.text.writer import Writer

LIMIT = 64 * MIB
LARGEST = 1 << 20
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")
ROLES: dict[str, tuple[str, ...]] = {
    "pad": ("<pad>", "[PAD]", "<|pad|>", "<blank>"),
    "unknown": ("<unk>", "[UNK]", "<|unk|>"),
    "begin": ("<s>", "<bos>", "[BOS]", "[CLS]", "<cls>", "<|begin_of_text|>", "<|startoftext|>", "<|begin|>"),
    "end": ("</s>", "<eos>", "[EOS]", "<|endoftext|>", "<|end_of_text|>", "<|end|>"),
    "mask": ("<mask>", "[MASK]", "<|mask|>"),
    "separator": ("<sep>", "[SEP]", "<|sep|>", "</s>"),
}
_THEIRS = {"pad": "pad_token", "unknown": "unk_token", "begin": "bos_token", "end": "eos_token", "mask": "mask_token",
           "separator": "sep_token"}  # fmt: skip


class Tokenizer:
    """Cuts text into tokens and puts tokens together again.

    Kinds: "characters"; "words" (spaces are not kept); "bpe" and "unigram", over bytes, so that nothing is unknown and
    every text comes back to the letter; "wordpiece" (BERT's). The names of special tokens say what they are for: `<pad>`,
    `<unk>`, `<s>`, `</s>`, `<mask>`, `<sep>`, or those of BERT, GPT-2 and LLaMA.

    Learning gives the same tokens each time for characters, words and bpe; the trainers of the other two break ties by chance.
    A special token that is spelt out in a text is text: it never becomes the token, unless `specials=True` asks for it.

    Book: D2L 9.2, 15.6; Alice 8.2.2.

    >>> tokenizer = Tokenizer.train(["to be or not to be"], kind="characters")
    >>> tokenizer.vocab, tokenizer.decode(tokenizer.encode("not to be"))
    (11, 'not to be')
    """

    def __init__(self, inner: Any, roles: dict[str, str] | None = None):
        self._inner = inner
        inner.no_truncation()
        inner.no_padding()
        inner.encode_special_tokens = True
        self._named = roles or {}
        self.vocab: int = inner.get_vocab_size(with_added_tokens=True)
        if not self.vocab:
            raise WonderlandError("This tokenizer has no tokens at all.")

    # Making, saving, loading.

    @classmethod
    def train(
        cls,
        texts: Iterable[str] | str,
        *,
        kind: str = "bpe",
        vocab: int = 8000,
        specials: Sequence[str] = SPECIALS,
        lowercase: bool = False,
    ) -> "Tokenizer":
        """Learn a vocabulary from texts (any iterable of strings; a string alone is one text).

        Args:
            texts: what to learn from. For files, see `read_documents`.
            kind: "characters", "words", "bpe", "wordpiece" or "unigram".
            vocab: how many tokens at most, the special ones included.
            specials: special tokens; they get the first ids, in this order.
            lowercase: read everything in small letters.
        """
        if kind not in kinds.KINDS:
            raise WonderlandError(
                f"There are no tokens of kind {kind!r}.{nearest(str(kind), kinds.KINDS)} Known are {', '.join(kinds.KINDS)}."
            )
        specials = list(specials)
        if len(set(specials)) < len(specials) or not all(isinstance(name, str) and name for name in specials):
            raise WonderlandError("Special tokens are different names, none of them empty.")
        if kind in ("words", "wordpiece") and "<unk>" not in specials:
            raise WonderlandError(
                f"Tokens of kind {kind!r} need '<unk>' among the special tokens, for what they never saw."
            )
        least = len(specials) + (kinds.BYTES if kind in ("bpe", "unigram") else 1)
        if isinstance(vocab, bool) or not isinstance(vocab, int) or not least <= vocab <= LARGEST:
            why = f" ({kinds.BYTES} bytes and the special tokens)" if kind in ("bpe", "unigram") else ""
            raise WonderlandError(
                f"A vocabulary of kind {kind!r} has from {least:,} to {LARGEST:,} tokens{why}, not {vocab!r}."
            )
        some = _Counted([texts] if isinstance(texts, str) else texts)
        try:
            inner = kinds.learn(kind, some, vocab, specials, lowercase)
        except WonderlandError:
            raise
        except Exception as error:  # the package raises plain Exception for whatever goes wrong in it
            if some.letters:
                raise WonderlandError(f"The tokenizer could not be trained ({_line(error)}).") from error
            inner = None
        if not some.letters or inner is None:
            raise WonderlandError("There is no text to learn tokens from: every text is empty.")
        # A vocabulary with probabilities is a little different once it was written and read: so it is, from the start.
        return cls.from_json(inner.to_str())

    @classmethod
    def from_json(cls, text: str | dict[str, Any], *, roles: dict[str, str] | None = None) -> "Tokenizer":
        """A tokenizer from its standard JSON."""
        base = kinds.package()
        text = text if isinstance(text, str) else json.dumps(text)
        _check_form(text)
        try:
            return cls(base.Tokenizer.from_str(text), roles)
        except WonderlandError:
            raise
        except Exception as error:  # the package raises plain Exception
            raise WonderlandError(f"This is not the JSON of a tokenizer ({_line(error)}).") from error

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a tokenizer.json, or a folder that holds one; a tokenizer_config.json beside it names its special tokens."""
        path = Path(path)
        path = path / "tokenizer.json" if path.is_dir() else path
        data = read_bytes(path, LIMIT)
        try:
            return cls.from_json(data.decode("utf-8"), roles=_roles_beside(path))
        except UnicodeDecodeError as error:
            raise WonderlandError(f"{path} is not a tokenizer: it is not UTF-8 text.") from error
        except WonderlandError as error:
            raise WonderlandError(f"{path} cannot be used: {error}") from error

    def save(self, path: str | Path) -> None:
        """Write the standard tokenizer.json; into a folder also tokenizer_config.json, as `transformers` likes it."""
        path = Path(path)
        folder = path.is_dir()
        write_text(path / "tokenizer.json" if folder else path, self.to_json())
        if folder:
            named = {_THEIRS[role]: self.token(i) for role in ROLES if (i := getattr(self, role)) is not None}
            write_json(path / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **named})

    def to_json(self) -> str:
        """The standard JSON, as text."""
        return self._inner.to_str()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the JSON: two tokenizers are the same when this is."""
        return sha256(self.to_json().encode())

    # Text to numbers and back.

    def encode(self, text: str, *, framed: bool = False, specials: bool = False) -> list[int]:
        """The ids of a text.

        Args:
            framed: with the tokens that the tokenizer itself puts around a text ([CLS] and [SEP] for BERT).
            specials: read special tokens that are spelt out in the text as those tokens.
        """
        return self.encode_batch([text], framed=framed, specials=specials)[0]

    def encode_batch(self, texts: Sequence[str], *, framed: bool = False, specials: bool = False) -> list[list[int]]:
        """The ids of several texts, on several cores."""
        for text in texts:
            if not isinstance(text, str):
                raise WonderlandError(f"A tokenizer reads text, and {text!r:.60} is of type {type(text).__name__}.")
        if self._table is not None and not specials and not framed:
            return [ids.tolist() for ids in self.arrays(texts)]
        inner = self._reading if specials else self._inner
        try:
            return [found.ids for found in _fast(inner)(texts, add_special_tokens=framed)]
        except Exception as error:  # the package raises plain Exception
            raise _unreadable(error, texts) from error

    def arrays(self, texts: Sequence[str]) -> list[np.ndarray]:
        """`encode_batch` as arrays; single characters are looked up by numpy, with the same result."""
        table = self._table
        if table is None:
            try:
                found = _fast(self._inner)(texts, add_special_tokens=False)
            except Exception as error:
                raise _unreadable(error, texts) from error
            return [np.asarray(one.ids, np.int64) for one in found]
        made = [table[kinds.code_points(text)] for text in texts]
        if self.unknown is None:
            made = [ids[ids >= 0] for ids in made]
        return made

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; special tokens write nothing."""
        ids = [int(i) for i in ids]
        for i in ids:
            self.check(i)
        text = self._inner.decode(ids, skip_special_tokens=True)
        return text.removeprefix("##") if self.kind == "wordpiece" else text

    def writer(self) -> Writer:
        """An object whose `push(id)` gives text as tokens come, never half a character."""
        return Writer(self.pieces(), strip=self._pieces[1])

    def pieces(self) -> list[bytes]:
        """The bytes that each id writes; special tokens write none."""
        return self._pieces[0]

    # Tokens by name.

    def token(self, i: int) -> str:
        """The name of an id."""
        self.check(i)
        found = self._inner.id_to_token(int(i))
        return "" if found is None else found

    def id(self, token: str) -> int:
        """The id of a token by its name."""
        found = self._inner.token_to_id(token)
        if found is None:
            raise WonderlandError(f"There is no token {token!r} in this vocabulary of {self.vocab:,}.")
        return found

    def check(self, i: int) -> None:
        """Say that an id is not in the vocabulary."""
        if not 0 <= i < self.vocab:
            raise WonderlandError(f"Token {i} is not in the vocabulary: tokens are 0 to {self.vocab - 1}.")

    @property
    def pad(self) -> int | None:
        """The id that fills up rows."""
        return self._role("pad")

    @property
    def unknown(self) -> int | None:
        """The id of what the vocabulary lacks."""
        return self._role("unknown")

    @property
    def begin(self) -> int | None:
        """The id that begins a text."""
        return self._role("begin")

    @property
    def end(self) -> int | None:
        """The id that ends a text."""
        return self._role("end")

    @property
    def mask(self) -> int | None:
        """The id that hides a token to be guessed."""
        return self._role("mask")

    @property
    def separator(self) -> int | None:
        """The id between two texts."""
        return self._role("separator")

    @property
    def roles(self) -> dict[str, str]:
        """The special tokens that were named by their role, beside those that their names tell."""
        return dict(self._named)

    @cached_property
    def opening(self) -> int | None:
        """The token that documents open with: the begin token, or the end token where there is none."""
        return self.end if self.begin is None else self.begin

    @cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        """The tokens that the tokenizer itself puts before and after a text ([CLS] and [SEP] for BERT)."""
        inner, whole = self.encode("a"), self.encode("a", framed=True)
        for at in range(len(whole) - len(inner) + 1):
            if inner and whole[at : at + len(inner)] == inner:
                return whole[:at], whole[at + len(inner) :]
        return [], []

    @cached_property
    def specials(self) -> list[int]:
        """The ids of special tokens, in order."""
        added = self._saved.get("added_tokens", [])
        return sorted(int(entry["id"]) for entry in added if entry.get("special"))

    @cached_property
    def kind(self) -> str:
        """Which kind of tokens these are, "other" where the file is not one of ours."""
        model, cut = self._saved["model"], self._saved.get("pre_tokenizer")
        kind, by_bytes = model.get("type"), isinstance(cut, dict) and cut.get("type") == "ByteLevel"
        if self._is_characters:
            return "characters"
        names = {"WordLevel": "words", "WordPiece": "wordpiece"}
        if kind in ("BPE", "Unigram"):
            return kind.lower() if by_bytes else "other"
        return names.get(str(kind), "other")

    def __repr__(self) -> str:
        return f"<Tokenizer {self.kind}, {self.vocab:,} tokens>"

    # Looked up once.

    def _role(self, role: str) -> int | None:
        names = (self._named[role],) if role in self._named else ROLES[role]
        for name in names:
            found = self._inner.token_to_id(name)
            if found is not None:
                return found
        return None

    @cached_property
    def _saved(self) -> dict[str, Any]:
        return parse(self.to_json())

    @cached_property
    def _reading(self) -> Any:
        """A twin that reads special tokens in a text."""
        twin = kinds.package().Tokenizer.from_str(self.to_json())
        twin.encode_special_tokens = False
        return twin

    @cached_property
    def _pieces(self) -> tuple[list[bytes], bool]:
        tokens = [self._inner.id_to_token(i) for i in range(self.vocab)]
        return pieces_of(self._saved, tokens, set(self.specials))

    @cached_property
    def _is_characters(self) -> bool:
        """Whether each character is looked up by itself, and nothing else happens to a text."""
        saved, model = self._saved, self._saved["model"]
        if model.get("type") != "BPE":
            return False
        plain = all(saved.get(name) is None for name in ("normalizer", "pre_tokenizer", "post_processor"))
        alone = all(
            len(token) == 1 or self._inner.token_to_id(token) in self.specials for token in model.get("vocab", {})
        )
        odd = any(model.get(name) for name in ("merges", "byte_fallback", "dropout", "fuse_unk", "ignore_merges",
                                               "continuing_subword_prefix", "end_of_word_suffix"))  # fmt: skip
        added = all(entry.get("special") for entry in saved.get("added_tokens", []))
        return plain and alone and added and not odd

    @cached_property
    def _table(self) -> np.ndarray | None:
        """The id of each code point, for single characters."""
        if not self._is_characters:
            return None
        unknown = self._saved["model"].get("unk_token")
        table = np.full(kinds.POINTS, -1 if unknown is None else self._inner.token_to_id(unknown), np.int64)
        for token, i in self._saved["model"]["vocab"].items():
            if len(token) == 1:
                table[ord(token)] = i
        return table


def checked_roles(value: Any) -> dict[str, str]:
    """Roles of special tokens from a file; None, where there were none, is none."""
    found = {} if value is None else value
    if not isinstance(found, dict) or not all(role in ROLES and isinstance(name, str) for role, name in found.items()):
        raise WonderlandError("The roles of special tokens in this file are damaged.")
    return found


def repeatable(kind: str | None) -> str | None:
    """A kind of tokens that is learned the same way each time; a run that is cut and goes on needs it.

    >>> repeatable("bpe")
    'bpe'
    """
    if kind in ("wordpiece", "unigram"):
        raise WonderlandError(
            f"Tokens of kind {kind!r} are learned a little differently each time, which rows of texts cannot be: "
            "take characters, words or bpe."
        )
    return kind


class _Counted:
    """Texts that are counted as they pass."""

    def __init__(self, texts: Iterable[str]):
        self.texts, self.letters = texts, 0

    def __iter__(self):
        for text in self.texts:
            self.letters += len(text) if isinstance(text, str) else 0
            yield text


def _fast(inner: Any) -> Any:
    """The package's call for many texts, without the offsets that nobody asks for."""
    return getattr(inner, "encode_batch_fast", inner.encode_batch)


def _check_form(text: str) -> None:
    """Bounds, and the parts that a tokenizer must have, before the package sees it."""
    if len(text) > LIMIT:
        raise WonderlandError(f"A tokenizer has at most {LIMIT // MIB} MiB.")
    try:
        saved = parse(text)
    except (ValueError, RecursionError) as error:
        raise WonderlandError("This is not the JSON of a tokenizer: it is damaged or not JSON at all.") from error
    model = saved.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocab, dict | list):
        raise WonderlandError("This is not the JSON of a tokenizer: it has no model with a vocabulary.")
    added = saved.get("added_tokens") or []
    if not isinstance(added, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("id"), int) for entry in added
    ):
        raise WonderlandError("This is not the JSON of a tokenizer: its added tokens are damaged.")
    ids = [*(vocab.values() if isinstance(vocab, dict) else range(len(vocab))), *(entry["id"] for entry in added)]
    if not all(isinstance(i, int) and 0 <= i < LARGEST for i in ids) or len(ids) > 2 * LARGEST:
        raise WonderlandError(f"This tokenizer has ids outside of 0 to {LARGEST - 1:,}: it is damaged.")
    if ids and max(ids) >= len(set(ids)):
        raise WonderlandError(
            f"This tokenizer has {len(set(ids)):,} tokens with ids up to {max(ids):,}: ids must have no gaps."
        )


def _roles_beside(path: Path) -> dict[str, str]:
    """Special tokens by role, from the tokenizer_config.json that `transformers` writes."""
    beside = path.with_name("tokenizer_config.json")
    if not beside.is_file():
        return {}
    try:
        found = json.loads(read_bytes(beside, 16 * MIB))
    except (ValueError, RecursionError) as error:
        raise WonderlandError(f"{beside} is not valid JSON: it is damaged.") from error
    roles = {}
    for role, name in _THEIRS.items():
        value = found.get(name) if isinstance(found, dict) else None
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            roles[role] = value
    return roles


def _unreadable(error: Exception, texts: Sequence[str]) -> WonderlandError:
    for text in texts:
        kinds.code_points(text)
    return WonderlandError(f"The text could not be cut into tokens ({_line(error)}).")


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
