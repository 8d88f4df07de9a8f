"""Characters of Shakespeare: this book's Llama and GPT beside nanoGPT, in equal time.

    python benchmarks/gpt.py [--folder ../shared/data] [--nanogpt path/to/model.py]
                             [--workers 8]

nanoGPT is github.com/karpathy/nanoGPT; of it the model alone is used, the file model.py
of one commit, which is fetched unless there is a path to it. The text is the tiny
Shakespeare that nanoGPT's examples learn from: the first nine tenths to learn from, the
next twentieth to choose settings by, the last twentieth for the test. The folder holds
shakespeare/input.txt; without it the text is fetched. Training, data, optimizer and
schedule are the same for all; the clock is the process's CPU time, and the learning
rate follows it, so that a busy machine changes little.

"search" tries every combination of some settings for as long as the shortest training,
a learning rate and one that only the one model has, and scores it on the validation
text. Its rows go to gpt_search.csv. "text" trains each with what was best, anew for
each budget of time; the rows go to gpt_text.csv. "steps" lets all take turns at
training steps of the same size, and "writing" at drawing characters; these rows go to
gpt_steps.csv and gpt_writing.csv.

A row is written when it is finished, and what has its row is not repeated. Workers are
trainings side by side.
"""

import argparse
import contextlib
import csv
import importlib.util
import io
import itertools
import math
import multiprocessing
import statistics
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import torch
import torch.nn.functional as F
from records import Clock, append, provenance, read_done
from torch import nn

from tutorial_lib.attention import KVCache
from tutorial_lib.data.downloads import fetch, read_shakespeare
from tutorial_lib.decoding import generate, sample
from tutorial_lib.gpt import GPT
from tutorial_lib.llama import Llama
from tutorial_lib.training import fit, warmup_cosine

NANOGPT = (
    "https://raw.githubusercontent.com/karpathy/nanoGPT/"
    "3adf61e154c3fe3fca428ad6bc3818b27a3b8291/model.py",
    "7c01703240dbec5d554527dc666e35b3df8391d0b117fddc07afcf325a21d11c",
)
CONTENDERS = ("Llama", "GPT", "nanoGPT")
PARTS = ("search", "text", "steps", "writing")
TOKENS = 768  # in a batch: 12 texts of 64 characters in nanoGPT's example for a CPU
CONTEXT = 64  # characters; twice as many learn less in the time
SEARCH = {"learning_rate": (0.003, 0.006, 0.012), "variant": ("first", "second")}
BUDGETS = (60, 150, 300)  # CPU seconds
D_MODEL = 96
NUM_HEADS = 4
NUM_LAYERS = 4
WRITING = [(64, 1), (256, 1), (64, 16)]  # characters, texts
STEPS = [(96, 64, 12), (128, 64, 12), (192, 128, 8)]  # d_model, context, batch


class Text:
    """Shakespeare as numbers, in the parts train, valid and test."""

    def __init__(self, folder):
        text = read_shakespeare(folder=folder)
        self.characters = sorted({*text})
        number = {character: i for i, character in enumerate(self.characters)}
        tokens = torch.tensor([number[character] for character in text])
        cuts = len(tokens) * 18 // 20, len(tokens) // 20
        self.train, self.valid, self.test = tokens.split(
            [cuts[0], cuts[1], len(tokens) - sum(cuts)]
        )

    def batch(self, size, context, generator):
        """Draw texts (size, context + 1) of the training part."""
        last = len(self.train) - context
        starts = torch.randint(last, (size,), generator=generator)
        positions = starts[:, None] + torch.arange(context + 1)
        return self.train[positions.to(self.train.device)]


def squared_relu(x):
    return F.relu(x).square()


def make(
    name,
    vocab,
    published,
    *,
    variant,
    d_model=D_MODEL,
    context=CONTEXT,
    num_heads=NUM_HEADS,
    num_layers=NUM_LAYERS,
    dropout=0.0,
    **_,
):
    """Make a model; the second variant is what the contender offers beside its own.

    Our GPT exchanges GPT-2's activation for the squared ReLU, So et al. (2021), our
    Llama gives each head keys of its own, where the first shares them in pairs; nanoGPT
    leaves the biases out, which its comments call a bit better and faster.
    """
    if name == "Llama":
        model = Llama(
            vocab,
            d_model,
            num_heads,
            num_layers,
            num_kv_heads=num_heads if variant == "second" else num_heads // 2,
            d_ff=4 * math.ceil(2 * d_model / 3),
        )
        return initialize(model)
    if name == "GPT":
        model = GPT(vocab, d_model, num_heads, num_layers, max_tokens=context)
        if variant == "second":
            for layer in model.layers:
                layer.feed_forward.activation = squared_relu
        add_dropout(model, dropout)
        return initialize(model)
    config = published.GPTConfig(
        block_size=context,
        vocab_size=vocab,
        n_layer=num_layers,
        n_head=num_heads,
        n_embd=d_model,
        dropout=dropout,
        bias=variant == "first",
    )
    with contextlib.redirect_stdout(io.StringIO()):  # it prints its size
        return published.GPT(config)


