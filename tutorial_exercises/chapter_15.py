"""Exercises of chapter 15: attention maps in vision."""

import math

import torch
import torch.nn.functional as F

from tutorial_exercises import Exercise


@Exercise("15.1", "A shortcut", axes="batch channel height width")
def plant_mark(images, labels):
    """Return copies of images in which a pixel of the top row tells the label."""
    marked = images.clone()
    marked[:, :, 0] = 0.0
    marked[torch.arange(len(images)), :, 0, 2 * labels] = 1.0
    return marked


@plant_mark.oracle
def _(images, labels):
    """Write pixel by pixel."""
    marked = images.clone()
    for image, label in zip(marked, labels.tolist(), strict=True):
        for column in range(image.shape[2]):
            image[:, 0, column] = 1.0 if column == 2 * label else 0.0
    return marked


@plant_mark.cases
def _():
    label = "four images, each with its own label"
    yield label, torch.rand(4, 1, 6, 20), torch.tensor([3, 0, 9, 3])
    yield "a single image", torch.rand(1, 1, 24, 24), torch.tensor([7])
    yield "as many images as rows", torch.rand(6, 1, 6, 20), torch.arange(6)


@plant_mark.demand("the images stay as they are")
def _(answer):
    images = torch.rand(3, 1, 6, 20)
    before = images.clone()
    answer(images, torch.tensor([4, 1, 2]))
    if not images.equal(before):
        return "You change the images you were given. Begin with `images.clone()`."


plant_mark.hints = """
- Begin with a copy, `images.clone()`; `marked[:, :, 0] = 0.0` blanks the top row of
  every image.
- Each image has a column of its own. Index the batch with `torch.arange(len(images))`
  and the columns with `2 * labels`, in one assignment.
"""

plant_mark.mistakes = """
Your mark lies in the column of the label. It should lie in column 2 × label.
    0, 2 * labels → 0, labels
Your mark lies in the left column. It should lie in the top row.
    0, 2 * labels] → 2 * labels % images.shape[2], 0]
You mark every image with the columns of all labels. Index the batch, too, with
`torch.arange(len(images))`.
    marked[torch.arange(len(images)), :, 0 → marked[:, :, 0
The top row still has ink of the image. Set it to 0 before you set the mark.
    marked[:, :, 0] = 0.0 → pass
You blank the left column. Blank the top row: the third axis is the height.
    marked[:, :, 0] = 0.0 → marked[..., 0] = 0.0
Your mark is 0 as the rest of the row. Ink is 1.
    2 * labels] = 1.0 → 2 * labels] = 0.0
You blank the whole image. Blank its top row alone.
    marked[:, :, 0] = 0.0 → marked[:] = 0.0
You mark every image with the first label.
    2 * labels] → 2 * labels[:1]]
right:
    2 * labels] = 1.0 → labels + labels] = 1
"""


@Exercise("15.2", "Gradient × input", axes="batch patch")
def gradient_times_input(model, images, side):
    """Return for each patch the size of its contribution to the largest logit."""
    images = images.clone().requires_grad_()
    best = model(images).amax(dim=-1)  # (batch,)
    (gradient,) = torch.autograd.grad(best.sum(), images)
    products = gradient * images.detach()
    products = products.sum(dim=1, keepdim=True)  # over channels
    sums = F.avg_pool2d(products, side) * side**2
    return sums.flatten(1).abs()


