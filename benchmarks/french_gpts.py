"""Train the small GPTs of French sentences that come with the book.

    python benchmarks/french_gpts.py [--out tutorial_lib/weights]

Chapter 12's is trained by the cells of its own page, with more steps. Those of the
excursion on speculative decoding predict words: a target model, a small draft model,
and two targets that were trained for a short time. All weights are stored in 16 bits.
"""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from tutorial_lib.data.french import french_sentences
from tutorial_lib.data.text import Vocabulary
from tutorial_lib.gpt import GPT
from tutorial_lib.training import fit, warmup_cosine

ROOT = Path(__file__).parents[1]
CHAPTER = ROOT / "notebooks" / "12_decoding_and_gpt.ipynb"
UP_TO = "train"  # the cell that trains
FEW_STEPS = "num_steps = 40"
STEPS = "num_steps = 800"


def train_chapter_12():
    """Run the cells of the page up to its training, with more steps."""
    names = {}
    for cell in json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and cell["id"] != "colab-setup":
            exec(source.replace(FEW_STEPS, STEPS), names)
        if cell["id"] == UP_TO:
            return names["model"]


def windows_of_words():
    """Return the vocabulary, and 32 inputs and targets a row: (window, 33)."""
    sentences = french_sentences(20_000, seed=0)
    vocabulary = Vocabulary(sentences)
    corpus = []
    for sentence in sentences:
        corpus += [*sentence, "<eos>"]
    tokens = torch.tensor(vocabulary.encode(corpus))
    return vocabulary, torch.stack(tokens.split(33)[:-1])


def loss(model, windows):
    """Return the loss of every next token in windows (batch, token)."""
    logits = model(windows[:, :-1]).transpose(1, 2)  # (batch, vocab, token)
    return F.cross_entropy(logits, windows[:, 1:], reduction="none")


def train_on_words(vocab_size, batches, *, d_model, num_layers, steps):
    model = GPT(vocab_size, d_model, d_model // 16, num_layers, max_tokens=32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    schedule = warmup_cosine(steps // 10, steps)
    fit(model, batches, loss, optimizer=optimizer, steps=steps, schedule=schedule)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    folder = ROOT / "tutorial_lib" / "weights"
    parser.add_argument("--out", default=folder, type=Path, help="folder of the files")
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    models = {"french_gpt": train_chapter_12()}

    torch.manual_seed(0)
    vocabulary, windows = windows_of_words()
    training = windows[200:]  # the page measures on the others
    batches = training[torch.randperm(len(training))].split(32)
    size = len(vocabulary)
    large = {"d_model": 64, "num_layers": 2}
    small = {"d_model": 32, "num_layers": 1}
    models["target"] = train_on_words(size, batches, **large, steps=600)
    models["draft"] = train_on_words(size, batches, **small, steps=600)
    models["target_150_steps"] = train_on_words(size, batches, **large, steps=150)
    models["target_300_steps"] = train_on_words(size, batches, **large, steps=300)

    for name, model in models.items():
        weights = {key: w.half() for key, w in model.state_dict().items()}
        save_file(weights, options.out / f"{name}.safetensors")


if __name__ == "__main__":
    main()
