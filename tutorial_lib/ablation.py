"""Ablation and attribution: what a model's answer depends on, asked in six ways.

Rollout uses the recorded maps alone. Gradient times input, counterfactuals and
occlusion ask the model for its answer again; `ablate_head` and `attention_knockout`
take something away while it runs: they need no maps. An answer is a function of a batch
of inputs (batch, token, ...) that returns one number for each text, such as a logit
difference.

This module knows no model and draws nothing.
"""

import inspect
from collections.abc import Mapping
from contextlib import contextmanager

import torch


def rollout(maps):
    """Follow the weights through all layers, as if attention were all there is.

    ``maps`` are the layers' weights (batch, head, token, token), the first layer first,
    in a list or in the dictionary that `record_attention` makes.
    In each layer, half of a token is what it attends to, on average over the heads, and
    half stays what it was. Returns (batch, token, token): how much of each query comes
    from each input. Raises ValueError for maps that are not square or not equally
    large. Abnar and Zuidema (2020), section 3.
    """
    maps = list(maps.values() if isinstance(maps, Mapping) else maps)
    shapes = {(weights.ndim, len(weights), *weights.shape[-2:]) for weights in maps}
    if len(shapes) != 1 or any(n != 4 or i != j for n, _, i, j in shapes):
        raise ValueError(
            "rollout needs maps of self-attention, all (batch, head, token, token), "
            f"got {[tuple(weights.shape) for weights in maps]}"
        )
    total = torch.eye(maps[0].shape[-1], dtype=maps[0].dtype, device=maps[0].device)
    for weights in maps:
        mean = weights.mean(dim=1)  # (batch, token, token)
        total = (mean @ total + total) / 2
    return total


def gradient_times_input(answer, inputs, layer):
    """Multiply the vectors that ``layer`` makes of tokens by the answer's gradient.

    ``layer`` is the module whose output (batch, token, d_model) stands for the tokens,
    mostly an embedding, and ``answer(inputs)`` runs the model once. Returns the sum
    over d_model, (batch, token): to first order, how much less the answer would be if
    the vector were 0. Raises ValueError if the layer did not run exactly once.
    Simonyan et al. (2014), section 3, times the input.
    """
    kept = []
    handle = layer.register_forward_hook(lambda *run: kept.append(run[2]))
    try:
        with torch.enable_grad():
            total = answer(inputs).sum()
    finally:
        handle.remove()
    if len(kept) != 1:
        raise ValueError(f"the layer ran {len(kept)} times, and once is needed")
    (gradient,) = torch.autograd.grad(total, kept)
    return (gradient * kept[0]).sum(dim=-1).detach()


@torch.no_grad()
def counterfactual(answer, inputs, others):
    """Replace one token after the other by that of ``others``, and ask again.

    ``others`` broadcasts to ``inputs`` (batch, token, ...). Returns (batch, token): how
    much the answer drops when this one token is replaced.
    """
    others = others.expand_as(inputs)
    before, drops = answer(inputs), []
    for token in range(inputs.shape[1]):
        changed = inputs.clone()
        changed[:, token] = others[:, token]
        drops.append(before - answer(changed))
    return torch.stack(drops, dim=1)


def occlusion(answer, inputs, blank):
    """Cover one token after the other with ``blank``, a number or a token's numbers.

    Returns (batch, token): how much the answer drops when this token is covered.
    Zeiler and Fergus (2014), section 4.2.
    """
    return counterfactual(answer, inputs, torch.as_tensor(blank, dtype=inputs.dtype))


@contextmanager
def ablate_head(projection, head, num_heads):
    """Zero-ablate a head within a ``with`` block: it adds nothing to the output.

    ``projection`` is the linear layer behind the ``num_heads`` side by side: ``W_O``
    here, ``out_proj`` in torch. Raises ValueError for a head that is not there, and for
    a number of heads that the layer cannot have.
    """
    columns = projection.weight.shape[1]
    if num_heads < 1 or columns % num_heads:
        raise ValueError(f"{columns} columns are not those of {num_heads} heads")
    width = columns // num_heads
    if head not in range(num_heads):
        raise ValueError(f"head {head} does not exist: choose 0 to {num_heads - 1}")
    own = slice(head * width, (head + 1) * width)
    kept = projection.weight.detach()[:, own].clone()
    try:
        projection.weight.data[:, own] = 0
        yield
    finally:
        projection.weight.data[:, own] = kept


@contextmanager
def attention_knockout(layers, forbidden):
    """Forbid attention within a ``with`` block, from some queries to some keys.

    ``layers`` are ``MultiHeadAttention`` modules. ``forbidden`` is True where a query
    may not attend: (batch, query, key), for all heads, or (batch, head, query, key).
    What was masked before stays masked. Geva et al. (2023).
    """

    def forbid(layer, inputs, options):
        call = inspect.signature(layer.forward).bind(*inputs, **options)
        mask, allowed = call.arguments.get("mask"), ~forbidden
        if mask is not None and mask.ndim != allowed.ndim:
            mask, allowed = (x[:, None] if x.ndim == 3 else x for x in (mask, allowed))
        call.arguments["mask"] = allowed if mask is None else allowed & mask
        return call.args, call.kwargs

    hooks = [
        layer.register_forward_pre_hook(forbid, with_kwargs=True) for layer in layers
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
