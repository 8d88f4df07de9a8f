"""Exercises of chapter 17: GIoU, greedy matching, raster order, where queries attend."""

import itertools

import torch

from tutorial_exercises import Exercise


@Exercise("17.1", "Generalized IoU", axes="pair")
def generalized_iou(boxes, others):
    """Return the generalized IoU of each box with the other of its pair."""
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(dim=1)
    other_areas = (others[:, 2:] - others[:, :2]).prod(dim=1)
    top_left = torch.maximum(boxes[:, :2], others[:, :2])
    bottom_right = torch.minimum(boxes[:, 2:], others[:, 2:])
    intersection = (bottom_right - top_left).clamp(min=0).prod(dim=1)
    union = areas + other_areas - intersection
    hull_start = torch.minimum(boxes[:, :2], others[:, :2])
    hull_end = torch.maximum(boxes[:, 2:], others[:, 2:])
    hull = (hull_end - hull_start).prod(dim=1)
    return intersection / union - (hull - union) / hull


@generalized_iou.oracle
def _(boxes, others):
    results = []
    for box, other in zip(boxes, others, strict=True):
        left, top, right, bottom = box
        other_left, other_top, other_right, other_bottom = other
        width = min(right, other_right) - max(left, other_left)
        height = min(bottom, other_bottom) - max(top, other_top)
        intersection = max(width, 0) * max(height, 0)
        union = (right - left) * (bottom - top) - intersection
        union += (other_right - other_left) * (other_bottom - other_top)
        hull = max(right, other_right) - min(left, other_left)
        hull *= max(bottom, other_bottom) - min(top, other_top)
        results.append(intersection / union - (hull - union) / hull)
    return torch.stack(results)


def random_boxes(count):
    """Return boxes (box, 4): left, top, right, bottom."""
    corners = torch.rand(count, 2)
    return torch.cat([corners, corners + 0.1 + 0.4 * torch.rand(count, 2)], dim=1)


@generalized_iou.cases
def _():
    left = torch.tensor([[0.0, 0.0, 2.0, 2.0]])
    yield "two boxes that overlap", left, torch.tensor([[1.0, 0.0, 3.0, 4.0]])
    yield "two boxes apart", left, torch.tensor([[3.0, 1.0, 5.0, 2.0]])
    yield (
        "two boxes apart in both directions",
        left,
        torch.tensor([[3.0, 3.0, 4.0, 5.0]]),
    )
    yield "equal boxes", left, left.clone()
    yield "several pairs", random_boxes(6), random_boxes(6)


@generalized_iou.demand("gradients reach the boxes")
def _(answer):
    boxes, others = random_boxes(4).requires_grad_(), random_boxes(4).requires_grad_()
    answer(boxes, others)
    answer.gradients(boxes, others)


generalized_iou.hints = """
- A box is left, top, right, bottom, so `boxes[:, 2:] - boxes[:, :2]` are widths and
  heights, and `.prod(dim=1)` makes areas of them.
- The intersection begins at the larger left and top, and ends at the smaller right and
  bottom. Where the boxes lie apart its width or height would be negative: clamp at 0.
- The hull is the smallest box around both: it begins at the smaller left and top, and
  ends at the larger right and bottom.
"""

generalized_iou.mistakes = """
You return the IoU. Subtract the part of the hull that neither box covers.
    intersection / union - (hull - union) / hull → intersection / union
Where the boxes lie apart, width and height of the intersection are negative: clamp both
at 0, before you multiply them.
    (bottom_right - top_left).clamp(min=0).prod(dim=1) → (bottom_right - top_left).prod(dim=1)
    (bottom_right - top_left).clamp(min=0).prod(dim=1) → (bottom_right - top_left).prod(dim=1).clamp(min=0)
The union counts the intersection twice: subtract it once.
    areas + other_areas - intersection → areas + other_areas
You divide what is not covered by the union. Divide it by the area of the hull.
    (hull - union) / hull → (hull - union) / union
You subtract what the intersection leaves of the hull. Subtract what the union leaves.
    (hull - union) / hull → (hull - intersection) / hull
You add the part that neither box covers. Subtract it.
    union - (hull → union + (hull
Your hull is not around both boxes: it ends at the larger right and bottom.
    hull_end = torch.maximum → hull_end = torch.minimum
right:
    (bottom_right - top_left).clamp(min=0) → torch.relu(bottom_right - top_left)
    intersection / union - (hull - union) / hull → intersection / union + union / hull - 1
"""


