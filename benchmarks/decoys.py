"""Train the Vision Transformer whose attention maps chapter 15 compares, six times.

    python benchmarks/decoys.py [--seeds 0 1 2 3 4 5] [--train]

The weights of seed 0 come with the book, in 16 bits: chapter 15 loads them, and --train
makes them anew. The maps are measured by the cells of the chapter. Every map of every
seed is a row of decoys.csv. A seed that has its rows is not repeated.
"""

import argparse
from pathlib import Path

import torch
from records import append, defined_in, provenance, read_done
from safetensors.torch import save_file

import tutorial_lib
from tutorial_lib.data import ImageBatches, Images
from tutorial_lib.training import fit, warmup_cosine
from tutorial_lib.vit import VisionTransformer

STEPS = 1200
FILE = Path(tutorial_lib.__file__).parent / "weights" / "decoys.safetensors"
CHAPTER = Path(__file__).parents[1] / "notebooks" / "15_attention_maps.ipynb"
CELLS = {
    "setup",
    "sheets",
    "model-class",
    "hits",
    "decoy-sheets",
    "vit-train",
    "maps-code",
    "rules-code",
    "measures-code",
}


def train(chapter, seed):
    torch.manual_seed(seed)
    model = VisionTransformer(
        32, 4, 2, d_ff=64, image_size=24, patch_size=4, num_classes=10
    )
    decoys = chapter["decoy_train"]
    fit(
        model,
        ImageBatches(Images(decoys.images, decoys.answers), batch_size=64),
        chapter["digit_loss"],
        optimizer=torch.optim.AdamW(
            model.parameters(), lr=0.005, weight_decay=0.05, fused=True
        ),
        steps=STEPS,
        schedule=warmup_cosine(STEPS // 5, STEPS),
    )
    return model.eval()


def measures_of(chapter, model):
    """Return for each map what the chapter measures, and the accuracies, by name."""
    test = chapter["decoy_test"]
    decoys = chapter["is_inked"] & ~test.cells
    accuracies = {}
    for name, cells in (("whole", test.cells & False), ("without decoys", decoys)):
        images = chapter["occlude"](test.images, cells)
        accuracies[name] = chapter["accuracy_of"](model, images, test.answers)
    maps = chapter["maps_of"](model, test.images)
    maps["nearest neighbor"] = chapter["nearest_neighbor"]
    chapter["vit"] = model  # the one from which `measure` deletes
    columns = "hit rate", "mass", "accuracy without best cell"
    rows = {}
    for name, weights in maps.items():
        measured = zip(columns, chapter["measure"](weights), strict=True)
        rows[name] = dict(measured) | accuracies
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=range(6))
    parser.add_argument("--train", action="store_true", help="seed 0 anew, too")
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    chapter = defined_in(CHAPTER, CELLS)
    for seed in options.seeds:
        if str(seed) in read_done(options.out, ["seed"]):
            continue
        model = train(chapter, seed) if seed or options.train else chapter["vit"]
        if options.train and seed == 0:
            save_file(model.half().state_dict(), FILE)
            model.float()
        for name, numbers in measures_of(chapter, model).items():
            row = {"seed": seed, "map": name}
            for column, number in numbers.items():
                row[column] = f"{number:.3f}"
            append(options.out, row | provenance())


if __name__ == "__main__":
    main()
