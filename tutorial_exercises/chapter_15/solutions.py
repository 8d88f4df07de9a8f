"""Solutions of chapter 15."""

import torch
import torch.nn.functional as F


def which_digit(tokens, colors):
    """Return how much of each digit is read (batch, 10), and the map (batch, patch)."""
    digits, painted = tokens[..., :10], tokens[..., 10:]
    queries = 8 * F.one_hot(colors, 4).float()  # (batch, color)
    scores = (painted @ queries[..., None])[..., 0]  # (batch, patch)
    weights = scores.softmax(dim=-1)
    return (weights[:, None] @ digits)[:, 0], weights


def input_times_gradient(model, images, side):
    """Return for each patch the size of its share in the largest logit."""
    images = images.clone().requires_grad_()
    best = model(images).amax(dim=-1)  # (batch,)
    (gradient,) = torch.autograd.grad(best.sum(), images)
    shares = (gradient * images.detach()).sum(dim=1, keepdim=True)  # over channels
    sums = F.avg_pool2d(shares, side) * side**2
    return sums.flatten(1).abs()


def honest_head(hits):
    """Return the head that is best on the first half, and its share on the second."""
    first, second = hits.double().chunk(2)
    best = first.mean(dim=0).argmax().item()
    return best, second[:, best].mean().item()


def painted_curve(model, images, labels, weights, count):
    """Return the shares right after 0, 1, …, count painted patches: (1 + count,)."""
    rows = round(weights.shape[-1] ** 0.5)
    order = weights.argsort(dim=-1, descending=True)
    shares = []
    for painted in range(count + 1):
        kept = torch.ones_like(weights)
        kept = kept.scatter(-1, order[:, :painted], 0.0)  # (batch, patch)
        kept = kept.view(-1, 1, rows, rows)
        seen = images * F.interpolate(kept, size=images.shape[2:])
        shares.append((model(seen).argmax(dim=-1) == labels).double().mean())
    return torch.stack(shares)
