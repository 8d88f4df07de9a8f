"""Exact matches of the detector of chapter 16: by matching, and in raster order.

    python benchmarks/matching.py [--only matching] [--steps 1200] [--seed 1]

The cells of the chapter that define scenes, model, losses and training are run as they
are. In raster order query 0 is trained on the first object, row by row, query 1 on the
second, and so on. Every run is a row of matching.csv; a run that has its row is not
repeated.
"""

import argparse
from pathlib import Path

import torch
from records import Clock, append, provenance, read_done

from tools.notebooks import code_cells, read_notebook, source_of

CHAPTER = Path(__file__).parents[1] / "notebooks" / "16_swin.ipynb"
CELLS = {
    "setup",
    "scenes",
    "train",
    "detr",
    "matching-costs",
    "set-loss",
    "found",
}
RULES = "matching", "raster order"
KEY = "rule", "steps", "seed"


def defined():
    """Return what the cells of the chapter define, by name."""
    names = {}
    for cell in code_cells(read_notebook(CHAPTER)):
        if cell["id"] in CELLS:
            exec(source_of(cell), names)
    return names


def raster_order(chapter, labels, masks):
    """Return for each query (scene, query) the object that it is trained on."""
    num_patches = masks.shape[-1]
    first_patch = masks.argmax(dim=-1)  # (scene, object)
    first_patch[labels == chapter["NO_OBJECT"]] = num_patches  # behind all objects
    return first_patch.argsort(dim=1)


def train(chapter, rule, steps, seed):
    def raster_loss(model, batch):
        images, labels, masks = batch
        logits, mask_logits = model(images)
        matches = raster_order(chapter, labels, masks)
        return chapter["matched_loss"](logits, mask_logits, labels, masks, matches)

    torch.manual_seed(seed)
    model = chapter["DETR"](num_queries=4, d_model=48)
    loss = chapter["set_loss"] if rule == "matching" else raster_loss
    chapter["train"](model, loss, chapter["train_scenes"], steps)
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
        recall, exact_match = train(chapter, *run)
        row = dict(zip(KEY, run, strict=True)) | {"seconds": round(clock.seconds())}
        row.update(
            {"objects found": f"{recall:.3f}", "exact match": f"{exact_match:.3f}"}
        )
        append(options.out, row | provenance())


if __name__ == "__main__":
    main()
