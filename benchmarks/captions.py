"""Translation of real captions by their length: the figure that made the field change.

    python benchmarks/captions.py [--folder ../shared/data]

Three models learn to translate the English captions of Multi30k into French, in words:
an encoder and decoder with a fixed context vector, the same with attention, and a
Transformer. translation.py has the models and the training, which is longer here: 240 s
of CPU time each. Each model is tried at several learning rates, with dropout and
without, and validation sentences choose; these rows go to captions_search.csv.
With the settings chosen, models of three seeds translate 2,000 captions that none has
seen, greedily: the official test captions and a thousand training captions that were
kept apart. captions.csv has their BLEU by the length of the English caption, after
Bahdanau et al. (2015), figure 2.

The models of seed 1 also translate three captions that were written for this, and
captions.json keeps the translations, and for the first one the attention weights. The
data state no licence: neither their captions nor weights are kept.
"""

import argparse
import csv
import json
from dataclasses import asdict
from pathlib import Path

import torch
from records import append, provenance, read_done
from translation import (
    MODELS,
    Run,
    fingerprint,
    load,
    make_model,
    sentences,
    train,
    written_like,
)

from tutorial_lib.data.text import BOS, detokenize, pad, tokenize
from tutorial_lib.decoding import translate
from tutorial_lib.interpret import record_attention
from tutorial_lib.metrics import bleu

SECONDS = 240  # of CPU time, for training
SEEDS = (1, 2, 3)
LENGTHS = ((1, 8), (9, 11), (12, 14), (15, 18), (19, 99))  # English tokens
RATES = {
    "fixed context": (0.002, 0.004, 0.008),
    "attention": (0.002, 0.004, 0.008),
    "Transformer": (0.002, 0.004),
}
OURS = (
    "A young woman in a red jacket is riding a brown horse along the beach while two "
    "dogs run behind her.",
    "Two boys with blue backpacks are waiting for a bus in front of an old building.",
    "An old man with a white beard is sitting on a bench in the park and reading a "
    "newspaper.",
)
KEY = ("model", "learning_rate", "dropout", "seed")


def list_search():
    return [
        Run("multi30k", "words", model, rate, dropout, seed=0)
        for model in MODELS
        for rate in RATES[model]
        for dropout in (0.0, 0.2)
    ]


def list_comparison(rows):
    """Return for each model its best settings in the search, with each seed."""
    runs = []
    for model in MODELS:
        tried = [row for row in rows if row["model"] == model]
        best = max(tried, key=lambda row: float(row["bleu_valid"]))
        settings = float(best["learning_rate"]), float(best["dropout"])
        runs += [Run("multi30k", "words", model, *settings, seed) for seed in SEEDS]
    return runs


def fit_model(run, data):
    """Return a trained model, and what its training took."""
    torch.manual_seed(run.seed)
    model = make_model(run.model, data, run.dropout)
    trained = train(model, data, run, SECONDS)
    return model.eval(), trained


def score_lengths(model, data, pairs):
    """Return a row for each range of lengths, and one for all captions."""
    outputs = translate(model, [pair.source for pair in pairs], data)
    written = sentences(outputs)
    references = sentences([pair.target for pair in pairs])
    rows = []
    for least, most in (*LENGTHS, (1, 99)):
        chosen = [
            i for i, pair in enumerate(pairs) if least <= len(pair.source) <= most
        ]
        score = bleu([written[i] for i in chosen], [references[i] for i in chosen])
        rows.append(
            {
                "least_words": least,
                "most_words": most,
                "captions": len(chosen),
                "bleu": f"{score.score:.2f}",
            }
        )
    return rows


def translate_ours(model, data, name):
    """Translate the captions of ours; return words, and the first one's weights."""
    sources = [tokenize(caption, "en") for caption in OURS]
    outputs = translate(model, sources, data)
    result = {"translations": [detokenize(words) for words in outputs]}
    if name != "fixed context":
        result["source"] = sources[0]
        result["target"] = outputs[0]
        result["weights"] = weights_of(model, data, sources[0], outputs[0], name)
    return result


def weights_of(model, data, source, target, name):
    """Return the weights (target word, source word) with which a text is written."""
    tokens, lengths = pad([source], data.source_vocabulary)
    ids = data.target_vocabulary.encode(target)[: len(target)]
    inputs = torch.tensor([[BOS, *ids[:-1]]])
    with torch.no_grad(), record_attention(model) as maps:
        model(tokens, lengths, inputs)
    if name == "attention":
        [weights] = [map_ for place, map_ in maps.items() if "decoder" in place]
    else:  # the last layer's, on average over the heads
        weights = maps["decoder.layers.1.cross_attention"]
    weights = weights.reshape(-1, len(target), tokens.shape[1]).mean(dim=0)
    rounded = weights[:, : len(source)].double().round(decimals=3)
    return rounded.tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, help="of the data; without it: download")
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data, fresh = load("multi30k", "words", options.folder)
    unseen = [*data.test, *fresh]

    searched = options.out.with_stem(f"{options.out.stem}_search")
    done = read_done(searched, KEY)
    for run in list_search():
        row = {"seconds": SECONDS, **asdict(run)}
        if tuple(str(row[name]) for name in KEY) in done:
            continue
        model, trained = fit_model(run, data)
        valid = written_like(model, data, data.valid)
        append(searched, {**row, **trained, "bleu_valid": valid, **provenance()})

    with searched.open(newline="", encoding="utf-8") as file:
        runs = list_comparison([*csv.DictReader(file)])
    kept = options.out.with_suffix(".json")
    ours = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    ours["captions"] = OURS
    done = read_done(options.out, KEY)
    for run in runs:
        row = {"seconds": SECONDS, **asdict(run)}
        if tuple(str(row[name]) for name in KEY) in done:
            continue
        model, trained = fit_model(run, data)
        if run.seed == SEEDS[0]:
            ours[run.model] = translate_ours(model, data, run.model)
            text = json.dumps(ours, ensure_ascii=False, indent=1)
            kept.write_text(text + "\n", encoding="utf-8")
        about = {"data_sha256": fingerprint(data), **provenance()}
        for scores in score_lengths(model, data, unseen):
            append(options.out, {**row, **trained, **scores, **about})


if __name__ == "__main__":
    main()
