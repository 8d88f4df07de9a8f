"""Subwords: pieces of words, from which every text can be put together.

``tokenizers`` learns the pieces; this module knows no corpus and no model.
"""

from tutorial_lib.data.counts import check_counts
from tutorial_lib.data.text import BOS, EOS, PAD, SPECIAL

BYTES = 256  # every text is made of them, so that no piece is ever unknown


class Subwords:
    """The pieces that a model knows, each with an index: byte-pair encoding.

    ``sentences`` are word sequences, those of the training part only. From the 256
    bytes on, the most frequent pair of neighbors within a word is joined, until there
    are ``size`` pieces (fewer if nothing is left to join), the four signs of
    ``SPECIAL`` counted: Sennrich et al. (2016), over bytes as in GPT-2. Stands in for a
    ``Vocabulary``. Raises ValueError for a size that has no room for the bytes.
    """

    def __init__(self, sentences, *, size):
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        check_counts(size=size)
        least = BYTES + len(SPECIAL)
        if size < least:
            raise ValueError(
                f"size must be at least {least}, for the {BYTES} bytes and "
                f"{', '.join(SPECIAL)}: got {size}"
            )
        split = pre_tokenizers.ByteLevel(add_prefix_space=True)
        self._pieces = Tokenizer(models.BPE())
        self._pieces.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), split]
        )
        self._pieces.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=[*SPECIAL],
            initial_alphabet=split.alphabet(),
            show_progress=False,
        )
        self._pieces.train_from_iterator(map(" ".join, sentences), trainer)

    def __len__(self):
        return self._pieces.get_vocab_size()

    def encode(self, words):
        """Return the indices of the words' pieces as a list."""
        rows = self._pieces.encode_batch([*words], add_special_tokens=False)
        return [index for row in rows for index in row.ids]

    def decode(self, indices):
        """Return the words up to the first ``<eos>``, without ``<bos>`` and ``<pad>``.

        ``indices`` is a sequence of whole numbers or a tensor (token,).
        """
        indices = [int(index) for index in indices]
        end = indices.index(EOS) if EOS in indices else len(indices)
        kept = [index for index in indices[:end] if index not in (PAD, BOS)]
        return self._pieces.decode(kept, skip_special_tokens=False).split()
