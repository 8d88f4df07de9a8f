"""Checks for chapter 15: asking, and judging where a model looks.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import math

import torch

from tutorial_exercises.exercise import Exercise

__all__ = ["curve", "half", "other_way", "rival"]


other_way = Exercise(
    "15.1",
    "The question the other way round",
    name="which_digit",
    hints=[
        "What is compared are the keys: here the last four numbers of each token. "
        "What is read are the values: the first ten.",
        "The query has four numbers, 8 where the color is and 0 elsewhere. Its product "
        "with a patch's key is the score: `8 * F.one_hot(colors, 4)`.",
        "Then as always: softmax over the patches, and the sum of the values, each "
        "with its weight.",
    ],
)


@other_way.spec
def which_digit(tokens, colors):
    """Score patch after patch, and read them one by one."""
    batch, patches, _ = tokens.shape
    read, weights = torch.zeros(batch, 10), torch.zeros(batch, patches)
    for b in range(batch):
        place = 10 + int(colors[b])
        powers = [math.exp(8 * float(patch[place])) for patch in tokens[b]]
        for i, power in enumerate(powers):
            weights[b, i] = power / sum(powers)
            read[b] += weights[b, i] * tokens[b, i, :10]
    return read, weights


def _tokens(*sheets, patches=5):
    """Make sheets of (digit, color) pairs, in the first patches of each."""
    tokens = torch.zeros(len(sheets), patches, 14)
    for b, sheet in enumerate(sheets):
        for i, (digit, color) in enumerate(sheet):
            tokens[b, i, digit] = tokens[b, i, 10 + color] = 1.0
    return tokens


@other_way.step("one sheet, in which a color is there twice")
def _(probe):
    for color in (2, 0):
        sheet = [(7, 2), (3, 2), (0, 0), (4, 3)]
        read, weights = probe(_tokens(sheet), torch.tensor([color]))
        probe.shape(read, batch=1, digit=10)
        probe.shape(weights, batch=1, patch=5)
        probe.same()


@other_way.step("each sheet has its own question")
def _(probe):
    sheets = [(7, 1), (3, 2), (0, 0)], [(2, 3), (2, 0), (9, 1)], [(5, 0), (1, 1)]
    probe(_tokens(*sheets), torch.tensor([2, 3, 1]))
    probe.same()


@other_way.step("a color that is there twice, and one that is not there")
def _(probe):
    sheets = [(7, 1), (3, 1), (0, 0)], [(2, 3), (4, 0), (9, 3)]
    probe(_tokens(*sheets, patches=14), torch.tensor([1, 2]))
    probe.same()


rival = Exercise(
    "15.2",
    "A rival of the map",
    name="input_times_gradient",
    returns="batch patch",
    hints=[
        "Work on a copy that wants a gradient: `images.clone().requires_grad_()`.",
        "`model(images).amax(dim=-1).sum()` is the sum of the largest logits; its "
        "gradient has for each image the gradient of its own.",
        "Add up over channels and pixels of a patch first, and take the size, `abs`, "
        "at the end: what is added in one pixel may be taken away in the next.",
    ],
)


@rival.spec
def input_times_gradient(model, images, side):
    """Take one image after the other, and add up pixel by pixel."""
    rows, columns = (length // side for length in images.shape[2:])
    shares = torch.zeros(len(images), rows * columns)
    for b, image in enumerate(images):
        image = image[None].clone().requires_grad_()
        gradient = torch.autograd.grad(model(image)[0].max(), image)[0][0]
        product = gradient * image[0].detach()
        for i in range(rows * side):
            for j in range(columns * side):
                patch = i // side * columns + j // side
                shares[b, patch] += product[:, i, j].sum()
    return shares.abs()


class _Looks:
    """A small network with fixed weights: (batch, class)."""

    def __init__(self, pixels, classes=4):
        self.first = torch.randn(pixels, 12)
        self.second = torch.randn(12, classes)

    def __call__(self, images):
        return torch.tanh(images.flatten(1) @ self.first / 4) @ self.second


@rival.step("one image in four patches")
def _(probe):
    shares = probe(_Looks(16), torch.randn(1, 1, 4, 4), 2)
    probe.shape(shares, batch=1, patch=4)
    probe.same()


@rival.step("several images, wider than high, with three channels")
def _(probe):
    shares = probe(_Looks(72), torch.randn(5, 3, 4, 6), 2)
    probe.shape(shares, batch=5, patch=6)
    probe.same()


half = Exercise(
    "15.3",
    "Choose on one half",
    name="honest_head",
    hints=[
        "The first half are the first rows: `first, second = hits.double().chunk(2)`.",
        "The mean over the pictures is a head's share: `first.mean(dim=0)`. Its "
        "largest entry names the head.",
        "Report what *that* head does on the second half, whether or not it is the "
        "best there.",
    ],
)


@half.spec
def honest_head(hits):
    """Count the hits of each head, picture by picture."""
    pictures, heads = hits.shape
    counts = [
        sum(int(hits[i, head]) for i in range(pictures // 2)) for head in range(heads)
    ]
    best = counts.index(max(counts))
    later = sum(int(hits[i, best]) for i in range(pictures // 2, pictures))
    return best, later / (pictures - pictures // 2)


def _hits(first, second, pictures=10):
    """Make hits of so many pictures in each half, one number for each head."""
    rows = torch.arange(pictures)[:, None]
    halves = rows < torch.tensor(first), rows < torch.tensor(second)
    orders = [torch.rand(pictures, len(first)).argsort(dim=0) for _ in halves]
    pairs = zip(halves, orders, strict=True)
    return torch.cat([half.gather(0, order) for half, order in pairs])


@half.step("another head is best in the second half")
def _(probe):
    probe(_hits([3, 6, 7, 5], [8, 6, 4, 1]))
    probe.same()
    probe(_hits([9, 8, 1], [2, 8, 10]))
    probe.same()


@half.step("the same head is best in both halves")
def _(probe):
    probe(_hits([3, 8, 5], [2, 7, 4]))
    probe.same()


@half.step("no head is right in every picture")
def _(probe):
    probe(_hits([4, 1, 2], [3, 0, 7], pictures=6))
    probe.same()


curve = Exercise(
    "15.4",
    "Patch after patch",
    name="painted_curve",
    returns="painted",
    hints=[
        "`order = weights.argsort(dim=-1, descending=True)` lists for each image its "
        "patches, the heaviest first; `order[:, :k]` are those painted after k steps.",
        "`torch.ones_like(weights).scatter(-1, order[:, :k], 0.0)` is 0 in the painted "
        "patches and 1 in the others.",
        "As a grid, (batch, 1, rows, rows), `F.interpolate(kept, "
        "size=images.shape[2:])` makes it as large as the images; multiply.",
    ],
)


@curve.spec
def painted_curve(model, images, labels, weights, count):
    """Paint a copy of each image, patch after patch."""
    rows = math.isqrt(weights.shape[1])
    side = images.shape[-1] // rows
    seen, shares = images.clone(), []
    for k in range(count + 1):
        names = [int(model(image[None])[0].argmax()) for image in seen]
        right = sum(a == int(b) for a, b in zip(names, labels, strict=True))
        shares.append(right / len(labels))
        for b in range(len(images) if k < count else 0):
            patches = sorted(range(rows**2), key=lambda i: -float(weights[b, i]))
            i, j = divmod(patches[k], rows)
            seen[b, :, i * side : (i + 1) * side, j * side : (j + 1) * side] = 0.0
    return torch.tensor(shares, dtype=torch.float64)


class _Ink:
    """Name the patch with most ink: (batch, patch)."""

    def __init__(self, rows):
        self.rows = rows

    def __call__(self, images):
        side = images.shape[-1] // self.rows
        sums = images.unflatten(2, (self.rows, side)).unflatten(4, (self.rows, side))
        return sums.sum(dim=(1, 3, 5)).flatten(1)  # (batch, patch)


def _painted(batch, rows, side=2):
    """Return arguments in which each image has another order of its patches."""
    images = 0.2 + 0.8 * torch.rand(batch, 1, rows * side, rows * side)
    model = _Ink(rows)
    labels = model(images).argmax(dim=-1)
    labels[0] = (labels[0] + 1) % rows**2  # wrong at first
    weights = (model(images) + 0.5 * torch.randn(batch, rows**2)).softmax(dim=-1)
    return model, images, labels, weights


@curve.step("nothing is painted, then one patch, then two")
def _(probe):
    for _ in range(3):
        shares = probe(*_painted(40, 3), 2)
        probe.shape(shares, painted=3)
        probe.same()


@curve.step("painted patches stay painted, up to all but one")
def _(probe):
    for rows in (2, 3):
        shares = probe(*_painted(30, rows), rows**2 - 1)
        probe.shape(shares, painted=rows**2)
        probe.same()


@curve.step("the weights come as they are, in any order")
def _(probe):
    model, images, labels, weights = _painted(30, 3, side=4)
    probe(model, images, labels, weights.flip(0), 4)
    probe.same()
