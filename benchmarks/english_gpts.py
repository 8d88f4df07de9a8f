"""Train the small models of English sentences that come with the book.

    python benchmarks/english_gpts.py [--out tutorial_lib/weights] [--only NAME]

Chapter 12's GPT is made and trained by the cells of its own page, with more steps. Its
learning rate had the lowest validation loss of 0.0025, 0.005 and 0.01 in 800 steps. The
two GPTs of the excursion on speculative decoding predict words: a target model, and a
small draft model. All weights are stored in 16 bits.
"""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from tutorial_lib.data.english import english_sentences
from tutorial_lib.data.text import Vocabulary
from tutorial_lib.gpt import GPT
from tutorial_lib.training import fit, warmup_cosine

ROOT = Path(__file__).parents[1]
CHAPTER = ROOT / "notebooks" / "12_decoding_and_gpt.ipynb"
PAGE_STEPS = 2400
SIZES = {"target": (64, 2), "draft": (32, 1)}  # d_model, layers
STEPS = 600


def run_page():
    """Run the cells of the page that make the model; return what they define.

    No weights are loaded, and nothing is trained.
    """
    names = {}
    for cell in json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["id"] == "train":
            before, _, _ = source.partition("\n\n\nprint(")
            exec(before, names)
            break
        if is_run(cell):
            exec(source, names)
    return names


def is_run(cell):
    return cell["cell_type"] == "code" and cell["id"] != "colab-setup"


def train_on_page():
    page = run_page()
    torch.manual_seed(0)
    page["train"](page["model"], PAGE_STEPS)
    return page["model"]


def train_on_words(name):
    """Train a GPT on windows of 32 inputs and targets, but the first 200."""
    sentences = english_sentences(20_000, seed=0)
    vocabulary = Vocabulary(sentences)
    corpus = []
    for sentence in sentences:
        corpus += [*sentence, "<eos>"]
    tokens = torch.tensor(vocabulary.encode(corpus))
    windows = torch.stack(tokens.split(33)[:-1])  # (window, 33)
    training = windows[200:]  # the page measures on the others
    torch.manual_seed(0)
    batches = training[torch.randperm(len(training))].split(32)
    d_model, num_layers = SIZES[name]
    model = GPT(len(vocabulary), d_model, d_model // 16, num_layers, max_tokens=32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    schedule = warmup_cosine(STEPS // 10, STEPS)
    fit(model, batches, loss, optimizer=optimizer, steps=STEPS, schedule=schedule)
    return model


def loss(model, windows):
    """Return the loss of every next token in windows (batch, token)."""
    logits = model(windows[:, :-1]).transpose(1, 2)  # (batch, vocab, token)
    return F.cross_entropy(logits, windows[:, 1:], reduction="none")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    folder = ROOT / "tutorial_lib" / "weights"
    names = ["english_gpt", *SIZES]
    parser.add_argument("--out", default=folder, type=Path, help="folder of the files")
    parser.add_argument("--only", choices=names, help="train this model alone")
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    for name in names if options.only is None else [options.only]:
        model = train_on_words(name) if name in SIZES else train_on_page()
        weights = {key: w.half() for key, w in model.state_dict().items()}
        save_file(weights, options.out / f"{name}.safetensors")


if __name__ == "__main__":
    main()
