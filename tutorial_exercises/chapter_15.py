"""Exercises of chapter 15: attention maps in vision."""

import math

import torch
import torch.nn.functional as F

from tutorial_exercises import Exercise


@Exercise(
    "15.1",
    "The question the other way round",
    axes={"read": "batch digit", "weights": "batch patch"},
)
def which_digit(tokens, colors):
    """Return how much of each digit is read (batch, 10), and the map (batch, patch)."""
    digits, painted = tokens[..., :10], tokens[..., 10:]
    queries = 8 * F.one_hot(colors, 4).float()  # (batch, color)
    scores = (painted @ queries[..., None])[..., 0]  # (batch, patch)
    weights = scores.softmax(dim=-1)
    read = (weights[:, None] @ digits)[:, 0]
    return read, weights


@which_digit.oracle
def _(tokens, colors):
    """Score patch after patch, and read them one by one."""
    batch, patches, _ = tokens.shape
    read, weights = torch.zeros(batch, 10), torch.zeros(batch, patches)
    for b in range(batch):
        color = 10 + int(colors[b])
        powers = [math.exp(8 * float(patch[color])) for patch in tokens[b]]
        for i, power in enumerate(powers):
            weights[b, i] = power / sum(powers)
            read[b] += weights[b, i] * tokens[b, i, :10]
    return read, weights


def painted_digits(*sheets, patches=5):
    """Make tokens of (digit, color) pairs, which stand in a sheet's first patches."""
    tokens = torch.zeros(len(sheets), patches, 14)
    for b, sheet in enumerate(sheets):
        for i, (digit, color) in enumerate(sheet):
            tokens[b, i, digit] = tokens[b, i, 10 + color] = 1.0
    return tokens


@which_digit.cases
def _():
    sheets = [(7, 2), (3, 2), (0, 0), (4, 3)], [(2, 3), (4, 0), (9, 3)]
    label = "a color that is there twice, and one that is not there"
    yield label, painted_digits(*sheets), torch.tensor([2, 1])
    sheets = [(7, 1), (3, 2), (0, 0)], [(2, 3), (2, 0), (9, 1)], [(5, 0), (1, 1)]
    label = "each sheet has its own question"
    yield label, painted_digits(*sheets, patches=14), torch.tensor([2, 3, 1])
    sheet = painted_digits([(7, 2), (3, 2), (0, 0), (4, 3)])
    yield "a single sheet", sheet, torch.tensor([0])


which_digit.hints = """
- What is compared are the keys: here the last four dimensions of each token. What is
  read are the values: the first ten.
- The query has four dimensions, with 8 at the color and 0 elsewhere. Its dot product
  with a patch's key is the score: `8 * F.one_hot(colors, 4)`.
- Then as always: softmax over the patches, and the weighted sum of the values.
"""