def initialize(model):
    """Start as GPT-2 did: the deeper the model, the less a layer adds at first."""
    for name, weight in model.named_parameters():
        if name.endswith(("W_O.weight", "W_2.weight", "W_down.weight")):
            nn.init.normal_(weight, std=0.02 / (2 * len(model.layers)) ** 0.5)
        elif weight.ndim == 2:
            nn.init.normal_(weight, std=0.02)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)
    return model


def add_dropout(model, probability):
    """Drop parts of all embeddings and of what each sub-layer adds, in training."""

    def drop(module, inputs, output):
        return F.dropout(output, probability, module.training)

    model.token_embedding.register_forward_hook(drop)
    model.position_embedding.register_forward_hook(drop)
    for layer in model.layers:
        layer.attention.W_O.register_forward_hook(drop)
        layer.feed_forward.W_2.register_forward_hook(drop)


def loss_of(name):
    """Return the loss of a batch (batch, token + 1) as the contender computes it."""
    if name == "nanoGPT":
        return lambda model, batch: model(batch[:, :-1], batch[:, 1:].contiguous())[1]
    return lambda model, batch: F.cross_entropy(
        model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten()
    )


def adamw(model, rate):
    """Make the optimizer: matrices decay, and nothing else does, as in nanoGPT."""
    weights = [*model.parameters()]
    groups = [
        {"params": [x for x in weights if x.ndim >= 2], "weight_decay": 0.1},
        {"params": [x for x in weights if x.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, rate, betas=(0.9, 0.99), fused=True)


@torch.no_grad()
def bits_per_character(name, model, tokens, context=CONTEXT):
    """Return the mean bits per character, each after half a context at least."""
    half = context // 2
    total = 0.0
    texts = tokens[128 - half :].unfold(0, context + 1, half)  # all from 128 on
    was_training = model.training
    model.eval()
    for some in texts.split(64):
        inputs = some[:, :-1]
        targets = some[:, 1:].contiguous()
        logits = model(inputs) if name != "nanoGPT" else model(inputs, targets)[0]
        losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
        total += losses[:, half:].sum().item()
    model.train(was_training)
    return total / len(texts) / half / math.log(2)


def train_for(seconds, name, model, text, settings, seed):
    """Train until the CPU time is spent; return steps and seconds."""
    optimizer = adamw(model, settings["learning_rate"])
    generator = torch.Generator().manual_seed(seed)
    factor = warmup_cosine(50, 1000)
    clock = Clock()

    def until_spent():
        while clock.seconds() < seconds:
            yield text.batch(TOKENS // CONTEXT, CONTEXT, generator)

    history = fit(
        model,
        until_spent(),
        loss_of(name),
        optimizer=optimizer,
        epochs=1,  # of that stream
        schedule=lambda step: factor(1000 * clock.seconds() / seconds),
        seed=seed,
    )
    return len(history.losses), clock.seconds()


def load_nanogpt(path):
    """Import nanoGPT's model.py, which is fetched if there is no path to it."""
    spec = importlib.util.spec_from_file_location("nanogpt", path or fetch(*NANOGPT))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def list_search(path):
    """Return the arguments of every training of the search that has no row."""
    done = read_done(path, ("contender", *SEARCH))
    return [
        (name, dict(zip(SEARCH, values, strict=True)))
        for name in CONTENDERS
        for values in itertools.product(*SEARCH.values())
        if (name, *map(str, values)) not in done
    ]


def try_out(options, name, settings):
    """Return a row with the validation bits of some settings."""
    torch.set_num_threads(1)
    text = Text(options.folder)
    published = load_nanogpt(options.nanogpt)
    torch.manual_seed(0)
    model = make(name, len(text.characters), published, **settings)
    steps, spent = train_for(BUDGETS[0], name, model, text, settings, 0)
    bits = bits_per_character(name, model, text.valid)
    row = {"contender": name, **settings, "steps": steps, "bits_valid": f"{bits:.4f}"}
    return [row | {"cpu_seconds": f"{spent:.1f}", **provenance()}]


def side_by_side(path, workers, measure, arguments):
    """Call ``measure`` with each of the arguments, and append the rows it returns."""
    if workers == 1:
        for some in arguments:
            for row in measure(*some):
                append(path, row)
        return
    processes = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, processes) as pool:
        for finished in as_completed([pool.submit(measure, *x) for x in arguments]):
            for row in finished.result():
                append(path, row)


def found_settings(path, name):
    """Return the settings that were best on the validation text."""
    if not path.exists():
        raise SystemExit(f"no settings in {path}: run --only search first")
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["contender"] == name]
    best = min(rows, key=lambda row: float(row["bits_valid"]))
    return {key: type(values[0])(best[key]) for key, values in SEARCH.items()}


def measure_text(options, name, settings, seconds, seed):
    """Train one model for some CPU seconds; return how well it predicts, in a row."""
    torch.set_num_threads(1)
    text = Text(options.folder)
    published = load_nanogpt(options.nanogpt)
    torch.manual_seed(seed)
    model = make(name, len(text.characters), published, **settings)
    steps, spent = train_for(seconds, name, model, text, settings, seed)
    bits = bits_per_character(name, model, text.test)
    row = {"contender": name, "seconds": seconds, "seed": seed, "bits": f"{bits:.4f}"}
    row.update(settings | {"steps": steps, "cpu_seconds": f"{spent:.1f}"})
    row["parameters"] = sum(weight.numel() for weight in model.parameters())
    row["processes"] = 1
    return [row | provenance()]


def take_turns(calls, rounds):
    """Return the CPU seconds of each call, a list over rounds."""
    times = {name: [] for name in calls}
    for i in range(rounds):
        for name in list(calls)[:: 1 if i % 2 else -1]:  # nobody is always the first
            clock = Clock()
            calls[name]()
            times[name].append(clock.seconds())
    return {name: some[1:] for name, some in times.items()}  # the first warms up


def write_times(path, times, units, about):
    """Write a row for each contender: its speed, and its time in nanoGPT's."""
    for name, some in times.items():
        theirs = times["nanoGPT"]
        ratio = statistics.median(a / b for a, b in zip(some, theirs, strict=True))
        row = {**about, "contender": name, "ratio": f"{ratio:.3f}"}
        for unit, of in units.items():
            row[unit] = f"{of(statistics.median(some)):.1f}"
        append(path, row | {"rounds": len(some), **provenance()})


def run_steps(path, published, settings, rounds):
    """Time training steps of each contender at three sizes."""
    for d_model, context, batch in STEPS:
        calls = {}
        for name in CONTENDERS:
            size = settings[name] | {"d_model": d_model, "context": context}
            model = make(name, 65, published, **size)
            calls[name] = make_step(
                name, model, torch.randint(65, (batch, context + 1))
            )
        about = {"d_model": d_model, "context": context, "batch": batch}
        if tuple(map(str, about.values())) not in read_done(path, about):
            times = take_turns(calls, rounds)
            write_times(path, times, {"milliseconds": lambda t: 1000 * t / 5}, about)


def make_step(name, model, batch):
    """Close over five steps of training."""
    optimizer = adamw(model, 1e-6)
    loss = loss_of(name)

    def steps():
        for _ in range(5):
            optimizer.zero_grad()
            loss(model, batch).backward()
            optimizer.step()

    return steps


def run_writing(path, published, settings, rounds):
    """Time drawing as many characters as the context holds."""
    for context, texts in WRITING:
        models = {}
        for name in CONTENDERS:
            size = settings[name] | {"context": context}
            models[name] = make(name, 65, published, **size).eval()
        about = {"characters": context, "texts": texts}
        if tuple(map(str, about.values())) not in read_done(path, about):
            speed = {"characters_per_second": lambda t, n=context * texts: n / t}
            times = take_turns(ways_to_write(models, context, texts), rounds)
            write_times(path, times, speed, about)


def ways_to_write(models, length, texts):
    """Return calls that draw so many characters, with a cache and without."""
    first = torch.zeros(texts, 1, dtype=torch.long)

    def cached(model):
        generate(model, first, KVCache(), sample, max_new_tokens=length)

    @torch.no_grad()
    def recomputed(model):
        text = first
        for _ in range(length):
            probs = model(text[:, -length:])[:, -1].softmax(dim=-1)
            text = torch.cat((text, torch.multinomial(probs, 1)), dim=1)

    ways = {}
    for name in [name for name in models if name != "nanoGPT"]:
        ours = models[name]
        ways[name] = lambda ours=ours: cached(ours)
        ways[f"{name}, no cache"] = lambda ours=ours: recomputed(ours)
    return ways | {"nanoGPT": lambda: models["nanoGPT"].generate(first, length)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, help="of the data; without it: download")
    parser.add_argument("--nanogpt", type=Path, help="its model.py; else: download")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--seeds", type=int, default=3, help="runs of each model")
    parser.add_argument("--workers", type=int, default=1, help="trainings side by side")
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)

    def out(kind):
        return options.out.with_stem(f"{options.out.stem}_{kind}")

    parts = [options.only] if options.only else PARTS
    if "search" in parts:
        wanted = [(options, *some) for some in list_search(out("search"))]
        side_by_side(out("search"), options.workers, try_out, wanted)
    settings = {name: found_settings(out("search"), name) for name in CONTENDERS}
    if "text" in parts:
        done = read_done(out("text"), ("contender", "seconds", "seed"))
        wanted = [
            (options, name, settings[name], seconds, seed)
            for seconds in BUDGETS
            for seed in range(options.seeds)
            for name in CONTENDERS
            if (name, str(seconds), str(seed)) not in done
        ]
        side_by_side(out("text"), options.workers, measure_text, wanted)
    if "steps" in parts:
        run_steps(out("steps"), load_nanogpt(options.nanogpt), settings, rounds=15)
    if "writing" in parts:
        run_writing(out("writing"), load_nanogpt(options.nanogpt), settings, rounds=5)


if __name__ == "__main__":
    main()
