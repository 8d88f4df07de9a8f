"""Known wrong answers of exercise 9.5, word by word, as (code, message, answer).

This module does not know the right answers.
"""

import torch


def _steps(encode, *, query=None, keys="all"):
    """Return an answer that reads word by word with one thing wrong."""

    def answer(x, encoding, attention):
        seen, outputs = [], []
        for t, word in enumerate(x.split(1, dim=1)):
            seen.append(encode(encoding, word, t))
            known = torch.cat(seen if keys == "all" else seen[-1:], dim=1)
            outputs.append(attention(query(word) if query else seen[-1], known, known))
        return torch.cat(outputs, dim=1)

    return answer


def _all_seen(x, encoding, attention):
    y = encoding(x)
    return attention(y, y, y)


def _read_plain_words(x, encoding, attention):
    outputs = []
    for t, word in enumerate(x.split(1, dim=1)):
        known = x[:, : t + 1]
        outputs.append(attention(encoding(word, start=t), known, known))
    return torch.cat(outputs, dim=1)


def _asks_from_zero(x, encoding, attention):
    outputs = []
    for t, word in enumerate(x.split(1, dim=1)):
        known = encoding(x[:, : t + 1])
        outputs.append(attention(encoding(word), known, known))
    return torch.cat(outputs, dim=1)


def _passes_itself_over(x, encoding, attention):
    y, outputs = encoding(x), []
    for t in range(x.shape[1]):
        known = y[:, : max(t, 1)]
        outputs.append(attention(y[:, t : t + 1], known, known))
    return torch.cat(outputs, dim=1)


def _right(encoding, word, t):
    return encoding(word, start=t)


STEPS = [
    (
        "position-zero",
        "Every word is encoded as the first one: an encoding that gets a single word "
        "takes it to stand at position 0. Tell it where it stands: `start=`.",
        _steps(lambda encoding, word, t: encoding(word)),
    ),
    (
        "one-late",
        "Every word stands one place too far: the first one has the position 0.",
        _steps(lambda encoding, word, t: encoding(word, start=t + 1)),
    ),
    (
        "not-encoded",
        "The words go into the attention without positions.",
        _steps(lambda encoding, word, t: word),
    ),
    (
        "query-not-encoded",
        "Keys and values are encoded, the query is not: it needs its position too.",
        _steps(_right, query=lambda word: word),
    ),
    (
        "query-at-zero",
        "Keys and values stand at their places, but every query is encoded as the "
        "first word: an encoding that gets a single word needs `start=`.",
        _asks_from_zero,
    ),
    (
        "not-itself",
        "A word does not look at itself in your code: its own key and value belong to "
        "those it looks at.",
        _passes_itself_over,
    ),
    (
        "keys-not-encoded",
        "The query is encoded, keys and values are not: keep the encoded words.",
        _read_plain_words,
    ),
    (
        "forgets",
        "Each word looks at itself only. Keep the encoded words, and give all "
        "of them as keys and values.",
        _steps(_right, keys="last"),
    ),
    (
        "sees-future",
        "Each word looks at the later ones too. Word t may see words 0 to t.",
        _all_seen,
    ),
]
