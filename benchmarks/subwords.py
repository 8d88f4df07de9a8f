"""Subword tokens for the translation benchmark, learned by ``tokenizers``."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tutorial_lib.data import BOS, EOS, PAD
from tutorial_lib.data.text import SPECIAL_TOKENS


class Subwords:
    """The subword tokens that a model knows; stands in for a ``Vocabulary``.

    Byte-pair encoding, Sennrich et al. (2016), over bytes as in GPT-2: every text can
    be encoded. ``vocab_size`` counts the special tokens and the 256 bytes.
    """

    def __init__(self, sentences, *, vocab_size):
        split = pre_tokenizers.ByteLevel(add_prefix_space=True)
        self._tokenizer = Tokenizer(models.BPE())
        self._tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), split]
        )
        self._tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=[*SPECIAL_TOKENS],
            initial_alphabet=split.alphabet(),
            show_progress=False,
        )
        self._tokenizer.train_from_iterator(map(" ".join, sentences), trainer)

    def __len__(self):
        return self._tokenizer.get_vocab_size()

    def encode(self, words):
        rows = self._tokenizer.encode_batch([*words], add_special_tokens=False)
        return [index for row in rows for index in row.ids]

    def decode(self, ids):
        end = ids.index(EOS) if EOS in ids else len(ids)
        kept = [i for i in ids[:end] if i not in (PAD, BOS)]
        return self._tokenizer.decode(kept, skip_special_tokens=False).split()