@Exercise("17.2", "Greedy matching")
def greedy_gap(costs):
    """Return how much more the greedy matching costs than the best one."""
    from scipy.optimize import linear_sum_assignment

    left = costs.clone()
    greedy = 0.0
    for _ in range(costs.shape[1]):
        query, i = divmod(left.argmin().item(), costs.shape[1])
        greedy += costs[query, i].item()
        left[query] = torch.inf
        left[:, i] = torch.inf
    queries, objects = linear_sum_assignment(costs)
    return greedy - costs[queries, objects].sum().item()


@greedy_gap.oracle
def _(costs):
    queries, objects = ([*range(count)] for count in costs.shape)
    pairs = sorted((costs[q, i].item(), q, i) for q in queries for i in objects)
    greedy = 0.0
    matched = {}
    for cost, query, i in pairs:
        if query not in matched.values() and i not in matched:
            matched[i] = query
            greedy += cost
    orders = itertools.permutations(queries, len(objects))
    best = min(costs[[*order], objects].sum().item() for order in orders)
    return greedy - best


@greedy_gap.cases
def _():
    yield "two queries and two objects", torch.tensor([[1.0, 2.0], [4.0, 9.0]])
    costs = torch.tensor([[5.0, 1.0, 9.0], [1.0, 8.0, 9.0], [9.0, 2.0, 4.0]])
    yield "costs for which the greedy matching is the best", costs
    for queries, objects in 4 * ((4, 2), (5, 3), (3, 1)):
        yield "more queries than objects", 10 * torch.rand(queries, objects)
    for _ in range(6):
        label = "negative costs, and as many queries as objects"
        yield label, 10 * torch.randn(4, 4)
    yield "more queries than objects", torch.randint(200, 900, (5, 4)) * 1.0


greedy_gap.hints = """
- The index of the smallest cost of all: `divmod(left.argmin().item(), left.shape[1])`
  returns its row, the query, and its column, the object.
- Put infinity into the row and the column of a pair that is matched, in a copy of the
  costs: `left[query] = torch.inf`. Go on until every object has its query.
- `queries, objects = linear_sum_assignment(costs)` is the best matching, and
  `costs[queries, objects]` are its costs. Subtract their sum from the greedy one.
"""

greedy_gap.mistakes = """
You go object by object. The greedy matching takes the smallest of all costs that are
left, whichever object it belongs to.
    for _ in range(costs.shape[1]): → for i in range(costs.shape[1]):
    and query, i = divmod(left.argmin().item(), costs.shape[1]) → query = left[:, i].argmin().item()
You give two objects the same query: after a match, put infinity into its row, too.
    left[query] = torch.inf → pass
You match an object more than once: after a match, put infinity into its column, too.
    left[:, i] = torch.inf → pass
You subtract in the other direction. The greedy matching never costs less than the best.
    return greedy - costs[queries, objects].sum().item() → return costs[queries, objects].sum().item() - greedy
You return the cost of the greedy matching. Subtract that of the best one.
    return greedy - costs[queries, objects].sum().item() → return greedy
You return the cost of the best matching. Subtract it from that of the greedy one.
    return greedy - costs[queries, objects].sum().item() → return costs[queries, objects].sum().item()
You return the costs of a matching by the largest sum. The best has the smallest one.
    linear_sum_assignment(costs) → linear_sum_assignment(costs, maximize=True)
SciPy is not installed where this notebook runs. Run `%pip install scipy` in a cell of
its own.
    from scipy.optimize import linear_sum_assignment → raise ModuleNotFoundError("No module named 'scipy'")
right:
    left[query] = torch.inf → left[query, :] = 1e9
"""


@Exercise("17.3", "Raster order", axes="object")
def raster_order(boxes):
    """Return for each object the query that raster order gives it."""
    top = boxes[:, 1] - boxes[:, 3] / 2
    left = boxes[:, 0] - boxes[:, 2] / 2
    order = sorted(range(len(boxes)), key=lambda i: (top[i].item(), left[i].item()))
    queries = torch.zeros(len(boxes), dtype=torch.long)
    for query, i in enumerate(order):
        queries[i] = query
    return queries


