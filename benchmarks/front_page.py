"""The language model of the front page: a small Llama that writes like Shakespeare.

    python benchmarks/front_page.py [--folder ../shared/data] [--seconds 720] [--keep]

It reads characters of the tiny Shakespeare, as benchmarks/gpt.py does. Muon moves the
matrices of its blocks and Adam the rest, at a learning rate that is chosen on
validation text: each of RATES for a twelfth of the time. The best is then trained for
all of it (CPU time), and its loss on the test text is measured once, with the weights
in 8 bits that the page has. Rows go to front_page.csv. What the figure shows, with a
text that the model wrote, goes into book/diagrams/writing.json, and the weights into a
script of their own: the book's build makes the live figure of both.

Then its heads are looked at. On four texts, the validation and the test text, what the
model itself writes, and the licence of this book, which is no play, the share of each
head's attention is measured that goes to each of some kinds of characters (KINDS). A
head is called by a kind that has at least half of its attention on every text, and on
none as much if a head attended to all alike. And each head is switched off, to measure
the loss on the test text without it. Rows go to front_page_heads.csv. With --keep the
weights that are stored are measured again, and nothing is trained.
"""

import argparse
import base64
import csv
import json
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from gpt import Text
from records import Clock, append, provenance, read_done

from tutorial_figures import show_writing
from tutorial_figures.fragment import weights_script
from tutorial_figures.writing import encode, in_8_bits, with_weights
from tutorial_lib.attention import KVCache
from tutorial_lib.decoding import generate, sample
from tutorial_lib.interpret import ablate_head, record_attention
from tutorial_lib.llama import Llama

HERE = Path(__file__).parent
ROWS = HERE / "front_page.csv"
HEADS = HERE / "front_page_heads.csv"
STORED = HERE.parent / "book/diagrams/writing.json"
WEIGHTS = HERE.parent / "book/_static/shakespeare_weights.js"
CONTEXT = 128
BATCH = 24
RATES = 0.005, 0.01, 0.02
KEY = "part", "learning_rate", "seconds", "seed"
PROMPT = "To be, or not to be"
TEMPERATURE = 0.8
# A line of The Tempest, a play in the test text, which is shown with what precedes it.
LINE = "Full fathom five thy father lies;"
BEFORE = 64  # characters
SAMPLES = 40  # blocks of a text in which attention is measured
FIRST = 16  # the first query of a block that is measured


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
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = Text(options.folder)
    if options.keep:
        model = stored_model(stored_data())
    else:
        model = search_and_train(text, options)
    store(model, text)


def search_and_train(text, options):
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
    return model


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


# --- What heads attend to ---------------------------------------------------------


def is_previous(characters, distance):
    return distance == 1


def is_two_or_three_back(characters, distance):
    return (distance == 2) | (distance == 3)


def is_same(characters, distance):
    return (characters[:, None] == characters) & (distance > 0)


def is_after_same(characters, distance):
    before = np.roll(characters, 1)
    before[0] = ""
    return (characters[:, None] == before) & (distance >= 0)


def is_line_start(characters, distance):
    return distance == since_last(characters == "\n") - 1


def is_line_end(characters, distance):
    return (characters == "\n") & (distance >= 0)


def is_end_of_word(characters, distance):
    no_letter = [not character.isalpha() for character in characters]
    return np.array(no_letter) & (distance >= 0)


def since_last(marked):
    """Return how far back the last marked character lies, as a column."""
    positions = np.arange(len(marked))
    last = np.maximum.accumulate(np.where(marked, positions, -1))
    return (positions - last)[:, None]


# A head is called by the first of these that fits.
KINDS = {
    "previous character": is_previous,
    "two or three back": is_two_or_three_back,
    "same character": is_same,
    "after the same character": is_after_same,
    "line start": is_line_start,
    "line ends": is_line_end,
    "ends of words": is_end_of_word,
}
EVEN = "whole text, evenly"


@torch.no_grad()
def shares_of(model, tokens, characters):
    """Return for each kind the share (head,) of attention, and that of even attention.

    Of "whole text, evenly" it is the part that a head has in common with even
    attention. Queries for which there is no character of a kind are left out.
    """
    with record_attention(model) as maps:
        model(tokens[None])
    weights = torch.cat([layer[0] for layer in maps.values()]).numpy()
    positions = np.arange(len(tokens))
    distance = positions[:, None] - positions  # (query, key)
    even = (distance >= 0) / (positions + 1)[:, None]
    shares = {}
    for name, is_kind in KINDS.items():
        wanted = is_kind(characters, distance)
        asked = wanted.any(axis=1) & (positions >= FIRST)
        given = (weights * wanted)[:, asked].sum(axis=2)  # (head, query)
        shares[name] = given, (even * wanted)[asked].sum(axis=1)
    common = np.minimum(weights, even)[:, FIRST:].sum(axis=2)
    shares[EVEN] = common, np.zeros(0)
    return shares


