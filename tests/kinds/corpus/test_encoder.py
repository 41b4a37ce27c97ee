"""What stands before a text that a language model reads."""

from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, processors

from wonderland.data.text.tokenizer import Tokenizer
from wonderland.kinds.corpus.encoder import CorpusEncoder


def framing() -> Tokenizer:
    """A tokenizer that puts <s> before every text, as LLaMA's does."""
    words = {"<s>": 0, "</s>": 1, "a": 2, "b": 3}
    found = Backend(models.WordLevel(words, unk_token="b"))
    found.pre_tokenizer = pre_tokenizers.Whitespace()
    found.add_special_tokens(["<s>", "</s>"])
    found.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return Tokenizer.from_json(found.to_str(), roles={"begin": "<s>", "end": "</s>"})


def test_tokens_before_a_text_are_put_before_prompts():
    assert CorpusEncoder(framing(), 8, many=False).frame == [0]


def test_documents_begin_as_they_were_written_to_files():
    assert CorpusEncoder(framing(), 8, many=True).frame == [0]


def test_own_tokenizers_put_nothing_before_one_long_text():
    tokenizer = Tokenizer.train(["a b a b"], kind="characters")
    assert CorpusEncoder(tokenizer, 8, many=False).frame == []
    assert CorpusEncoder(tokenizer, 8, many=True).frame == [tokenizer.begin]
