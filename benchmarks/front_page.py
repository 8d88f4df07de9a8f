"""The language model of the front page: a small Llama that writes like Shakespeare.

    python benchmarks/front_page.py [--folder ../shared/data] [--seconds 720]

It reads characters of the tiny Shakespeare, as benchmarks/gpt.py does. Muon moves the
matrices of its blocks and Adam the rest, at a learning rate that is chosen on
validation text: each of RATES for a twelfth of the time. The best is then trained for
all of it (CPU time), and its loss on the test text is measured once, with the weights
in 8 bits that the page has. Rows go to front_page.csv, and what the figure shows, with
a text that the model wrote, into book/diagrams/writing.json: the book's build makes the
live figure of it.
"""

import argparse
import base64
import csv
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from gpt import Text
from records import Clock, append, provenance, read_done

from tutorial_figures import show_writing
from tutorial_figures.writing import in_8_bits, with_weights
from tutorial_lib.llama import Llama

HERE = Path(__file__).parent
ROWS = HERE / "front_page.csv"
STORED = HERE.parent / "book/diagrams/writing.json"
CONTEXT = 128
BATCH = 24
RATES = 0.005, 0.01, 0.02
KEY = "part", "learning_rate", "seconds", "seed"
PROMPT = "To be, or not to be"


def make(characters):
    return Llama(len(characters), 64, 4, 4, num_kv_heads=4, d_ff=172)


def train(text, rate, seconds, seed):
    """Train a model for some seconds of CPU time; return it and its steps."""
    torch.manual_seed(seed)
    model = make(text.characters)
    generator = torch.Generator().manual_seed(seed)
    blocks = [x for x in model.layers.parameters() if x.ndim == 2]
    of_blocks = set(blocks)  # parameters are hashed by identity
    others = [x for x in model.parameters() if x not in of_blocks]
    optimizers = (
        torch.optim.Muon(blocks, lr=rate, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.95), weight_decay=0.0),
    )
    clock = Clock()
    steps = 0
    while True:
        past = clock.seconds() / seconds
        if past >= 1:
            return model, steps
        factor = min(1, (steps + 1) / 50, (1 - past) / 0.4)  # warm-up, then down to 0
        batch = text.batch(BATCH, CONTEXT, generator)
        loss = loss_of(model, batch)
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = factor * rate
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        steps += 1


def loss_of(model, batch):
    logits = model(batch[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())


@torch.no_grad()
def evaluate(model, tokens):
    """Return the mean loss, in nats a character, over all of a text in blocks."""
    blocks = tokens[: (len(tokens) - 1) // CONTEXT * CONTEXT].view(-1, CONTEXT)
    nexts = tokens[1 : blocks.numel() + 1].view(-1, CONTEXT)
    logits = [model(part) for part in blocks.split(64)]
    return F.cross_entropy(torch.cat(logits).flatten(0, 1), nexts.flatten()).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder")
    parser.add_argument("--seconds", type=int, default=720)
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = Text(options.folder)
    done = read_done(ROWS, KEY)
    for rate in RATES:
        key = "search", f"{rate}", f"{options.seconds // 12}", "0"
        if key not in done:
            model, steps = train(text, rate, options.seconds // 12, seed=0)
            write(key, steps, evaluate(model, text.valid), "")
    best = min(searched(options.seconds // 12), key=lambda row: float(row["valid"]))
    model, steps = train(text, float(best["learning_rate"]), options.seconds, seed=0)
    valid = evaluate(model, text.valid)
    in_8_bits(model).eval()
    key = "page", best["learning_rate"], f"{options.seconds}", "0"
    write(key, steps, valid, evaluate(model, text.test))
    store(model, text.characters)


def write(key, steps, valid, test):
    row = dict(zip(KEY, key, strict=True)) | {"steps": steps, "valid": f"{valid:.4f}"}
    row["test"] = test and f"{test:.4f}"
    append(ROWS, row | provenance())
    print(row)


def searched(seconds):
    """Return the rows of the search, which took so many seconds each."""
    with ROWS.open(newline="", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    return [r for r in rows if (r["part"], r["seconds"]) == ("search", f"{seconds}")]


def store(model, characters):
    """Store the figure for the front page."""
    figure = show_writing(model, characters, PROMPT, length=CONTEXT)
    record = {
        "name": figure.name,
        "shared": figure.shared,
        "text": figure.text,
        "png": base64.b64encode(figure.png).decode(),
        "data": figure.data,
    }
    STORED.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")


def stored_data():
    """Return what the stored figure is made of."""
    return json.loads(STORED.read_text(encoding="utf-8"))["data"]


def stored_model(data):
    """Make the library's model of the stored weights."""
    weights = base64.b64decode(data["weights"])
    return with_weights(make(data["words"]), data["spec"], weights).eval()


if __name__ == "__main__":
    main()
