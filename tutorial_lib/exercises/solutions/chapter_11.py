"""Solutions of chapter 11, and edits of them that must be caught or must pass."""

import torch
from torch import nn

from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.masks import causal_mask
from tutorial_lib.position import SinusoidalEncoding


def word_mask(words, padding):
    """Hide the future and the padding: a mask (batch, query, key)."""
    spoken = words != padding  # (batch, key)
    return causal_mask(words.shape[1]) & spoken[:, None, :]


def smoothed_losses(logits, targets, smoothing):
    """Return the smoothed cross-entropy of each word: (token,), in nats."""
    log_p = logits.log_softmax(dim=-1)  # (token, vocab)
    # A share of smoothing / vocab for each word, summed, is smoothing times the mean.
    true = -log_p.gather(1, targets[:, None]).squeeze(1)  # (token,)
    return (1 - smoothing) * true - smoothing * log_p.mean(dim=-1)


class MendedDecoder(nn.Module):
    """A decoder that is the same in training, in evaluation and word by word."""

    def __init__(self, vocab, d_model, max_tokens):
        super().__init__()
        self.words = nn.Embedding(vocab, d_model)
        self.position = SinusoidalEncoding(d_model, max_tokens)
        self.attention = MultiHeadAttention(d_model, 2)
        self.vocab = nn.Linear(d_model, vocab)

    def forward(self, words, before=None):
        """Return the logits after each word, and all tokens so far."""
        written = 0 if before is None else before.shape[1]
        # First bug: the new words stand behind those that are there.
        x = self.position(self.words(words), start=written)
        keys = x if before is None else torch.cat((before, x), dim=1)
        # Second bug: the mask belongs to every mode, and has a column for every key.
        mask = causal_mask(keys.shape[1])[written:]  # (query, key)
        return self.vocab(x + self.attention(x, keys, keys, mask)), keys


def count_parameters(source_vocab, target_vocab, d_model, d_ff, blocks):
    """Count the parameters of a tied Transformer with post-norm."""
    attention = 4 * (d_model**2 + d_model)
    network = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder_block = attention + network + 2 * norm
    decoder_block = 2 * attention + network + 3 * norm
    tables = (source_vocab + target_vocab) * d_model + target_vocab
    return tables + blocks * (encoder_block + decoder_block)


ANSWERS = {}
WRONG_ANSWERS = []

_BOTH = "causal_mask(words.shape[1]) & spoken[:, None, :]"
_CAUSAL = "causal_mask(words.shape[1])"
_TRUE = "(1 - smoothing) * true"
_MEAN = "- smoothing * log_p.mean(dim=-1)"
_MASK = "causal_mask(keys.shape[1])[written:]"
_FROM_X = """x = self.position(self.words(words), start=written)
        keys = x if before is None else torch.cat((before, x), dim=1)
        # Second bug: the mask belongs to every mode, and has a column for every key.
        mask = causal_mask(keys.shape[1])[written:]  # (query, key)
        return self.vocab(x + self.attention(x, keys, keys, mask)), keys"""
_ALL = """kept = self.words(words)
        kept = kept if before is None else torch.cat((before, kept), dim=1)
        keys = self.position(kept)
        x = keys[:, written:]
        mask = causal_mask(keys.shape[1])[written:]
        return self.vocab(x + self.attention(x, keys, keys, mask)), """