def texts_of(model, text):
    """Return the texts in which attention is measured, as token ids."""
    licence = (HERE.parent / "LICENSE").read_text(encoding="utf-8")
    known = [letter for letter in licence if letter in text.characters]
    starts = text.test[: SAMPLES * CONTEXT : CONTEXT, None]
    options = {"max_new_tokens": CONTEXT - 1, "eos": -1, "temperature": TEMPERATURE}
    with torch.no_grad():
        written = generate(model, starts, KVCache(), sample, **options)
    return {
        "validation": text.valid,
        "test": text.test,
        "written": torch.cat([starts, written], dim=1).flatten(),
        "licence": torch.tensor(encode(known, text.characters)),
    }


def measure_heads(model, text):
    """Return a row for each head, kind and text: the share of its attention."""
    torch.manual_seed(0)
    characters = np.array(text.characters)
    heads = [(layer, head) for layer in range(4) for head in range(4)]
    rows = []
    for name, tokens in texts_of(model, text).items():
        starts = torch.linspace(0, len(tokens) - CONTEXT, SAMPLES).long()
        parts = {}
        for start in starts.tolist():
            block = tokens[start : start + CONTEXT]
            shares = shares_of(model, block, characters[block.numpy()])
            for kind, share in shares.items():
                parts.setdefault(kind, []).append(share)
        for kind, both in parts.items():
            given = np.concatenate([share for share, _ in both], axis=1).mean(axis=1)
            even = np.concatenate([share for _, share in both])
            for (layer, head), share in zip(heads, given, strict=True):
                row = {"layer": layer, "head": head, "kind": kind, "text": name}
                row["share"] = f"{share:.3f}"
                row["even"] = f"{even.mean():.3f}" if len(even) else ""
                rows.append(row)
    return rows


def names_of(rows):
    """Map (layer, head) to the first kind that has half of its attention everywhere."""
    shares = {}
    for row in rows:
        head = int(row["layer"]), int(row["head"])
        kinds = shares.setdefault(head, {})
        fits = float(row["share"]) >= 0.5 > float(row["even"] or 0)
        kinds[row["kind"]] = kinds.get(row["kind"], True) and fits
    names = {}
    for head, kinds in shares.items():
        fitting = [kind for kind in [*KINDS, EVEN] if kinds.get(kind)]
        if fitting:
            names[head] = fitting[0]
    return names


def losses_without(model, tokens):
    """Return a row for each head: the loss on a text without it."""
    rows = []
    for layer in range(4):
        for head in range(4):
            W_O = model.layers[layer].attention.W_O
            with ablate_head(W_O, head, 4):
                loss = evaluate(model, tokens)
            row = {"layer": layer, "head": head, "kind": "switched off", "text": "test"}
            rows.append(row | {"share": f"{loss:.4f}", "even": ""})
    return rows


# --- What the page has ------------------------------------------------------------


def store(model, text):
    """Measure the heads, and store the figure and its weights for the front page."""
    rows = measure_heads(model, text)
    with HEADS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows + losses_without(model, text.test))
    figure = figure_of(model, text.characters, names_of(rows), line_of(text))
    data = figure.data
    record = {
        "name": figure.name,
        "shared": figure.shared,
        "text": figure.text,
        "png": base64.b64encode(figure.png).decode(),
        "weights_file": WEIGHTS.name,
        "data": {key: data[key] for key in data if key != "weights"},
    }
    STORED.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")
    script = weights_script(WEIGHTS.stem, data["weights"])
    WEIGHTS.write_text(f"{MADE_BY}\n{script}", encoding="utf-8")


MADE_BY = "// Made by benchmarks/front_page.py: the weights of the front page's model."


def figure_of(model, characters, names, line):
    return show_writing(
        model,
        characters,
        PROMPT,
        length=CONTEXT,
        temperature=TEMPERATURE,
        head_names=names,
        line=line,
        autoplay=True,
    )


def line_of(text):
    """Return what stands before LINE in the test text, and LINE."""
    test = "".join(text.characters[token] for token in text.test)
    start = test.index(LINE)
    return test[start - BEFORE : start], LINE


def stored_data():
    """Return what the stored figure is made of."""
    data = json.loads(STORED.read_text(encoding="utf-8"))["data"]
    weights = WEIGHTS.read_text(encoding="utf-8").rsplit('"', 2)[1]
    return data | {"weights": weights}


def stored_model(data):
    """Make the library's model of the stored weights."""
    weights = base64.b64decode(data["weights"])
    return with_weights(make(data["words"]), data["spec"], weights).eval()


if __name__ == "__main__":
    main()
