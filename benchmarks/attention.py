"""Time and memory of multi-head attention against the fastest way torch has.

    python benchmarks/attention.py [--seconds 8] [--out benchmarks/attention.csv]

The limit is four ``nn.Linear`` around ``F.scaled_dot_product_attention``. Against it
run this book's layer with nobody watching, ``torch.nn.MultiheadAttention`` with and
without weights, and a textbook softmax attention. All take turns within one run, on
one thread, so that whatever else the machine does hits all of them; a ratio is the
median over rounds. Memory is the peak of what a call allocates.
"""

import argparse
import csv
import datetime
import json
import platform
import statistics
import tempfile
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.masks import causal_mask, padding_mask

SIZES = [  # batch, token, d_model, num_heads
    (64, 10, 256, 4),
    (32, 50, 256, 4),
    (8, 256, 256, 4),
    (2, 1024, 256, 4),
    (1, 4096, 64, 4),
]
MASKS = ("none", "length", "causal")


class Limit(nn.Module):
    """The least work that gives the answer: four products and the fused kernel."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.projections = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))

    def split_heads(self, projected):
        return projected.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x, mask):
        W_Q, W_K, W_V, W_O = self.projections
        Q, K, V = (self.split_heads(W(x)) for W in (W_Q, W_K, W_V))
        return W_O(self.attend(Q, K, V, mask).transpose(1, 2).flatten(2))

    def attend(self, Q, K, V, mask):
        seen = None if isinstance(mask, str) else mask[:, None]
        causal = mask == "causal" if isinstance(mask, str) else False
        return F.scaled_dot_product_attention(Q, K, V, seen, is_causal=causal)


class Explicit(Limit):
    """Softmax attention as textbooks write it, all weights in memory."""

    def attend(self, Q, K, V, mask):
        scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        if not isinstance(mask, str):
            scores = scores.masked_fill(~mask[:, None], float("-inf"))
        elif mask == "causal":
            scores = scores.masked_fill(~causal_mask(Q.shape[-2]), float("-inf"))
        return scores.softmax(-1) @ V


class Ours(nn.Module):
    """The layer of this book while nobody watches."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)

    def forward(self, x, mask):
        if mask == "causal":
            mask = causal_mask(x.shape[1])
        elif mask == "none":
            mask = None
        return self.attention(x, x, x, mask)


class Torchs(nn.Module):
    """torch.nn.MultiheadAttention, returning its weights or not."""

    def __init__(self, d_model, num_heads, *, weights):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, num_heads, batch_first=True)
        self.weights = weights

    def forward(self, x, mask):
        options = {"need_weights": self.weights}
        if not isinstance(mask, str):
            options["key_padding_mask"] = ~mask[:, 0]
        elif mask == "causal":
            options["attn_mask"] = ~causal_mask(x.shape[1])
            options["is_causal"] = not self.weights
        return self.attention(x, x, x, **options)[0]


CONTENDERS = {
    "limit": Limit,
    "tutorial_lib": Ours,
    "torch_without_weights": lambda *sizes: Torchs(*sizes, weights=False),
    "torch_with_weights": lambda *sizes: Torchs(*sizes, weights=True),
    "explicit": Explicit,
}


def make_mask(name, batch, token):
    """Return the name itself where no tensor is needed, else (batch, 1, key)."""
    if name != "length":
        return name
    return padding_mask(torch.linspace(token // 2, token, batch).long(), token)


def make_call(model, x, mask, backward):
    """Close over one step of work; forward alone runs without a graph."""

    def forward():
        with torch.no_grad():
            model(x, mask)

    def both():
        model.zero_grad()
        model(x, mask).sum().backward()

    return both if backward else forward


def seconds_of(call, repeats):
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def interleave(calls, seconds):
    """Let the calls take turns for about ``seconds``; return a list of times each."""
    once = {name: seconds_of(call, 2) for name, call in calls.items()}
    repeats = {name: max(1, round(0.02 / t)) for name, t in once.items()}
    a_round = sum(once[name] * repeats[name] for name in calls)
    times = {name: [] for name in calls}
    for i in range(max(9, int(seconds / a_round))):
        names = list(calls)[:: 1 if i % 2 else -1]  # nobody always follows the slowest
        for name in names:
            times[name].append(seconds_of(calls[name], repeats[name]))
    return times


def peak_megabytes(call):
    """Return the most memory that one call holds beyond what it started with."""
    activity = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activity, profile_memory=True) as profile:
        call()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    held = peak = 0
    memory = [event for event in events if event.get("name") == "[memory]"]
    for event in sorted(memory, key=lambda event: event["ts"]):
        held += event["args"]["Bytes"]
        peak = max(peak, held)
    return peak / 2**20


def measure(size, mask, backward, seconds):
    """Yield one row of results for each contender."""
    batch, token, d_model, num_heads = size
    torch.manual_seed(0)
    x = torch.randn(batch, token, d_model)
    mask_tensor = make_mask(mask, batch, token)
    calls = {
        name: make_call(make(d_model, num_heads), x, mask_tensor, backward)
        for name, make in CONTENDERS.items()
    }
    times = interleave(calls, seconds)
    memory = {name: peak_megabytes(call) for name, call in calls.items()}
    for name in calls:
        pairs = zip(times[name], times["limit"], strict=True)
        ratio = statistics.median(one / limit for one, limit in pairs)
        yield {
            **dict(zip(("batch", "token", "d_model", "heads"), size, strict=True)),
            "mask": mask,
            "pass": "forward+backward" if backward else "forward",
            "contender": name,
            "milliseconds": f"{1000 * statistics.median(times[name]):.3f}",
            "time_ratio": f"{ratio:.3f}",
            "peak_megabytes": f"{memory[name]:.2f}",
            "memory_ratio": f"{memory[name] / memory['limit']:.3f}",
            "rounds": len(times[name]),
        }


def provenance():
    """Say on what, with what and when the numbers were measured."""
    lines = Path("/proc/cpuinfo")
    model = [line for line in lines.read_text().splitlines() if "model name" in line]
    return {
        "machine": model[0].split(": ")[1] if model else platform.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=8, help="for each comparison")
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    cases = [(s, m, b) for s in SIZES for m in MASKS for b in (False, True)]
    rows = []
    for size, mask, backward in tqdm(cases, unit="case"):
        for row in measure(size, mask, backward, options.seconds):
            rows.append({**row, **provenance()})
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    ours = [row for row in rows if row["contender"] == "tutorial_lib"]
    for figure in ("time_ratio", "memory_ratio"):
        worst = max(float(row[figure]) for row in ours)
        print(f"worst {figure} of tutorial_lib to the limit: {worst:.3f}")


if __name__ == "__main__":
    main()
