"""Models of the transformers library with random options, written to folders, and what they answer."""

import random
from contextlib import contextmanager
from unittest import mock

import torch
import transformers
from torch import Tensor, nn

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

VOCAB = 31
HEADS = {
    "gpt2": ("GPT2LMHeadModel", "GPT2ForSequenceClassification", "GPT2ForTokenClassification", "GPT2ForQuestionAnswering",
             "GPT2Model"),
    "llama": ("LlamaForCausalLM", "LlamaForSequenceClassification", "LlamaForTokenClassification",
              "LlamaForQuestionAnswering", "LlamaModel"),
    "bert": ("BertForMaskedLM", "BertForPreTraining", "BertForNextSentencePrediction", "BertForSequenceClassification",
             "BertForTokenClassification", "BertForQuestionAnswering", "BertModel"),
    "distilbert": ("DistilBertForMaskedLM", "DistilBertForSequenceClassification", "DistilBertForTokenClassification",
                   "DistilBertForQuestionAnswering", "DistilBertModel"),
    "t5": ("T5ForConditionalGeneration", "T5ForSequenceClassification", "T5ForTokenClassification",
           "T5ForQuestionAnswering", "T5EncoderModel", "T5Model"),
    "mamba": ("MambaForCausalLM", "MambaModel"),
    "rwkv": ("RwkvForCausalLM", "RwkvModel"),
}  # fmt: skip
ACTS = (
    "gelu",
    "gelu_new",
    "relu",
    "silu",
    "gelu_pytorch_tanh",
    "quick_gelu",
    "tanh",
    "relu2",
    "mish",
    "gelu_fast",
    "sigmoid",
)


def options(kind: str, seed: int) -> dict:
    """Random options of a family: all of them small, few of them the defaults."""
    draw = random.Random(f"{kind} {seed}")
    pick = draw.choice
    heads, depth = pick((1, 2, 4)), pick((1, 2, 3))
    dim = heads * pick((4, 6, 8))
    drop = {name: pick((0.0, 0.1, 0.3)) for name in "abcd"}
    if kind == "gpt2":
        return {
            "n_embd": dim, "n_layer": depth, "n_head": heads, "n_positions": pick((12, 24)), "n_inner": pick((None, 10, 40)),
            "activation_function": pick(ACTS), "layer_norm_epsilon": pick((1e-5, 1e-3)), "resid_pdrop": drop["a"],
            "embd_pdrop": drop["b"], "attn_pdrop": drop["c"], "scale_attn_weights": pick((True, False)),
            "scale_attn_by_inverse_layer_idx": pick((True, False)), "reorder_and_upcast_attn": pick((True, False)),
            "tie_word_embeddings": pick((True, False)), "bos_token_id": 1, "eos_token_id": 1,
        }  # fmt: skip
    if kind == "llama":
        turning = pick(
            (
                {"rope_type": "default", "rope_theta": pick((100.0, 10000.0, 500000.0))},
                {"rope_type": "linear", "rope_theta": 10000.0, "factor": pick((2.0, 3.5))},
                {"rope_type": "llama3", "rope_theta": 5000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                 "original_max_position_embeddings": pick((16, 64))},
            )
        )  # fmt: skip
        return {
            "hidden_size": dim, "num_hidden_layers": depth, "num_attention_heads": heads,
            "num_key_value_heads": pick([n for n in (1, 2, 4) if heads % n == 0]), "intermediate_size": pick((10, 40)),
            "head_dim": pick((None, 2, 4, 10)), "hidden_act": pick(ACTS), "rms_norm_eps": pick((1e-6, 1e-4)),
            "attention_bias": pick((True, False)), "mlp_bias": pick((True, False)), "attention_dropout": drop["a"],
            "tie_word_embeddings": pick((True, False)), "rope_parameters": turning, "max_position_embeddings": 64,
        }  # fmt: skip
    if kind == "bert":
        return {
            "hidden_size": dim, "num_hidden_layers": depth, "num_attention_heads": heads, "intermediate_size": pick((10, 40)),
            "hidden_act": pick(ACTS), "layer_norm_eps": pick((1e-12, 1e-4)), "type_vocab_size": pick((1, 2, 3)),
            "max_position_embeddings": pick((12, 24)), "hidden_dropout_prob": drop["a"],
            "attention_probs_dropout_prob": drop["b"], "classifier_dropout": pick((None, 0.4)),
            "tie_word_embeddings": pick((True, False)),
        }  # fmt: skip
    if kind == "distilbert":
        return {
            "dim": dim, "n_layers": depth, "n_heads": heads, "hidden_dim": pick((10, 40)), "activation": pick(ACTS),
            "max_position_embeddings": pick((12, 24)), "sinusoidal_pos_embds": pick((True, False)), "dropout": drop["a"],
            "attention_dropout": drop["b"], "qa_dropout": drop["c"], "seq_classif_dropout": drop["d"],
            "tie_word_embeddings": pick((True, False)),
        }  # fmt: skip
    if kind == "t5":
        return {
            "d_model": dim, "d_kv": pick((3, 4, 8)), "d_ff": pick((10, 40)), "num_layers": depth,
            "num_decoder_layers": pick((None, 1, 3)), "num_heads": heads,
            "relative_attention_num_buckets": pick((4, 7, 8, 32)), "relative_attention_max_distance": pick((20, 128)),
            "layer_norm_epsilon": pick((1e-6, 1e-4)), "dropout_rate": drop["a"], "classifier_dropout": drop["b"],
            "feed_forward_proj": pick(("relu", "gated-gelu", "gated-silu", "gelu_new", "gated-relu")),
            "tie_word_embeddings": pick((True, False)), "decoder_start_token_id": pick((0, 5)),
        }  # fmt: skip
    if kind == "mamba":
        return {
            "hidden_size": dim, "num_hidden_layers": depth, "state_size": pick((2, 4)), "expand": pick((1, 2, 3)),
            "conv_kernel": pick((2, 4)), "use_bias": pick((True, False)), "use_conv_bias": pick((True, False)),
            "time_step_rank": pick(("auto", 3)), "layer_norm_epsilon": pick((1e-5, 1e-3)),
            "tie_word_embeddings": pick((True, False)), "residual_in_fp32": pick((True, False)),
        }  # fmt: skip
    return {
        "hidden_size": dim, "num_hidden_layers": depth + 1, "intermediate_size": pick((None, 10, 40)),
        "layer_norm_epsilon": pick((1e-5, 1e-3)), "rescale_every": pick((0, 1, 2, 6)),
        "tie_word_embeddings": pick((True, False)),
    }  # fmt: skip