which_digit.mistakes = """
You compare digits and read colors, as in the chapter. Here the color is given: the keys
are the last four dimensions, the values the first ten.
    F.one_hot(colors, 4) → F.one_hot(colors, 10)
    and painted @ queries → digits @ queries
The scores are 0 and 1: the query's color needs an 8, so that the other patches get next
to no weight.
    8 * F.one_hot(colors, 4) → F.one_hot(colors, 4)
You divide the scores by √d. The exercise gives the score: 8 where the color is.
    scores.softmax(dim=-1) → (scores / 2).softmax(dim=-1)
You read with the scores. The weights are their softmax over the patches.
    scores.softmax(dim=-1) → scores
Where a patch has the color, the patches without it get weight 0. Their score is 0, not
−∞, and the softmax over all patches gives them a little weight.
    scores.softmax → scores.masked_fill(scores == 0, -1e9).softmax
    scores.softmax(dim=-1) → scores / scores.sum(dim=-1, keepdim=True).clamp(min=1e-9)
Where no patch has the color, your weights are NaN, because 0 is divided by 0. A patch
without the color has the score 0, not −∞, and the softmax gives it a little weight.
    scores.softmax → scores.masked_fill(scores == 0, -torch.inf).softmax
Your softmax runs over the sheets. It has to run over the patches: `dim=-1`.
    scores.softmax(dim=-1) → scores.softmax(dim=0)
You read one patch alone. Where two patches have the color, both are read.
    scores.softmax(dim=-1) → F.one_hot(scores.argmax(dim=-1), tokens.shape[1]).float()
You leave the empty patches out. Their score is 0, too, which gives a little weight.
    scores.softmax → scores.masked_fill(tokens.sum(dim=-1) == 0, -torch.inf).softmax
You put the first question to all sheets.
    F.one_hot(colors, 4) → F.one_hot(colors[:1].expand_as(colors), 4)
You return the mean over the patches. Return the sum: the weights add up to 1 already.
    (weights[:, None] @ digits)[:, 0] → (weights[..., None] * digits).mean(dim=1)
You read all fourteen dimensions of a token. Read the first ten, the digit.
    weights[:, None] @ digits → weights[:, None] @ tokens
right:
    (weights[:, None] @ digits)[:, 0] → torch.einsum("bi,bid->bd", weights, digits)
"""


@Exercise("15.2", "A rival of the map", axes="batch patch")
def input_times_gradient(model, images, side):
    """Return for each patch the size of its contribution to the largest logit."""
    images = images.clone().requires_grad_()
    best = model(images).amax(dim=-1)  # (batch,)
    (gradient,) = torch.autograd.grad(best.sum(), images)
    products = gradient * images.detach()
    products = products.sum(dim=1, keepdim=True)  # over channels
    sums = F.avg_pool2d(products, side) * side**2
    return sums.flatten(1).abs()


@input_times_gradient.oracle
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


@input_times_gradient.cases
def _():
    yield "one image in four patches", small_model(16), torch.randn(1, 1, 4, 4), 2
    label = "several images, wider than high, with three channels"
    yield label, small_model(72), torch.randn(5, 3, 4, 6), 2


input_times_gradient.hints = """
- Work on a copy that requires a gradient: `images.clone().requires_grad_()`.
- `model(images).amax(dim=-1).sum()` is the sum of the largest logits; in its gradient
  each image has the gradient of its own.
- Sum over the channels and pixels of a patch first, and take the absolute value, `abs`,
  at the end: what one pixel adds, the next may take away.
"""

