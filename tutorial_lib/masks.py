"""Masks: which query may attend to which key.

A mask is a boolean tensor and True means "may attend", as in
``torch.nn.functional.scaled_dot_product_attention``. Rows are queries, columns are
keys. Masks combine with ``&``.
"""

import torch


def causal_mask(num_tokens, device=None):
    """Let each token attend to itself and to those before it: (query, key)."""
    return torch.ones(num_tokens, num_tokens, dtype=torch.bool, device=device).tril()


def padding_mask(lengths, num_keys):
    """Let every query attend to the first ``lengths[b]`` keys of its sequence."""
    lengths = torch.as_tensor(lengths)  # (batch,)
    position = torch.arange(num_keys, device=lengths.device)  # (key,)
    return position < lengths[:, None, None]  # (batch, 1, key)


def window_mask(num_tokens, radius, device=None):
    """Let each token attend to itself and ``radius`` neighbors on either side.

    Vaswani et al. (2017), section 4: restricted self-attention, (query, key). Raises
    ValueError for a radius below 0.
    """
    if not radius >= 0:
        raise ValueError(f"radius must be 0 or more, got {radius}")
    position = torch.arange(num_tokens, device=device)
    return (position[:, None] - position).abs() <= radius