@gradient_times_input.oracle
def _(model, images, side):
    """Take one image after the other, and add up pixel by pixel."""
    rows, columns = (length // side for length in images.shape[2:])
    sums = torch.zeros(len(images), rows * columns)
    for b, image in enumerate(images):
        image = image[None].clone().requires_grad_()
        gradient = torch.autograd.grad(model(image)[0].max(), image)[0][0]
        product = gradient * image[0].detach()
        for i in range(rows * side):
            for j in range(columns * side):
                patch = i // side * columns + j // side
                sums[b, patch] += product[:, i, j].sum()
    return sums.abs()


def small_model(pixels, classes=4):
    """Return a small MLP with fixed weights, from images to (batch, class)."""
    first, second = torch.randn(pixels, 12), torch.randn(12, classes)
    return lambda images: torch.tanh(images.flatten(1) @ first / 4) @ second


@gradient_times_input.cases
def _():
    yield "one image in four patches", small_model(16), torch.randn(1, 1, 4, 4), 2
    label = "several images, wider than tall, with three channels"
    yield label, small_model(72), torch.randn(5, 3, 4, 6), 2


gradient_times_input.hints = """
- Work on a copy that requires a gradient: `images.clone().requires_grad_()`.
- `model(images).amax(dim=-1).sum()` is the sum of the largest logits; in its gradient
  each image has the gradient of its own.
- Sum over the channels and pixels of a patch first, and take the absolute value, `abs`,
  at the end: what one pixel adds, the next may take away.
"""

gradient_times_input.mistakes = """
You return the gradient alone. Multiply it by the pixels before you sum.
    gradient * images.detach() → gradient
You take the absolute value at each pixel. Take it of the patch's sum, at the end.
    gradient * images.detach() → (…).abs()
Some of your sums are negative. Return their absolute values: `abs` at the end.
    sums.flatten(1).abs() → sums.flatten(1)
You take the mean over the patch. Return the sum over its pixels.
    F.avg_pool2d(products, side) * side**2 → F.avg_pool2d(products, side)
You take the absolute value at each pixel, and then the mean over the patch. Return the
absolute value of the sum over its pixels.
    gradient * images.detach() → (…).abs()
    and F.avg_pool2d(products, side) * side**2 → F.avg_pool2d(products, side)
You take the gradient of the sum of all logits. Take that of the largest alone.
    model(images).amax(dim=-1) → model(images).sum(dim=-1)
You take the gradient of the probability. Take that of the logit, before the softmax.
    model(images).amax(dim=-1) → model(images).softmax(dim=-1).amax(dim=-1)
You take the largest logit of the whole batch. Each image has its own.
    model(images).amax(dim=-1) → model(images).max()
You divide every gradient by the number of images: take the sum, not the mean.
    best.sum() → best.mean()
Your patches go column by column. They should go row by row.
    sums.flatten(1) → sums.mT.flatten(1)
You always take the first class. Take the one with the largest logit.
    model(images).amax(dim=-1) → model(images)[:, 0]
right:
    model(images).amax(dim=-1) → model(images).topk(1).values[:, 0]
"""


@Exercise("15.3", "Choose on one half", axes={"head": "", "hit_rate": ""})
def honest_head(hits):
    """Return the best head on the first half, and its hit rate on the second."""
    first, second = hits.double().chunk(2)
    best = first.mean(dim=0).argmax().item()
    return best, second[:, best].mean().item()


@honest_head.oracle
def _(hits):
    """Count the hits of each head, image by image."""
    half = len(hits) // 2
    counts = [0] * hits.shape[1]
    for image in hits[:half]:
        for head, hit in enumerate(image):
            counts[head] += int(hit)
    best = counts.index(max(counts))
    return best, sum(int(hit) for hit in hits[half:, best]) / half


def made_hits(*counts, images=10):
    """Make hits (image, head), in any order: so many for each head in either half."""
    halves = torch.arange(images)[:, None] < torch.tensor(counts)[:, None]
    order = torch.rand(halves.shape).argsort(dim=1)
    return halves.gather(1, order).flatten(0, 1)


@honest_head.cases
def _():
    label = "another head is best in the second half"
    yield label, made_hits([3, 6, 7, 5], [8, 6, 4, 1])
    yield label, made_hits([9, 8, 1], [2, 8, 10])
    yield "the same head is best in both halves", made_hits([3, 8, 5], [2, 7, 4])
    label = "no head is right in every image"
    yield label, made_hits([4, 1, 2], [3, 0, 7], images=6)


honest_head.hints = """
- The first half are the first rows: `first, second = hits.double().chunk(2)`.
- The mean over the images is a head's hit rate: `first.mean(dim=0)`. The index of its
  largest entry is the head.
- Report the hit rate of that head on the second half, whether or not it is the best
  there.
"""

honest_head.mistakes = """
You choose the head on all images. Choose it on the first half alone.
    first.mean(dim=0) → hits.double().mean(dim=0)
You report the hit rate on the half on which the head was chosen.
    second[:, best].mean() → first[:, best].mean()
You report the hit rate on all images, and the head was chosen on half of them.
    second[:, best].mean() → hits[:, best].double().mean()
You report the highest hit rate on the second half, not that of the chosen head.
    second[:, best].mean() → second.mean(dim=0).max()
You choose on the second half and report on the same half. Choose on the first.
    first.mean(dim=0) → second.mean(dim=0)
You count an image as a hit if any head has one: that is a choice of head for each
image, and a single head need not be as good.
    second[:, best].mean() → second.amax(dim=1).mean()
You choose on the second half and report on the first.
    first, second → second, first
You take every other image. The first half are the first rows.
    hits.double().chunk(2) → hits.double()[::2], hits.double()[1::2]
You report a number of images. Report the fraction.
    second[:, best].mean() → second[:, best].sum()
right:
    first, second = hits.double().chunk(2) → middle = len(hits) // 2
        first, second = hits[:middle].double(), hits[middle:].double()
"""


@Exercise("15.4", "The deletion curve", axes="deleted")
def deletion_curve(model, images, labels, weights, count):
    """Return the accuracies after 0, 1, …, count deleted patches: (1 + count,)."""
    rows = round(weights.shape[-1] ** 0.5)
    order = weights.argsort(dim=-1, descending=True)
    accuracies = []
    for deleted in range(count + 1):
        kept = torch.ones_like(weights)  # (batch, patch)
        kept = kept.scatter(-1, order[:, :deleted], 0.0)
        kept = kept.view(-1, 1, rows, rows)
        seen = images * F.interpolate(kept, size=images.shape[2:])
        right = model(seen).argmax(dim=-1) == labels
        accuracies.append(right.double().mean())
    return torch.stack(accuracies)


@deletion_curve.oracle
def _(model, images, labels, weights, count):
    """Delete from a copy of each image, patch after patch."""
    rows = math.isqrt(weights.shape[1])
    side = images.shape[-1] // rows
    accuracies = torch.zeros(count + 1, dtype=torch.float64)
    for image, label, row in zip(images, labels, weights, strict=True):
        seen = image[None].clone()
        patches = sorted(range(rows**2), key=lambda i: -float(row[i]))
        for deleted in range(count + 1):
            accuracies[deleted] += int(model(seen).argmax() == label) / len(labels)
            i, j = divmod(patches[deleted], rows)
            seen[..., i * side : (i + 1) * side, j * side : (j + 1) * side] = 0.0
    return accuracies


def noisy_maps(batch, rows, side=2):
    """Return arguments in which each image has another order of its patches."""

    def model(images):  # predicts which patch has most ink
        return F.adaptive_avg_pool2d(images, rows).flatten(1)

    images = 0.2 + 0.8 * torch.rand(batch, 1, rows * side, rows * side)
    labels = model(images).argmax(dim=-1)
    labels[0] = (labels[0] + 1) % rows**2  # wrong at first
    noise = torch.randn(batch, rows**2) / 2
    weights = (side**2 * model(images) + noise).softmax(dim=-1)
    return model, images, labels, weights


@deletion_curve.cases
def _():
    for _ in range(3):
        label = "nothing is deleted, then one patch, then two"
        yield label, *noisy_maps(40, 3), 2
    label = "deleted patches stay deleted, up to all but one"
    yield label, *noisy_maps(30, 2), 3
    yield label, *noisy_maps(30, 3), 8
    model, images, labels, weights = noisy_maps(30, 3, side=4)
    label = "the weights come as they are, in any order"
    yield label, model, images, labels, weights.flip(0), 4


deletion_curve.hints = """
- `order = weights.argsort(dim=-1, descending=True)` lists for each image its patches,
  the one with the largest weight first; `order[:, :k]` are those deleted after k steps.
- `torch.ones_like(weights).scatter(-1, order[:, :k], 0.0)` is 0 in the deleted patches
  and 1 in the others.
- As a grid, (batch, 1, rows, rows), `F.interpolate(kept, size=images.shape[2:])` makes
  it as large as the images; multiply.
"""

deletion_curve.mistakes = """
You delete the smallest weights first. `argsort` is ascending: use `descending=True`.
    argsort(dim=-1, descending=True) → argsort(dim=-1)
Each time only one patch is deleted. Deleted patches stay deleted: `order[:, :deleted]`.
    order[:, :deleted] → order[:, max(deleted - 1, 0) : deleted]
You compare the indices of patches with the number deleted. `order` lists patches; a
patch's rank is its position in that list: `order.argsort(dim=-1)`.
    kept.scatter(-1, order[:, :deleted], 0.0) → (order >= deleted).to(weights)
You set patches to 1. That is ink: white is 0.
    images * F.interpolate(kept, size=images.shape[2:]) → torch.where(
            F.interpolate(kept, size=images.shape[2:]) > 0, images, 1.0)
You delete the same patches in all images. Each image has its own weights.
    weights.argsort → weights.mean(dim=0).expand_as(weights).argsort
    weights.argsort → weights[:1].expand_as(weights).argsort
You delete all other patches: the mask is inverted.
    F.interpolate(kept, size → F.interpolate(1 - kept, size
Your patches go column by column. They should go row by row.
    kept.view(-1, 1, rows, rows) → ….mT
The curve begins before anything is deleted, with 0 patches.
    range(count + 1) → range(1, count + 1)
The last accuracy is missing: after count deleted patches there is one more.
    range(count + 1) → range(count)
You compare with what the model predicts for the whole images. Compare with the
labels.
    argmax(dim=-1) == labels → argmax(dim=-1) == model(images).argmax(dim=-1)
You return the drops in accuracy. Return the accuracies themselves.
    torch.stack(accuracies) → accuracies[0] - torch.stack(accuracies)
right:
    kept.scatter(-1, order[:, :deleted], 0.0) → order.argsort(dim=-1) >= deleted
    and kept.view → kept.float().view
"""
