"""Exact matches of the detector of chapter 16: by matching, and by two fixed rules.

    python benchmarks/matching.py [--only matching] [--steps 1200] [--seed 1]

The cells of the chapter that define scenes, model, losses and training are run as they
are; the rule of quadrants is defined here. Every run is a row of matching.csv; a run
that has its row is not repeated.
"""

import argparse
from pathlib import Path

import torch
from records import Clock, append, provenance, read_done

from tools.notebooks import code_cells, read_notebook, source_of

CHAPTER = Path(__file__).parents[1] / "notebooks" / "16_windows_objects_transfer.ipynb"
CELLS = {"setup", "scenes", "train", "detr", "matching-costs", "set-loss", "found"}
CELLS |= {"order-losses"}
RULES = "matching", "raster order", "quadrants"
KEY = "rule", "steps", "seed"


def defined():
    """Return what the cells of the chapter define, by name."""
    names = {}
    for cell in code_cells(read_notebook(CHAPTER)):
        if cell["id"] in CELLS:
            exec(source_of(cell), names)
    return names


def quadrant_order(labels, masks):
    """Give each object the query of its quadrant, or the next that is free."""
    first_patch = masks.argmax(dim=-1)
    quadrants = 2 * (first_patch // 6 >= 2) + (first_patch % 6 >= 2)
    matches = []
    for scene in quadrants.tolist():
        objects = {}  # by query
        for i, query in enumerate(scene):
            while query in objects:
                query = (query + 1) % 4
            objects[query] = i
        matches.append([objects[query] for query in range(4)])
    return torch.tensor(matches)  # (scene, query)


def loss_of(chapter, rule):
    """Return the loss (model, batch) by which a rule trains."""

    def quadrant_loss(model, batch):
        images, labels, masks = batch
        matches = quadrant_order(labels, masks)
        return chapter["matched_loss"](model(images), labels, masks, matches)

    losses = chapter["set_loss"], chapter["raster_loss"], quadrant_loss
    return dict(zip(RULES, losses, strict=True))[rule]


def train(chapter, rule, steps, seed):
    torch.manual_seed(seed)
    model = chapter["DETR"](num_queries=4, d_model=48)
    chapter["train"](model, loss_of(chapter, rule), chapter["train_scenes"], steps)
    return chapter["found_and_exact_match"](model, chapter["test_scenes"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=RULES)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    chapter = defined()
    for rule in [options.only] if options.only else RULES:
        run = rule, options.steps, options.seed
        if tuple(map(str, run)) in read_done(options.out, KEY):
            continue
        clock = Clock()
        found, exact_match = train(chapter, *run)
        row = dict(zip(KEY, run, strict=True)) | {"seconds": round(clock.seconds())}
        row |= {"objects found": f"{found:.3f}", "exact match": f"{exact_match:.3f}"}
        append(options.out, row | provenance())


if __name__ == "__main__":
    main()
