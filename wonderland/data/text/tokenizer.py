"""Tokenizer: text to ids and back, saved as the standard tokenizer.json of the `tokenizers` package."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, nearest, read_bytes, sha256, write_json, write_text
from wonderland.core.limits import limit
from wonderland.data.text import vocabulary
from wonderland.data.text.pieces import pieces_of
from wonderland.data.text.tokenizer_json import ROLES, TRANSFORMERS_NAMES, check_json, parse, read_roles
from wonderland.data.text.writer import Writer

SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")


class Tokenizer:
    """Splits text into tokens, and joins tokens to text.

    Kinds: "characters"; "words" (spaces are not kept); "bpe" and "unigram", over bytes, so that nothing is unknown and
    every text is decoded exactly; "wordpiece" (BERT's). The names of special tokens say what they are for: `<pad>`,
    `<unk>`, `<s>`, `</s>`, `<mask>`, `<sep>`, or those of BERT, GPT-2 and LLaMA.

    Learning gives the same tokens each time for characters, words and bpe; the trainers of the other two break ties at random.
    A special token that is spelt out in a text is read as plain text, unless `specials=True`.

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
        self._named_roles = roles or {}
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
            texts: the training texts. For files, see `read_documents`.
            kind: "characters", "words", "bpe", "wordpiece" or "unigram".
            vocab: how many tokens at most, the special ones included.
            specials: special tokens; they get the first ids, in this order.
            lowercase: convert all text to lower case.
        """
        if kind not in vocabulary.TOKEN_KINDS:
            raise WonderlandError(
                f"There are no tokens of kind {kind!r}.{nearest(str(kind), vocabulary.TOKEN_KINDS)} Known are {', '.join(vocabulary.TOKEN_KINDS)}."
            )
        specials = list(specials)
        if len(set(specials)) < len(specials) or not all(isinstance(name, str) and name for name in specials):
            raise WonderlandError("Special tokens are different names, none of them empty.")
        if kind in ("words", "wordpiece") and "<unk>" not in specials:
            raise WonderlandError(
                f"Tokens of kind {kind!r} need '<unk>' among the special tokens, for words that are not in the vocabulary."
            )
        least = len(specials) + (vocabulary.BYTES if kind in ("bpe", "unigram") else 1)
        most = limit("tokenizer_tokens")
        if isinstance(vocab, bool) or not isinstance(vocab, int) or not least <= vocab <= most:
            why = f" ({vocabulary.BYTES} bytes and the special tokens)" if kind in ("bpe", "unigram") else ""
            raise WonderlandError(
                f"A vocabulary of kind {kind!r} has from {least:,} to {most:,} tokens{why}, not {vocab!r}."
            )
        vocabulary.tokenizers_package()
        counted = _CountedTexts([texts] if isinstance(texts, str) else texts)
        try:
            with native("The tokenizer could not be trained"):
                inner = vocabulary.learn_vocabulary(kind, counted, vocab, specials, lowercase)
        except WonderlandError as error:
            if counted.letters or error.__cause__ is None:
                raise
            inner = None
        if not counted.letters or inner is None:
            raise WonderlandError("There is no text to learn tokens from: every text is empty.")
        # Writing and reading rounds the probabilities of a unigram vocabulary: do it now, so that a saved tokenizer is equal.
        return cls.from_json(inner.to_str())

    @classmethod
    def from_json(cls, text: str | dict[str, Any], *, roles: dict[str, str] | None = None) -> "Tokenizer":
        """A tokenizer from its standard JSON."""
        base = vocabulary.tokenizers_package()
        text = text if isinstance(text, str) else json.dumps(text)
        text = check_json(text)
        with native("This is not the JSON of a tokenizer"):
            return cls(base.Tokenizer.from_str(text), roles)

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a tokenizer.json, or a folder that holds one; a tokenizer_config.json beside it names its special tokens."""
        path = Path(path)
        path = path / "tokenizer.json" if path.is_dir() else path
        data = read_bytes(path, "tokenizer_bytes")
        try:
            return cls.from_json(data.decode("utf-8"), roles=read_roles(path))
        except UnicodeDecodeError as error:
            raise WonderlandError(f"{path} is not a tokenizer: it is not UTF-8 text.") from error
        except WonderlandError as error:
            raise WonderlandError(f"{path} cannot be used: {error}") from error

    def save(self, path: str | Path) -> None:
        """Write the standard tokenizer.json; into a folder also tokenizer_config.json, for `transformers`."""
        path = Path(path)
        folder = path.is_dir()
        write_text(path / "tokenizer.json" if folder else path, self.to_json())
        if folder:
            named = {
                TRANSFORMERS_NAMES[role]: self.token(i) for role in ROLES if (i := getattr(self, role)) is not None
            }
            write_json(path / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **named})

    def to_json(self) -> str:
        """The standard JSON, as text."""
        return self._inner.to_str()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the JSON; equal tokenizers have equal digests."""
        return sha256(self.to_json().encode())

    # Text to numbers and back.

    def encode(self, text: str, *, add_special_tokens: bool = False, specials: bool = False) -> list[int]:
        """The ids of a text.

        Args:
            add_special_tokens: add the tokens that the tokenizer puts around a text ([CLS] and [SEP] for BERT).
            specials: recognise special tokens that are spelt out in the text.
        """
        return self.encode_batch([text], add_special_tokens=add_special_tokens, specials=specials)[0]

    def encode_batch(
        self, texts: Sequence[str], *, add_special_tokens: bool = False, specials: bool = False
    ) -> list[list[int]]:
        """The ids of several texts, on several cores."""
        for text in texts:
            if not isinstance(text, str):
                raise WonderlandError(f"A tokenizer reads text, and {text!r:.60} is of type {type(text).__name__}.")
        if self._id_of_code_point is not None and not specials and not add_special_tokens:
            return [ids.tolist() for ids in self.arrays(texts)]
        inner = self._with_specials if specials else self._inner
        with native("The text could not be cut into tokens", texts):
            return [encoding.ids for encoding in _encode_batch_of(inner)(texts, add_special_tokens=add_special_tokens)]

    def arrays(self, texts: Sequence[str]) -> list[np.ndarray]:
        """`encode_batch` as arrays; single characters are looked up by numpy, with the same result."""
        table = self._id_of_code_point
        if table is None:
            with native("The text could not be cut into tokens", texts):
                encodings = _encode_batch_of(self._inner)(texts, add_special_tokens=False)
            return [np.asarray(encoding.ids, np.int64) for encoding in encodings]
        arrays = [table[vocabulary.code_points(text)] for text in texts]
        if self.unknown is None:
            arrays = [ids[ids >= 0] for ids in arrays]
        return arrays

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; special tokens write nothing."""
        ids = [int(i) for i in ids]
        for i in ids:
            self.check(i)
        with native("The tokens could not be written as text"):
            text = self._inner.decode(ids, skip_special_tokens=True)
        return text.removeprefix("##") if self.kind == "wordpiece" else text

    def writer(self) -> Writer:
        """An incremental decoder: `push(id)` returns the text that is complete so far, never half a character."""
        return Writer(self.pieces(), strip=self._pieces[1])

    def pieces(self) -> list[bytes]:
        """The bytes that each id writes; special tokens write none."""
        return self._pieces[0]

    # Tokens by name.

    def token(self, i: int) -> str:
        """The name of an id."""
        self.check(i)
        name = self._inner.id_to_token(int(i))
        return "" if name is None else name

    def id(self, token: str) -> int:
        """The id of a token by its name."""
        number = self._inner.token_to_id(token)
        if number is None:
            raise WonderlandError(f"There is no token {token!r} in this vocabulary of {self.vocab:,}.")
        return number

    def check(self, i: int) -> None:
        """Refuse an id that is not in the vocabulary."""
        if not 0 <= i < self.vocab:
            raise WonderlandError(f"Token {i} is not in the vocabulary: tokens are 0 to {self.vocab - 1}.")

    @property
    def pad(self) -> int | None:
        """The id of the padding token."""
        return self._role("pad")

    @property
    def unknown(self) -> int | None:
        """The id of the token for unknown words."""
        return self._role("unknown")

    @property
    def begin(self) -> int | None:
        """The id of the token that begins a text."""
        return self._role("begin")

    @property
    def end(self) -> int | None:
        """The id of the token that ends a text."""
        return self._role("end")

    @property
    def mask(self) -> int | None:
        """The id of the mask token."""
        return self._role("mask")

    @property
    def separator(self) -> int | None:
        """The id of the token between two texts."""
        return self._role("separator")

    @property
    def roles(self) -> dict[str, str]:
        """Special tokens whose role was given explicitly; the roles of all others follow from their names."""
        return dict(self._named_roles)

    @cached_property
    def document_begin(self) -> int | None:
        """The id that documents begin with: the begin token, or the end token if there is none."""
        return self.end if self.begin is None else self.begin

    @cached_property
    def surrounding_tokens(self) -> tuple[list[int], list[int]]:
        """The special tokens that `add_special_tokens` puts before and after a text ([CLS] and [SEP] for BERT)."""
        inner, whole = self.encode("a"), self.encode("a", add_special_tokens=True)
        for at in range(len(whole) - len(inner) + 1):
            if inner and whole[at : at + len(inner)] == inner:
                return whole[:at], whole[at + len(inner) :]
        return [], []

    @cached_property
    def specials(self) -> list[int]:
        """The ids of special tokens, in order."""
        added = self._json.get("added_tokens", [])
        return sorted(int(entry["id"]) for entry in added if entry.get("special"))

    @cached_property
    def kind(self) -> str:
        """Which kind of tokens these are; "other" for files that `train` does not produce."""
        model, cut = self._json["model"], self._json.get("pre_tokenizer")
        kind, by_bytes = model.get("type"), isinstance(cut, dict) and cut.get("type") == "ByteLevel"
        if self._is_characters:
            return "characters"
        names = {"WordLevel": "words", "WordPiece": "wordpiece"}
        if kind in ("BPE", "Unigram"):
            return kind.lower() if by_bytes else "other"
        return names.get(str(kind), "other")

    def __repr__(self) -> str:
        return f"<Tokenizer {self.kind}, {self.vocab:,} tokens>"

    # Computed once.

    def _role(self, role: str) -> int | None:
        names = (self._named_roles[role],) if role in self._named_roles else ROLES[role]
        for name in names:
            token = self._inner.token_to_id(name)
            if token is not None:
                return token
        return None

    @cached_property
    def _json(self) -> dict[str, Any]:
        return parse(self.to_json())

    @cached_property
    def _with_specials(self) -> Any:
        """A tokenizer that reads special tokens that are spelt out in a text; it shares the vocabulary, which takes the memory."""
        base, inner = vocabulary.tokenizers_package(), self._inner
        with native("This tokenizer cannot be copied"):
            copy = base.Tokenizer(inner.model)
            for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
                if getattr(inner, part) is not None:
                    setattr(copy, part, getattr(inner, part))
            added = inner.get_added_tokens_decoder()
            copy.add_tokens([added[i] for i in sorted(added)])
            if {i: str(token) for i, token in copy.get_added_tokens_decoder().items()} != {i: str(token) for i, token in added.items()}:  # fmt: skip
                copy = base.Tokenizer.from_str(self.to_json())
        copy.encode_special_tokens = False
        return copy

    @cached_property
    def _pieces(self) -> tuple[list[bytes], bool]:
        tokens = [self._inner.id_to_token(i) for i in range(self.vocab)]
        return pieces_of(self._json, tokens, set(self.specials))

    @cached_property
    def _is_characters(self) -> bool:
        """Whether every character is one token, without normalisation or merges."""
        saved, model = self._json, self._json["model"]
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
    def _id_of_code_point(self) -> np.ndarray | None:
        """The id of each code point, for single characters."""
        if not self._is_characters:
            return None
        unknown = self._json["model"].get("unk_token")
        table = np.full(vocabulary.CODE_POINTS, -1 if unknown is None else self._inner.token_to_id(unknown), np.int64)
        for token, i in self._json["model"]["vocab"].items():
            if len(token) == 1:
                table[ord(token)] = i
        return table


def repeatable(kind: str | None) -> str | None:
    """The kind, if learning it again gives the same vocabulary, which a resumed run needs; otherwise an error.

    >>> repeatable("bpe")
    'bpe'
    """
    if kind in ("wordpiece", "unigram"):
        raise WonderlandError(
            f"Tokens of kind {kind!r} are learned a little differently each time, so a run could not be repeated: "
            "take characters, words or bpe."
        )
    return kind


class _CountedTexts:
    """An iterable of texts that counts their characters."""

    def __init__(self, texts: Iterable[str]):
        self.texts, self.letters = texts, 0

    def __iter__(self):
        for text in self.texts:
            self.letters += len(text) if isinstance(text, str) else 0
            yield text


def _encode_batch_of(inner: Any) -> Any:
    """The package's method for several texts; the fast one, where it exists, computes no offsets."""
    return getattr(inner, "encode_batch_fast", inner.encode_batch)


@contextmanager
def native(says: str, texts: Sequence[str] = ()) -> Iterator[None]:
    """Around calls of the package, which raises plain Exception, and panics with an error that is none: both become a sentence."""
    try:
        yield
    except WonderlandError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        for text in texts:
            vocabulary.code_points(text)
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise WonderlandError(f"{says} ({reason}).") from error
