"""Masks: which query may attend to which key.

A mask is a boolean tensor and True means "may attend", as in
``torch.nn.functional.scaled_dot_product_attention``. Rows are queries, columns are
keys. Masks combine with ``&``.

``padding_mask`` looks at the lengths, to refuse those that do not fit. So a model that
calls it runs on numbers alone: not on the meta device, nor under ``torch.export``.

This module knows nothing of scores, weights or models.
"""

import torch


def causal_mask(num_tokens, *, device=None):
    """Let each token attend to itself and to what came before it.

    Returns a boolean mask (token, token), True on and below the diagonal:
    Vaswani et al. (2017), section 3.2.3.
    """
    return torch.ones(num_tokens, num_tokens, dtype=torch.bool, device=device).tril()


def padding_mask(lengths, num_keys):
    """Let every query attend to the first ``lengths[b]`` keys of its sequence.

    ``lengths`` holds one whole number per sequence of the batch, each from 0 to
    ``num_keys``, the padded length. Returns a boolean mask (batch, 1, key). Raises
    ValueError for a length outside that range, for what is no whole number, and for
    lengths of more than one axis.
    """
    lengths = torch.as_tensor(lengths)
    if lengths.ndim != 1:
        raise ValueError(
            "lengths must be one list, a number for each sequence, got the shape "
            f"{tuple(lengths.shape)}"
        )
    if lengths.numel():
        whole = not lengths.is_floating_point() and lengths.dtype != torch.bool
        if not (whole and 0 <= lengths.min() <= lengths.max() <= num_keys):
            raise ValueError(
                f"lengths must be whole numbers from 0 to num_keys={num_keys}, got "
                f"{lengths.tolist()}"
            )
    return torch.arange(num_keys, device=lengths.device) < lengths[:, None, None]


def window_mask(num_tokens, radius, *, device=None):
    """Let each token attend to itself and to ``radius`` neighbors on either side.

    Returns a boolean mask (token, token), True where query and key are at most
    ``radius`` positions apart: the restricted self-attention of Vaswani et al.
    (2017), section 4. Raises ValueError for a radius below 0.
    """
    if radius < 0:
        raise ValueError(f"radius must be 0 or more, got {radius}")
    position = torch.arange(num_tokens, device=device)
    return (position[:, None] - position).abs() <= radius
