"""A Sphinx extension: numbers on pages, taken from the benchmarks' tables.

``{result}`gpt.Llama.300` `` writes the number of this name. All are computed from
``benchmarks/*.csv`` when the book is built; a name that there is not stops the build.
"""

import csv
import functools
import statistics
from datetime import date
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

LOGGER = logging.getLogger(__name__)
CAPTIONS = {"terrier": 1, "roof": 4}  # of the five that a run of translation shows
VISION = {
    "small": "tutorial_lib",
    "large": "tutorial_lib, patches of 7",
    "convolutions": "convolutions",
}


class Result(SphinxRole):
    """Write a number by its name."""

    def run(self):
        """Return the number as text."""
        folder = Path(self.env.srcdir, "benchmarks")
        for path in sorted(folder.glob("*.csv")):
            self.env.note_dependency(str(path))
        known = results(folder)
        if self.text not in known:
            message = "there is no result %r in book/_ext/results.py"
            LOGGER.warning(message, self.text, location=self.get_location())
        return [nodes.Text(known.get(self.text, self.text))], []


@functools.cache
def results(folder):
    """Return the text of every number, by its name."""
    return {
        **translation(folder),
        **gpt(folder),
        **gpt_on_a_gpu(folder),
        **vision(folder),
        **real_model(folder),
    }


def read(folder, name, **wanted):
    """Return the rows of a table that have these values, as dictionaries."""
    with Path(folder, name).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if wanted.items() <= row.items()]


def column(rows, name):
    """Return a column as numbers."""
    return [float(row[name]) for row in rows]


def median(rows, name):
    """Return the median of a column."""
    return statistics.median(column(rows, name))


def in_range(numbers, form=".0f"):
    """Write the smallest and the largest number, or the one that both are."""
    ends = f"{min(numbers):{form}}", f"{max(numbers):{form}}"
    return " to ".join(dict.fromkeys(ends))


def translation(folder):
    """Return the numbers of translation from English into French."""
    rows = functools.partial(read, folder, "translation.csv")
    found = {}

    def score(data, units, model, name="bleu_beam_4"):
        return median(rows(data=data, units=units, model=model), name)

    gains = []
    losses = []
    for units in ("words", "subwords"):
        for name in ("bleu_beam_4", "bleu_fresh"):
            fixed = score("multi30k", units, "fixed context", name)
            gain = score("multi30k", units, "attention", name) - fixed
            found[f"translation.gain.{name}.{units}"] = f"{gain:.0f}"
            gains.append(gain)
    found["translation.gain"] = in_range(gains)
    for model in ("fixed context", "attention", "Transformer"):
        words = score("multi30k", "words", model)
        losses.append(words - score("multi30k", "subwords", model))
        sentences = rows(data="multi30k", units="words", model=model, seed="1")
        translated = sentences[0]["first_five"].split(" | ")
        for caption, number in CAPTIONS.items():
            found[f"translation.{caption}.{model}"] = translated[number]
    found["translation.subwords_lose"] = in_range(losses)

    captions = functools.partial(rows, data="multi30k", units="words")
    steps = median(captions(model="attention"), "steps")
    more = median(captions(model="fixed context"), "steps")
    found["translation.fewer_steps"] = f"{100 * (1 - steps / more):.0f}"
    attention = score("multi30k", "words", "attention")
    behind = attention - score("multi30k", "words", "Transformer")
    found["translation.captions.behind"] = f"{behind:.0f}"

    ahead = score("tatoeba", "words", "Transformer")
    over_fixed = ahead - score("tatoeba", "words", "fixed context")
    over_attention = ahead - score("tatoeba", "words", "attention")
    best = score("tatoeba", "subwords", "fixed context")
    found["translation.tatoeba.ahead"] = f"{over_fixed:.0f}"
    found["translation.tatoeba.ahead_of_fixed"] = f"{over_fixed:.1f}"
    found["translation.tatoeba.ahead_of_attention"] = f"{over_attention:.1f}"
    found["translation.tatoeba.fixed_with_subwords"] = f"{best:.1f}"
    pairs = int(rows(data="tatoeba")[0]["training_pairs"])
    found["translation.tatoeba.pairs"] = f"{pairs:,}"
    pairs = int(rows(data="multi30k")[0]["training_pairs"])
    found["translation.multi30k.pairs"] = f"{round(pairs, -3):,}"

    first = rows()[0]
    measured = date.fromisoformat(first["date"])
    found["translation.date"] = f"{measured:%B %Y}"
    found["translation.torch"] = first["torch"].split("+")[0]
    found["translation.machine"] = first["machine"]
    return {**found, **translation_search(folder)}


def translation_search(folder):
    """Return what the search for learning rates of translation met at its edges."""
    searched = functools.partial(read, folder, "translation_search.csv")
    kinds = {(row["data"], row["units"], row["model"]) for row in searched()}
    at_edge = 0
    for data, units, model in kinds:
        tried = searched(data=data, units=units, model=model)
        best = max(tried, key=lambda row: float(row["bleu_valid"]))
        rates = column(tried, "learning_rate")
        at_edge += float(best["learning_rate"]) in (min(rates), max(rates))
    lost = []
    for row in read(folder, "translation_beyond.csv"):
        tried = searched(data=row["data"], units=row["units"], model=row["model"])
        lost.append(max(column(tried, "bleu_valid")) - float(row["bleu_valid"]))
    return {
        "translation.combinations": str(len(kinds)),
        "translation.at_edge": str(at_edge),
        "translation.beyond": in_range(lost),
    }


