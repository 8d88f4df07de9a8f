"""The deletion test of chapter 15, on every photograph that is held out.

    python benchmarks/clothes_maps.py [--folder ../shared/data]

The Vision Transformer of clothes.py predicts the class of each test image. Then patches
become black, which is the background, or gray, the mean pixel of all images: in the
order of a map of its attention or gradient, in an order that needs no model, or at
random. A row of clothes_maps.csv says how probable the first prediction is, on average,
after so many patches.
"""

import argparse
from itertools import product
from pathlib import Path

import torch
import torch.nn.functional as F
from records import append, provenance

from tutorial_lib.data import load_images
from tutorial_lib.interpret import record_attention, rollout
from tutorial_lib.notebook import progress_bar
from tutorial_lib.pretrained import clothes_vit

SIDE = 7  # patches
PATCHES = SIDE**2
COUNTS = (0, 2, 4, 6, 8, 10, 12, 16, 20, 24)


def maps_of(model, images):
    """Return maps (image, patch) by their names; the largest weight comes first."""
    with record_attention(model) as recorded, torch.no_grad():
        model(images)
    layers = list(recorded.values())  # for each layer (image, head, query, key)
    return {
        "first layer": layers[0][:, :, 0, 1:].mean(dim=1),
        "last layer": layers[-1][:, :, 0, 1:].mean(dim=1),
        "rollout": rollout(layers)[:, 0, 1:],
        **gradient_maps(model, images),
        "brightness": F.avg_pool2d(images, 4).flatten(1),
        "center": nearness_to_center().expand(len(images), -1),
        "random": torch.rand(len(images), PATCHES),
    }


def gradient_maps(model, images):
    """Return two maps (image, patch) that need no attention."""
    images = images.clone().requires_grad_()
    largest_logits = model(images).amax(dim=-1)  # (image,)
    (gradient,) = torch.autograd.grad(largest_logits.sum(), images)
    products = gradient * images.detach()
    return {
        "saliency": F.avg_pool2d(gradient.abs(), 4).flatten(1),
        "gradient × input": F.avg_pool2d(products, 4).flatten(1),
    }


def nearness_to_center():
    """Return minus the squared distance of each patch from the middle one: (patch,)."""
    index = torch.arange(PATCHES)
    row = index // SIDE
    column = index % SIDE
    return -((row - SIDE // 2) ** 2 + (column - SIDE // 2) ** 2).float()


@torch.no_grad()
def probability_after(model, images, predictions, weights, count, fill):
    """Return how probable each prediction (image, 1) is without ``count`` patches."""
    deleted = weights.argsort(dim=1, descending=True)[:, :count]
    visible = torch.ones(len(images), PATCHES).scatter(1, deleted, 0.0)
    visible = F.interpolate(visible.view(-1, 1, SIDE, SIDE), size=images.shape[-1])
    remaining = images * visible + fill * (1 - visible)
    probabilities = model(remaining).softmax(dim=-1)  # (image, class)
    return probabilities.gather(1, predictions).mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, help="of the data; without it: download")
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    images = load_images("fashion_mnist", folder=options.folder).test.images
    model = clothes_vit()
    maps = maps_of(model, images)
    with torch.no_grad():
        predictions = model(images).argmax(dim=-1, keepdim=True)  # (image, 1)
    fills = {"background": 0.0, "mean pixel": images.mean()}
    cases = list(product(maps, fills, COUNTS))
    options.out.unlink(missing_ok=True)
    with progress_bar(len(cases)) as bar:
        for name, fill, count in cases:
            probability = probability_after(
                model, images, predictions, maps[name], count, fills[fill]
            )
            row = {
                "order": name,
                "fill": fill,
                "deleted_patches": count,
                "probability": f"{probability:.4f}",
                "test_images": len(images),
                **provenance(),
            }
            append(options.out, row)
            bar.update()


if __name__ == "__main__":
    main()
