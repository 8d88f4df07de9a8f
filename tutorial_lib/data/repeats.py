"""Texts that repeat themselves: names of letters in any order, and random tokens."""

import torch


def make_text(num_tokens, *, vocab_size=20, num_names=5, name_length=3):
    """Return a text (token,) that mentions names again and again, in any order.

    No letter is in two names. Tokens are the numbers of letters.
    """
    shuffled = torch.randperm(vocab_size)
    names = shuffled[: num_names * name_length].view(num_names, name_length)
    mentions = torch.randint(num_names, (num_tokens // name_length + 1,))
    return names[mentions].flatten()[:num_tokens]


def is_predictable(tokens, name_length=3):
    """Say for each token of a text (token,) whether the next one can be predicted.

    That is so where a name comes again, up to its last letter, after which any name may
    follow.
    """
    seen = set()
    predictable = []
    for position, letter in enumerate(tokens.tolist()):
        ends_name = position % name_length == name_length - 1
        predictable.append(letter in seen and not ends_name)
        seen.add(letter)
    return torch.tensor(predictable)


def repeated_tokens(num_texts, length, seed):
    """Return texts (text, token): the first token, random ones, and the same again."""
    generator = torch.Generator().manual_seed(seed)
    size = (num_texts, length)
    random_tokens = torch.randint(1000, 40_000, size, generator=generator)
    first = torch.zeros(num_texts, 1, dtype=torch.long)  # <|endoftext|>
    return torch.cat([first, random_tokens, random_tokens], dim=1)