input_times_gradient.mistakes = """
You return the gradient alone. Multiply it by the pixels before you sum.
    gradient * images.detach() → gradient
You take the absolute value at each pixel. Take it of the patch's sum, at the end.
    gradient * images.detach() → (…).abs()
Some of your sums are negative. Return their absolute values: `abs` at the end.
    sums.flatten(1).abs() → sums.flatten(1)
You take the mean over the patch. Return the sum over its pixels.
    F.avg_pool2d(products, side) * side**2 → F.avg_pool2d(products, side)
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
- Report the hit rate of *that* head on the second half, whether or not it is the best
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


@Exercise("15.4", "Patch after patch", axes="painted")
def painted_curve(model, images, labels, weights, count):
    """Return the accuracies after 0, 1, …, count painted patches: (1 + count,)."""
    rows = round(weights.shape[-1] ** 0.5)
    order = weights.argsort(dim=-1, descending=True)
    accuracies = []
    for painted in range(count + 1):
        kept = torch.ones_like(weights)  # (batch, patch)
        kept = kept.scatter(-1, order[:, :painted], 0.0)
        kept = kept.view(-1, 1, rows, rows)
        seen = images * F.interpolate(kept, size=images.shape[2:])
        right = model(seen).argmax(dim=-1) == labels
        accuracies.append(right.double().mean())
    return torch.stack(accuracies)


@painted_curve.oracle
def _(model, images, labels, weights, count):
    """Paint a copy of each image, patch after patch."""
    rows = math.isqrt(weights.shape[1])
    side = images.shape[-1] // rows
    accuracies = torch.zeros(count + 1, dtype=torch.float64)
    for image, label, row in zip(images, labels, weights, strict=True):
        seen = image[None].clone()
        patches = sorted(range(rows**2), key=lambda i: -float(row[i]))
        for painted in range(count + 1):
            accuracies[painted] += int(model(seen).argmax() == label) / len(labels)
            i, j = divmod(patches[painted], rows)
            seen[..., i * side : (i + 1) * side, j * side : (j + 1) * side] = 0.0
    return accuracies


def paintings(batch, rows, side=2):
    """Return arguments in which each image has another order of its patches."""

    def model(images):  # predicts which patch has most ink
        return F.adaptive_avg_pool2d(images, rows).flatten(1)

    images = 0.2 + 0.8 * torch.rand(batch, 1, rows * side, rows * side)
    labels = model(images).argmax(dim=-1)
    labels[0] = (labels[0] + 1) % rows**2  # wrong at first
    noise = torch.randn(batch, rows**2) / 2
    weights = (side**2 * model(images) + noise).softmax(dim=-1)
    return model, images, labels, weights


@painted_curve.cases
def _():
    for _ in range(3):
        label = "nothing is painted, then one patch, then two"
        yield label, *paintings(40, 3), 2
    label = "painted patches stay painted, up to all but one"
    yield label, *paintings(30, 2), 3
    yield label, *paintings(30, 3), 8
    model, images, labels, weights = paintings(30, 3, side=4)
    label = "the weights come as they are, in any order"
    yield label, model, images, labels, weights.flip(0), 4


painted_curve.hints = """
- `order = weights.argsort(dim=-1, descending=True)` lists for each image its patches,
  the one with the largest weight first; `order[:, :k]` are those painted after k steps.
- `torch.ones_like(weights).scatter(-1, order[:, :k], 0.0)` is 0 in the painted patches
  and 1 in the others.
- As a grid, (batch, 1, rows, rows), `F.interpolate(kept, size=images.shape[2:])` makes
  it as large as the images; multiply.
"""

painted_curve.mistakes = """
You paint the smallest weights first. `argsort` is ascending: use `descending=True`.
    argsort(dim=-1, descending=True) → argsort(dim=-1)
Each time only one patch is painted. Painted patches stay painted: `order[:, :painted]`.
    order[:, :painted] → order[:, max(painted - 1, 0) : painted]
You compare the indices of patches with the number painted. `order` lists patches; a
patch's rank is its position in that list: `order.argsort(dim=-1)`.
    kept.scatter(-1, order[:, :painted], 0.0) → (order >= painted).to(weights)
You paint patches with 1. That is ink: white is 0.
    images * F.interpolate(kept, size=images.shape[2:]) → torch.where(
            F.interpolate(kept, size=images.shape[2:]) > 0, images, 1.0)
You paint the same patches in all images. Each image has its own weights.
    weights.argsort → weights.mean(dim=0).expand_as(weights).argsort
    weights.argsort → weights[:1].expand_as(weights).argsort
You paint all other patches: the mask is inverted.
    F.interpolate(kept, size → F.interpolate(1 - kept, size
Your patches go column by column. They should go row by row.
    kept.view(-1, 1, rows, rows) → ….mT
The curve begins before anything is painted, with 0 patches.
    range(count + 1) → range(1, count + 1)
The last accuracy is missing: after count painted patches there is one more.
    range(count + 1) → range(count)
You compare with what the model predicts for the unpainted images. Compare with the
labels.
    argmax(dim=-1) == labels → argmax(dim=-1) == model(images).argmax(dim=-1)
You return the drops in accuracy. Return the accuracies themselves.
    torch.stack(accuracies) → accuracies[0] - torch.stack(accuracies)
right:
    kept.scatter(-1, order[:, :painted], 0.0) → order.argsort(dim=-1) >= painted
    and kept.view → kept.float().view
"""