@raster_order.oracle
def _(boxes):
    queries = []
    for x, y, width, height in boxes.tolist():
        before = 0
        for other_x, other_y, other_width, other_height in boxes.tolist():
            other_corner = other_y - other_height / 2, other_x - other_width / 2
            before += other_corner < (y - height / 2, x - width / 2)
        queries.append(before)
    return torch.tensor(queries)


@raster_order.cases
def _():
    # Tops and lefts that float32 represents, so that equal tops are equal.
    three = [[0.75, 0.25, 0.25, 0.25], [0.25, 0.5, 0.25, 0.5], [0.5, 0.75, 0.25, 0.25]]
    yield "three objects, the first of them the highest", torch.tensor(three)
    turned = [
        [0.5, 0.75, 0.25, 0.25],
        [0.75, 0.25, 0.25, 0.25],
        [0.25, 0.5, 0.25, 0.25],
    ]
    yield "three objects, the first of them the lowest", torch.tensor(turned)
    level = [[0.75, 0.5, 0.25, 0.25], [0.25, 0.5, 0.25, 0.25], [0.5, 0.125, 0.25, 0.25]]
    yield "two objects of the same height", torch.tensor(level)
    tall = [[0.25, 0.5, 0.25, 0.75], [0.75, 0.375, 0.25, 0.25]]
    yield "a tall object, whose top is higher than its center tells", torch.tensor(tall)
    wide = [[0.5, 0.5, 0.75, 0.25], [0.25, 0.5, 0.125, 0.25]]
    yield "a wide object, whose left edge lies left of its center", torch.tensor(wide)
    for count in (1, 4, 5):
        yield "random boxes", torch.rand(count, 4)
    near = [[0.75, 0.5, 0.25, 0.25], [0.25, 0.5 + 2**-12, 0.25, 0.25]]
    yield "random boxes", torch.tensor(near)  # tops nearly equal, and yet not


raster_order.hints = """
- The top edge of a box is the y of its center minus half of its height, and the left
  edge the x minus half of the width.
- Sort the indices of the objects by (top, left): `sorted(range(n), key=…)`.
- The result is not this order: entry i is the position of object i in it, and so the
  query that is trained on object i.
"""

raster_order.mistakes = """
You return the order: which object comes first, second, …. Asked is for each object which
query it gets, its position in that order.
    return queries → return torch.tensor(order)
You sort by the left edge first. Rows come before columns: sort by the top edge first,
y minus half of the height.
    (top[i].item(), left[i].item()) → (left[i].item(), top[i].item())
You compare centers. Raster order meets the top edge of an object first: subtract half of
the height, and for columns half of the width.
    boxes[:, 1] - boxes[:, 3] / 2 → boxes[:, 1]
    boxes[:, 0] - boxes[:, 2] / 2 → boxes[:, 0]
    boxes[:, 1] - boxes[:, 3] / 2 → boxes[:, 1]
    and boxes[:, 0] - boxes[:, 2] / 2 → boxes[:, 0]
You subtract the whole height. The center lies half of it below the top edge.
    boxes[:, 3] / 2 → boxes[:, 3]
You begin at the bottom. Raster order begins at the top.
    (top[i].item(), left[i].item()) → (-top[i].item(), left[i].item())
right:
    (top[i].item(), left[i].item()) → (top[i], left[i])
"""


@Exercise("17.4", "Where each query attends", axes="image query xy")
def attention_centers(weights, side):
    """Return the center of mass of each query's attention: x and y, from 0 to 1."""
    maps = weights.mean(dim=1)  # (image, query, patch)
    grid = maps.unflatten(-1, (side, side))  # (image, query, row, column)
    positions = (torch.arange(side) + 0.5) / side  # of columns, and of rows
    x = (grid.sum(dim=-2) * positions).sum(dim=-1)
    y = (grid.sum(dim=-1) * positions).sum(dim=-1)
    return torch.stack([x, y], dim=-1)


@attention_centers.oracle
def _(weights, side):
    images, heads, queries, _ = weights.shape
    centers = torch.zeros(images, queries, 2)
    for image in range(images):
        for query in range(queries):
            for row, column in itertools.product(range(side), repeat=2):
                weight = weights[image, :, query, row * side + column].sum() / heads
                centers[image, query, 0] += weight * (column + 0.5) / side
                centers[image, query, 1] += weight * (row + 0.5) / side
    return centers


def random_weights(*shape):
    """Return attention weights (image, head, query, patch), some of them large."""
    return (3 * torch.randn(*shape)).softmax(dim=-1)


