"""N-gram models: predict the next word from the last few words, by counting.

What language models were before neural networks, and what a GPT has to beat.

This module knows sentences of words: no tensors, no token ids.
"""

import math
from collections import Counter, defaultdict

EOS = "<eos>"  # stands before a sentence, and ends it


class NGram:
    """Predict each word from the ``n - 1`` words before it, by their counts.

    ``sentences`` are sequences of words. The counts are smoothed by interpolation with
    the model of one word less, which gets the more weight, the more different words
    followed; the last of these gives all words the same probability. Method C of
    Witten and Bell (1991).
    """

    def __init__(self, sentences, n):
        self.n = n
        self.shorter = NGram(sentences, n - 1) if n > 1 else None
        self.words = {EOS}.union(*sentences)
        self.counts = defaultdict(Counter)  # the words that followed each context
        for sentence in sentences:
            for context, word in self._pairs(sentence):
                self.counts[context][word] += 1

    def _pairs(self, sentence):
        """Yield each word of a sentence, its end included, behind its context."""
        words = [*[EOS] * (self.n - 1), *sentence, EOS]
        for i in range(self.n - 1, len(words)):
            yield tuple(words[i - self.n + 1 : i]), words[i]

    def probability(self, context, word):
        """Return the probability of ``word`` after ``context``, n - 1 words."""
        shorter = 1 / len(self.words)
        if self.shorter:
            shorter = self.shorter.probability(context[1:], word)
        counts = self.counts.get(context)
        if not counts:
            return shorter
        kinds = len(counts)
        return (counts[word] + kinds * shorter) / (counts.total() + kinds)

    def log_prob(self, sentence):
        """Return ln p of a sentence, its end included."""
        return sum(math.log(self.probability(*pair)) for pair in self._pairs(sentence))