_BARE = _FROM_X, f"{_ALL}kept"
_TWICE = _FROM_X, f"{_ALL}keys"
MUTANTS = [
    ("word_mask", _BOTH, f"~({_BOTH})", "inverted"),
    (
        "word_mask",
        " & spoken[:, None, :]",
        ".expand(len(words), -1, -1)",
        "no-padding",
    ),
    (
        "word_mask",
        _BOTH,
        "spoken[:, None, :].expand(-1, words.shape[1], -1)",
        "no-causal",
    ),
    ("word_mask", " & spoken[:, None, :]", "", "no-padding"),
    ("word_mask", _BOTH, "spoken[:, None, :]", "no-causal"),
    ("word_mask", "[:, None, :]", "", "no-query-axis"),
    (
        "word_mask",
        _BOTH,
        f"{_BOTH} | torch.eye(words.shape[1]).bool()",
        "padding-sees-itself",
    ),
    ("word_mask", ") & spoken", ") | spoken", "or"),
    ("word_mask", _CAUSAL, f"{_CAUSAL}.tril(-1)", "itself-hidden"),
    ("word_mask", _CAUSAL, f"{_CAUSAL}.mT", "future-only"),
    ("word_mask", "spoken[:, None, :]", "spoken[:, :, None]", "queries-hidden"),
    (
        "word_mask",
        "spoken[:, None, :]",
        "spoken[:, None, :] & spoken[:, :, None]",
        "rows-too",
    ),
    ("word_mask", _BOTH, f"({_BOTH}).float()", "type"),
    ("word_mask", "words != padding", "words != 0", "always-zero"),
    (
        "word_mask",
        "words != padding",
        "torch.arange(words.shape[1]) < (words != padding).sum(dim=1)[:, None]",
        "padding-last",
    ),
    ("smoothed_losses", f"{_TRUE} {_MEAN}", "true", "not-smoothed"),
    (
        "smoothed_losses",
        _MEAN,
        "- smoothing * (log_p.sum(dim=-1) + true) / (log_p.shape[1] - 1)",
        "among-others",
    ),
    (
        "smoothed_losses",
        _MEAN,
        "- smoothing * (log_p.mean(dim=-1) + true / log_p.shape[-1])",
        "truth-left-out",
    ),
    ("smoothed_losses", _MEAN, "", "one-term"),
    (
        "smoothed_losses",
        f"{_TRUE} {_MEAN}",
        "-((1 - smoothing) * (-true).exp() + smoothing / log_p.shape[-1]).log()",
        "smoothed-prediction",
    ),
    ("smoothed_losses", ".squeeze(1)", "", "pairs"),
    ("smoothed_losses", _TRUE, "true", "truth-keeps-all"),
    ("smoothed_losses", "mean(dim=-1)", "sum(dim=-1)", "sum-for-mean"),
    (
        "smoothed_losses",
        f"{_TRUE} {_MEAN}",
        "smoothing * true - (1 - smoothing) * log_p.mean(dim=-1)",
        "swapped",
    ),
    (
        "smoothed_losses",
        f"{_TRUE} {_MEAN}",
        "smoothing * log_p.mean(dim=-1) - (1 - smoothing) * true",
        "sign",
    ),
    ("smoothed_losses", "logits.log_softmax(dim=-1)", "logits", "logits"),
    (
        "smoothed_losses",
        f"{_TRUE} {_MEAN}",
        f"({_TRUE} {_MEAN}).mean()",
        "averaged",
    ),
    (
        "smoothed_losses",
        "logits.log_softmax(dim=-1)",
        "logits.softmax(dim=-1).log()",
        "overflow",
    ),
    (
        "smoothed_losses",
        "logits.log_softmax(dim=-1)",
        "(logits.exp() / logits.exp().sum(dim=-1, keepdim=True)).log()",
        "overflow",
    ),
    ("smoothed_losses", "log_softmax(dim=-1)", "log_softmax(dim=0)", "wrong-axis"),
    (
        "smoothed_losses",
        "logits.log_softmax(dim=-1)",
        "logits.softmax(dim=-1).log2()",
        "log-base",
    ),
    ("smoothed_losses", _MEAN, "+ smoothing / log_p.shape[-1]", "constant"),
    ("smoothed_losses", _MEAN, "+ smoothing * log_p.mean(dim=-1)", "one-sign"),
    ("smoothed_losses", _MEAN, "- smoothing / 6 * log_p.mean(dim=-1)", "vocab-twice"),
    ("smoothed_losses", _TRUE, "(1 - smoothing + smoothing / 6) * true", "truth-twice"),
    ("smoothed_losses", f"{_TRUE} {_MEAN}", f"0.9 * true {_MEAN}", "value"),
    (
        "smoothed_losses",
        f"{_TRUE} {_MEAN}",
        "0.9 * true - 0.1 * log_p.mean(dim=-1)",
        "fixed",
    ),
    ("MendedDecoder", _MASK, f"{_MASK} if self.training else None", "sees-future"),
    ("MendedDecoder", _MASK, "None", "sees-future"),
    (
        "MendedDecoder",
        _MASK,
        "causal_mask(keys.shape[1]) if before is None else None",
        "portion-unmasked",
    ),
    ("MendedDecoder", ", start=written", "", "position"),
    ("MendedDecoder", "start=written", "start=max(written - 1, 0)", "one-too-early"),
    (
        "MendedDecoder",
        "start=written",
        "start=written + 1 if written else 0",
        "one-too-late",
    ),
    ("MendedDecoder", *_BARE, "bare-tokens"),
    ("MendedDecoder", *_TWICE, "encoded-twice"),
    ("MendedDecoder", "[written:]", "[: words.shape[1]]", "first-rows"),
    ("MendedDecoder", _MASK, "causal_mask(words.shape[1])", "mask-corner"),
    (
        "MendedDecoder",
        "self.attention(x, keys, keys, mask)",
        "self.attention(x, x, x, mask[:, written:])",
        "forgets",
    ),
    ("MendedDecoder", "keys, mask)), keys", "keys, mask)), x", "new-only"),
    (
        "count_parameters",
        "2 * attention + network + 3 * norm",
        "encoder_block",
        "like-the-encoder",
    ),
    (
        "count_parameters",
        "tables + blocks * (encoder_block + decoder_block)",
        "tables - target_vocab + blocks * (12 * d_model**2 + 4 * d_model * d_ff)",
        "weights-only",
    ),
    (
        "count_parameters",
        "2 * attention + network + 3",
        "attention + network + 3",
        "one-attention",
    ),
    (
        "count_parameters",
        "(source_vocab + target_vocab)",
        "(source_vocab + 2 * target_vocab)",
        "not-tied",
    ),
    ("count_parameters", " * d_model + target_vocab", " * d_model", "no-output-bias"),
    (
        "count_parameters",
        "4 * (d_model**2 + d_model)\n    network = 2 * d_model * d_ff + d_ff + d_model",
        "4 * d_model**2\n    network = 2 * d_model * d_ff",
        "no-biases",
    ),
    ("count_parameters", "(d_model**2 + d_model)", "d_model**2", "no-attention-biases"),
    ("count_parameters", "d_ff + d_ff + d_model", "d_ff", "no-network-biases"),
    ("count_parameters", "attention = 4", "attention = 3", "no-output-map"),
    ("count_parameters", "source_vocab + target_vocab", "target_vocab", "one-table"),
    ("count_parameters", "return tables", "return tables + 2 * norm", "last-norms"),
    ("count_parameters", "blocks * (", "1 * (", "one-block"),
    ("count_parameters", "norm = 2 * d_model", "norm = d_model", "half-norms"),
    ("count_parameters", "d_ff + d_ff + d_model", "d_ff + 2 * d_ff", "value"),
    ("count_parameters", "norm = 2 * d_model", "norm = 0", "no-norms"),
    ("count_parameters", "3 * norm", "2 * norm", "two-norms"),
    (
        "count_parameters",
        "(encoder_block + decoder_block)",
        "encoder_block",
        "no-decoder",
    ),
]

ACCEPT = [
    ("word_mask", _CAUSAL, "torch.ones(words.shape[1], words.shape[1]).tril().bool()"),
    ("word_mask", "spoken[:, None, :]", "spoken.unsqueeze(1)"),
    (
        "smoothed_losses",
        f"{_TRUE} {_MEAN}",
        "nn.functional.cross_entropy("
        "logits, targets, label_smoothing=smoothing, reduction='none')",
    ),
    ("MendedDecoder", _MASK, "causal_mask(keys.shape[1])[-words.shape[1] :]"),
    ("MendedDecoder", "keys, mask)", "keys, mask.expand(len(x), -1, -1))"),
]
