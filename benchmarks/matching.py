"""How the detector of chapter 17 learns: by matching, by overlap, and in raster order.

    python benchmarks/matching.py [--only matching] [--steps 1200] [--seed 1]

The cells of the chapter that define scenes, model, losses and training are run as they
are. By overlap every query whose box has an IoU above 0.5 with an object is trained on
this object, beside the matched one. In raster order query 0 is trained on the first
object, row by row, query 1 on the second, and so on. Two more models learn by matching:
one whose object queries begin equal, and one whose queries do not attend to each other.
Every run is a row of matching.csv; a run that has its row is not repeated.
"""

import argparse
from pathlib import Path

import torch
from records import Clock, append, defined_in, provenance, read_done

CHAPTER = Path(__file__).parents[1] / "notebooks" / "17_detr.ipynb"
CELLS = {
    "setup",
    "scenes",
    "iou",
    "detr",
    "match",
    "set-targets",
    "set-loss",
    "train-loop",
    "patches",
    "pretrain",
    "metrics",
    "overlap-match",
}
EQUAL = "matching, equal queries"
ALONE = "matching, no self-attention"
RULES = "matching", "overlap", "raster order", EQUAL, ALONE
KEY = "rule", "steps", "seed"
PRETRAINING = 600  # steps, as in the chapter


def rule_of(chapter, name):
    """Return the function that says which query is trained on which object."""

    def in_raster_order(class_logits, boxes, labels, true_boxes):
        corners = true_boxes[:, :2] - true_boxes[:, 2:] / 2  # left and top
        order = sorted(range(len(corners)), key=lambda i: corners[i].flip(0).tolist())
        return torch.arange(len(order)), torch.tensor(order)

    rules = {"overlap": chapter["match_by_overlap"], "raster order": in_raster_order}
    return rules.get(name, chapter["match"])


@torch.no_grad()
def change(model, name):
    """Make the object queries equal, or keep them from attending to each other."""
    if name == EQUAL:
        model.object_queries[:] = model.object_queries[0]
    if name == ALONE:
        for layer in model.decoder_layers:
            for parameter in layer.attention.W_O.parameters():
                parameter.zero_()
                parameter.requires_grad_(False)  # so it stays 0


def train(chapter, rule, steps, seed):
    torch.manual_seed(seed)
    backbone = chapter["pretrained_backbone"](64, num_steps=PRETRAINING)
    model = chapter["DETR"](backbone, num_queries=5, d_model=64)
    change(model, rule)
    chapter["train"](model, steps, rule_of(chapter, rule))
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=RULES)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    chapter = defined_in(CHAPTER, CELLS)
    for rule in [options.only] if options.only else RULES:
        run = rule, options.steps, options.seed
        if tuple(map(str, run)) in read_done(options.out, KEY):
            continue
        clock = Clock()
        model = train(chapter, *run)
        row = dict(zip(KEY, run, strict=True)) | {"seconds": round(clock.seconds())}
        ap, mean_iou, duplicates = chapter["evaluate"](model)
        suppressed, _, _ = chapter["evaluate"](model, use_nms=True)
        results = {
            "AP": ap,
            "AP after NMS": suppressed,
            "mean IoU": mean_iou,
            "duplicates": duplicates,
        }
        for name, number in results.items():
            row[name] = f"{number:.3f}"
        append(options.out, row | provenance())


if __name__ == "__main__":
    main()