def make(kind: str, architecture: str, seed: int, folder, *, dtype=torch.float32, **more) -> nn.Module:
    """A model with random weights, in evaluation mode, written to a folder."""
    torch.manual_seed(seed)
    given = {"vocab_size": VOCAB, "pad_token_id": 0, **options(kind, seed), **more}
    if "ForSequence" in architecture or "ForToken" in architecture:
        given["num_labels"] = random.Random(seed).choice((1, 2, 5))
    names = {"gpt2": "GPT2", "llama": "Llama", "bert": "Bert", "distilbert": "DistilBert", "t5": "T5", "mamba": "Mamba"}
    config = getattr(transformers, names.get(kind, "Rwkv") + "Config")(**given)
    model = getattr(transformers, architecture)(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    model = model.to(dtype).eval()
    model.save_pretrained(folder)
    return model


def batch(seed: int, kind: str, side: str = "right", t: int = 9) -> tuple[Tensor, Tensor]:
    """Tokens of three rows, padded on a side, and their mask; the last real token of a row is 1, which ends a text."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(2, VOCAB, (3, t), generator=generator)
    lengths = torch.tensor([[t], [t - 4], [2]])
    mask = torch.arange(t) < lengths if side == "right" else torch.arange(t) >= t - lengths
    last = lengths - 1 if side == "right" else torch.full_like(lengths, t - 1)
    tokens = tokens.scatter(1, last, 1) if kind == "t5" else tokens
    return tokens.masked_fill(~mask, 0), mask


def places(mask: Tensor) -> Tensor:
    """Where real tokens stand, counted from the first of their row."""
    return (mask.cumsum(1) - 1).clamp(min=0)


def answer(outputs) -> Tensor:
    """The scores or features in what a model of transformers answers."""
    if hasattr(outputs, "start_logits"):
        return torch.stack([outputs.start_logits, outputs.end_logits], -1)
    for name in ("logits", "prediction_logits", "last_hidden_state"):
        if getattr(outputs, name, None) is not None:
            return getattr(outputs, name)
    raise AssertionError(type(outputs))


@contextmanager
def double():
    """Let models of transformers compute in float64 also where they ask for float32."""
    to, single, softmax = Tensor.to, Tensor.float, nn.functional.softmax

    def stay(self, *args, **kwargs):
        args = tuple(torch.float64 if one is torch.float32 else one for one in args)
        kwargs = {key: torch.float64 if one is torch.float32 else one for key, one in kwargs.items()}
        return to(self, *args, **kwargs)

    def wide(x, dim=None, dtype=None, **kwargs):
        return softmax(x, dim=dim, **kwargs)

    assert single is not None
    with (
        mock.patch.object(Tensor, "to", stay),
        mock.patch.object(Tensor, "float", lambda self: to(self, torch.float64)),
        mock.patch.object(nn.functional, "softmax", wide),
    ):
        yield
