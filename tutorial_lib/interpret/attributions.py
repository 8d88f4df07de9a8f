"""Attributions: which tokens an answer depends on, asked in four ways.

An answer is a function of a batch of inputs (batch, token, ...) that returns one number
for each text, such as a logit difference. Rollout needs the recorded maps alone.
"""

from collections.abc import Mapping

import torch


def rollout(maps):
    """Follow the weights through all layers, as if attention were all there is.

    ``maps`` are the layers' weights (batch, head, token, token), the first layer first,
    in a list or in the dictionary that `record_attention` makes. In each layer, half of
    a token is what it attends to, on average over the heads, and half stays what it
    was. Returns (batch, token, token): how much of each query comes from each input.
    Raises ValueError for maps that are not square or not equally large.
    Abnar and Zuidema (2020), section 3.
    """
    if isinstance(maps, Mapping):
        maps = maps.values()
    maps = [torch.as_tensor(weights) for weights in maps]
    shapes = [tuple(weights.shape) for weights in maps]
    sizes = {(shape[0], shape[-1]) for shape in shapes}
    is_square = all(len(shape) == 4 and shape[2] == shape[3] for shape in shapes)
    if len(sizes) != 1 or not is_square:
        raise ValueError(
            "rollout needs maps of self-attention, all (batch, head, token, token), "
            f"got {shapes}"
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
    the vector were 0. Raises ValueError if the layer did not run exactly once, or
    returned more than one tensor. Simonyan et al. (2014), section 3, times the input.
    """
    vectors = []

    def keep(module, inputs, output):
        if not torch.is_tensor(output):
            raise ValueError(
                f"{type(layer).__name__} returns a {type(output).__name__}: give a "
                "layer that returns one tensor (batch, token, d_model)"
            )
        vectors.append(output.detach().requires_grad_())
        return vectors[-1]

    with layer.register_forward_hook(keep), torch.enable_grad():
        total = answer(inputs).sum()
    if len(vectors) != 1:
        raise ValueError(f"the layer ran {len(vectors)} times, and once is needed")
    if not total.requires_grad:
        raise ValueError("the answer has no gradient: leave out inference_mode()")
    (gradient,) = torch.autograd.grad(total, vectors)
    return (gradient * vectors[0]).sum(dim=-1).detach()


@torch.no_grad()
def counterfactual(answer, inputs, others):
    """Replace one token after the other by that of ``others``, and ask again.

    ``others`` broadcasts to ``inputs`` (batch, token, ...). Returns (batch, token): how
    much the answer drops when this one token is replaced. Raises ValueError for
    fractions in place of whole numbers, such as token ids, and unless the answer is a
    number for each text.
    """
    if not torch.can_cast(others.dtype, inputs.dtype):
        raise ValueError(f"the inputs are {inputs.dtype}, the others {others.dtype}")
    others = others.to(inputs).expand_as(inputs)
    before = answer(inputs)
    if before.shape != inputs.shape[:1]:
        raise ValueError(
            f"the answer must be one number for each text, ({len(inputs)},), got "
            f"{tuple(before.shape)}"
        )
    drops = []
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
    return counterfactual(answer, inputs, torch.as_tensor(blank))