@attention_centers.cases
def _():
    one_patch = torch.eye(9)[2].view(1, 1, 1, 9)
    yield "all weight on the patch at the top right", one_patch, 3
    two_heads = torch.tensor([[0.0, 0.75, 0.0, 0.25], [0.0, 0.5, 0.0, 0.5]])
    yield "two heads that attend to the right column", two_heads.view(1, 2, 1, 4), 2
    three = torch.tensor([0.5, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3])
    yield "three patches of 3 × 3 with different weights", three.view(1, 1, 1, 9), 3
    yield "several images, heads and queries", random_weights(3, 4, 5, 36), 6
    yield "as many images as heads and queries", random_weights(3, 3, 3, 16), 4


attention_centers.hints = """
- Three steps: the mean of the heads, a grid of patches, and on it the mean column and
  the mean row.
- `weights.mean(dim=1)` is (image, query, patch). With `.unflatten(-1, (side, side))` its
  last two axes are row and column.
- Summed over the rows, a map tells how much weight each column gets. Multiply this by the
  columns' centers, `(torch.arange(side) + 0.5) / side`, and add up: that is x.
- y is the same for rows. `torch.stack([x, y], dim=-1)` puts both together.
"""

attention_centers.mistakes = """
You have swapped x and y. x says how far to the right, so it is the mean over columns; y
is the mean over rows.
    torch.stack([x, y], dim=-1) → torch.stack([y, x], dim=-1)
    (side, side)) → (side, side)).mT
You add up the heads. Take their mean.
    weights.mean(dim=1) → weights.sum(dim=1)
You read one head. Take the mean of all heads.
    weights.mean(dim=1) → weights[:, 0]
    weights.mean(dim=1) → weights[:, -1]
You take the largest weight of the heads. Take their mean.
    weights.mean(dim=1) → weights.amax(dim=1)
You average over images. The heads are axis 1.
    weights.mean(dim=1) → weights.mean(dim=0)
You average over queries. The heads are axis 1.
    weights.mean(dim=1) → weights.mean(dim=2)
You average over the images, too. Each scene has its own centers.
    weights.mean(dim=1) → weights.mean(dim=(0, 1), keepdim=True)[0]
    torch.stack([x, y], dim=-1) → torch.stack([x, y], dim=-1).mean(dim=0)
A patch's position is its center, half a patch right of its left edge and below its top.
    (torch.arange(side) + 0.5) → torch.arange(side)
The first patch does not lie at 0, nor the last at 1: their centers are half a patch from
the edges.
    (torch.arange(side) + 0.5) / side → torch.linspace(0, 1, side)
You take the right and bottom edges of the patches. Take their centers: add 0.5, not 1.
    (torch.arange(side) + 0.5) → (torch.arange(side) + 1)
You count in patches. Divide by the side, so that the image goes from 0 to 1.
    (torch.arange(side) + 0.5) / side → torch.arange(side) + 0.5
    (torch.arange(side) + 0.5) / side → 1.0 * torch.arange(side)
You take the patch with the largest weight. The center of mass is a mean over all patches.
    maps = weights.mean(dim=1) → maps = weights.mean(dim=1)
        maps = torch.eye(side * side)[maps.argmax(dim=-1)]
You take means where sums are asked for. The weights of a query already add up to 1.
    (grid.sum(dim=-2) * positions).sum(dim=-1) → (grid.sum(dim=-2) * positions).mean(dim=-1)
    and (grid.sum(dim=-1) * positions).sum(dim=-1) → (grid.sum(dim=-1) * positions).mean(dim=-1)
    x = (grid.sum(dim=-2) → x = (grid.mean(dim=-2)
    and y = (grid.sum(dim=-1) → y = (grid.mean(dim=-1)
Your y grows upwards. As in boxes, it is 0 at the top.
    torch.stack([x, y], dim=-1) → torch.stack([x, 1 - y], dim=-1)
right:
    x = (grid.sum(dim=-2) * positions).sum(dim=-1) → x = (grid * positions).sum(dim=(-2, -1))
    and y = (grid.sum(dim=-1) * positions).sum(dim=-1) → y = (grid * positions[:, None]).sum(dim=(-2, -1))
    x = (grid.sum(dim=-2) * positions).sum(dim=-1) → x = grid.sum(dim=-2) @ positions
"""
