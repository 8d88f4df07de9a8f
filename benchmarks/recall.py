"""Recall of layers that keep one matrix, trained longer than on their page.

    python benchmarks/recall.py [--steps 900] [--seed 0]

The layers, the texts and the training are those of the excursion on attention since
Llama, whose cells this program runs. Every run is a row of recall.csv, with the share
of questions that are answered after 32 pairs; a run that has its row is not repeated.
"""

import argparse
from pathlib import Path

import torch
from records import append, defined_in, provenance, read_done

PAGE = Path("notebooks/x_attention_since_llama.ipynb")
NEEDED = ("setup", "make-pairs", "stack", "model", "linear-code")
LAYERS = {"linear": "LinearAttention", "delta rule": "DeltaRule"}
KEY = "layer", "steps", "seed"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    path = Path(__file__).with_suffix(".csv")
    done = read_done(path, KEY)
    page = defined_in(PAGE, NEEDED)
    for name, layer_class in LAYERS.items():
        run = {"layer": name, "steps": chosen.steps, "seed": chosen.seed}
        if tuple(map(str, run.values())) in done:
            continue
        torch.manual_seed(chosen.seed)
        layer = page[layer_class](32, num_heads=2)
        model = page["train_recall"](layer, page["training_sets"], chosen.steps)
        recall = page["recall_accuracy"](model, page["test_sets"][-1])
        append(path, run | {"recall": round(recall, 4)} | provenance())


if __name__ == "__main__":
    main()