def gpt(folder):
    """Return the numbers of Llama, GPT and nanoGPT on a processor core."""
    found = {}
    bits = {}
    for model in ("Llama", "GPT", "nanoGPT"):
        for seconds in ("60", "150", "300"):
            rows = read(folder, "gpt_text.csv", contender=model, seconds=seconds)
            bits[model] = median(rows, "bits")  # in the end that of the longest time
            found[f"gpt.{model}.{seconds}"] = f"{bits[model]:.2f}"
            found[f"gpt.{model}.learning_rate"] = rows[0]["learning_rate"]
        steps = read(folder, "gpt_steps.csv", contender=model)
        longer = [100 * (ratio - 1) for ratio in column(steps, "ratio")]
        found[f"gpt.{model}.step_takes_longer"] = in_range(longer)
    found["gpt.GPT.behind"] = f"{bits['GPT'] - bits['nanoGPT']:.2f}"
    found["gpt.Llama.ahead"] = f"{bits['nanoGPT'] - bits['Llama']:.2f}"
    for row in read(folder, "gpt_writing.csv", contender="GPT"):
        name = f"gpt.speed.{row['characters']}.{row['texts']}"
        found[name] = f"{1 / float(row['ratio']):.2f}"
    return found


def gpt_on_a_gpu(folder):
    """Return the numbers of GPT and nanoGPT at the size of nanoGPT's example."""
    found = {}
    for model in ("GPT", "nanoGPT"):
        rows = read(folder, "gpt_gpu.csv", contender=model)
        for name in ("bits_test", "bits_valid", "bits_valid_end", "best_step"):
            form = ",.0f" if name == "best_step" else ".2f"
            numbers = [f"{number:{form}}" for number in sorted(column(rows, name))]
            found[f"gpu.{model}.{name}"] = " and ".join(dict.fromkeys(numbers))
        valid = column(rows, "bits_valid")
        last_tenth = statistics.mean(valid + column(rows, "bits_test"))
        found[f"gpu.{model}.last_tenth"] = f"{last_tenth:.2f}"
    return found


def vision(folder):
    """Return the numbers of three models on photographs of clothes."""
    rows = functools.partial(read, folder, "vision.csv")
    found = {}
    accuracy = {}
    for name, model in VISION.items():
        trained = rows(model=model, learning_rate="0.004")
        percents = [100 * share for share in column(trained, "accuracy")]
        accuracy[name] = statistics.median(percents)
        training = 100 * median(trained, "accuracy_training")
        speed = round(median(trained, "images_per_second_training"), -1)
        parameters = int(trained[0]["parameters"])
        found[f"vision.{name}.accuracy"] = f"{accuracy[name]:.1f}"
        found[f"vision.{name}.range"] = in_range(percents, ".1f")
        found[f"vision.{name}.training"] = f"{training:.0f}"
        found[f"vision.{name}.speed"] = f"{speed:,.0f}"
        found[f"vision.{name}.parameters"] = f"{parameters:,}"
    for name in ("small", "large"):
        behind = accuracy["convolutions"] - accuracy[name]
        found[f"vision.{name}.behind"] = str(int(behind))
    for name in ("tutorial_lib", "torchvision"):
        trained = rows(model=name, learning_rate="0.002")
        percent = 100 * median(trained, "accuracy")
        found[f"vision.half_the_rate.{name}"] = f"{percent:.1f}"
    half = median(rows(model="tutorial_lib", learning_rate="0.002"), "epochs")
    whole = median(rows(model="tutorial_lib", learning_rate="0.004"), "epochs")
    found["vision.half_the_rate.images"] = f"{half / whole:.1f}"
    steps = read(folder, "vision_steps.csv", contender="tutorial_lib")
    found["vision.step"] = in_range(column(steps, "time_ratio"), ".2f")
    return found


def real_model(folder):
    """Return how fast a published model generates, with its KV cache and without."""
    rows = functools.partial(read, folder, "real_model.csv")
    found = {}
    for length in ("50", "200"):
        seconds = {}
        for name, cache in (("cache", "KV cache"), ("none", "none")):
            runs = rows(cache=cache, new_tokens=length)
            seconds[name] = median(runs, "cpu_seconds")
            speed = int(length) / seconds[name]
            found[f"real_model.{name}.{length}.seconds"] = f"{seconds[name]:.1f}"
            found[f"real_model.{name}.{length}.speed"] = f"{speed:.1f}"
        faster = seconds["none"] / seconds["cache"]
        found[f"real_model.faster.{length}"] = f"{faster:.1f}"
        cached = rows(cache="KV cache", new_tokens=length)
        [size] = {int(row["cache_bytes"]) for row in cached}
        found[f"real_model.cache.{length}.megabytes"] = f"{size / 1e6:.1f}"
    first = rows(cache="KV cache", new_tokens="200")[0]
    prompt_tokens = int(first["prompt_tokens"])
    tokens = prompt_tokens + 200 - 1  # the last one was not read
    bytes_per_token = int(first["cache_bytes"]) // tokens
    found["real_model.prompt_tokens"] = str(prompt_tokens)
    found["real_model.bytes_per_token"] = f"{bytes_per_token:,}"
    found["real_model.runs"] = str(len(rows(cache="none", new_tokens="200")))
    found["real_model.machine"] = first["machine"]
    found["real_model.date"] = f"{date.fromisoformat(first['date']):%B %Y}"
    return found


def setup(app):
    """Register the role."""
    app.add_role("result", Result())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
