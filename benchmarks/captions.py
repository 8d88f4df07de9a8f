"""Translation of real captions by their length: the figure that made the field change.

    python benchmarks/captions.py [--folder ../shared/data]

Three models learn to translate the English captions of Multi30k into French, in words:
an encoder and decoder with a fixed context vector, the same with attention, and a
Transformer. translation.py has the models and their training, 96 s of CPU time each,
and its search has chosen learning rate and dropout on validation sentences, of six
settings for each model (translation_search.csv; the Transformer was pre-norm there and
is post-norm now). Models of another seed translate 2,000 captions that none has seen,
greedily: the official test captions and a thousand training captions that were kept
apart. captions.csv has their BLEU by the length of the English caption, after Bahdanau
et al. (2015), figure 2.

They also translate three captions that were written for this. What the book shows of it
all, scores, translations and the attention weights of the first caption, goes to
tutorial_lib/data/captions.json. The data state no licence: neither their captions nor
weights are kept.
"""

import argparse
import csv
import json
import statistics
from dataclasses import asdict
from pathlib import Path

import torch
from records import append, provenance, read_done
from translation import (
    MODELS,
    fingerprint,
    list_comparison,
    load,
    make_model,
    sentences,
    train,
)

from tutorial_lib.data.text import BOS, detokenize, pad, tokenize
from tutorial_lib.decoding import translate
from tutorial_lib.interpret import record_attention
from tutorial_lib.metrics import bleu

SEEDS = 1
LENGTHS = ((1, 8), (9, 11), (12, 14), (15, 18), (19, 99))  # English tokens
OURS = (
    "Two boys with blue backpacks are waiting for a bus in front of an old building.",
    "A young woman in a red jacket is riding a brown horse along the beach while two "
    "dogs run behind her.",
    "An old man with a white beard is sitting on a bench in the park and reading a "
    "newspaper.",
)
SHOWN = Path(__file__).parents[1] / "tutorial_lib" / "data" / "captions.json"
KEY = ("model", "learning_rate", "dropout", "seed")


def fit_model(run, data):
    """Return a trained model, and what its training took."""
    torch.manual_seed(run.seed)
    model = make_model(run.model, data, run.dropout)
    trained = train(model, data, run)
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
        words = statistics.mean(len(pairs[i].source) for i in chosen)
        rows.append(
            {
                "least_words": least,
                "most_words": most,
                "mean_words": f"{words:.2f}",
                "captions": len(chosen),
                "bleu": f"{score.score:.2f}",
            }
        )
    return rows


def translate_ours(shown, model, data, name):
    """Add to what is shown the captions of ours, and the first one's weights."""
    sources = [tokenize(caption, "en") for caption in OURS]
    outputs = translate(model, sources, data)
    texts = [detokenize(words) for words in outputs]
    shown.setdefault("translations", {})[name] = texts
    if name != "fixed context":
        shown.setdefault("maps", {})[name] = {
            "source": sources[0],
            "target": outputs[0],
            "weights": weights_of(model, data, sources[0], outputs[0], name),
        }


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


def summarize(rows):
    """Return mean BLEU over the seeds by model and length, for the book's figure."""
    shown = {"words": [], "captions": [], "bleu": {}, "bleu_of_all": {}}
    for model in dict.fromkeys(row["model"] for row in rows):
        scores = []
        for least, most in (*LENGTHS, (1, 99)):
            measured = [
                row
                for row in rows
                if row["model"] == model
                and (int(row["least_words"]), int(row["most_words"])) == (least, most)
            ]
            scores.append(
                round(statistics.mean(float(row["bleu"]) for row in measured), 1)
            )
            if model == MODELS[0] and (least, most) in LENGTHS:
                shown["words"].append(float(measured[0]["mean_words"]))
                shown["captions"].append(int(measured[0]["captions"]))
        *shown["bleu"][model], shown["bleu_of_all"][model] = scores
    return shown


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, help="of the data; without it: download")
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data, fresh = load("multi30k", "words", options.folder)
    unseen = sorted([*data.test, *fresh], key=lambda pair: len(pair.source))

    search = read(Path(__file__).with_name("translation_search.csv"))
    runs = [
        run
        for run in list_comparison(search, SEEDS)
        if (run.data, run.units) == ("multi30k", "words")
    ]
    shown = json.loads(SHOWN.read_text(encoding="utf-8")) if SHOWN.exists() else {}
    shown["ours"] = OURS
    done = read_done(options.out, KEY)
    for run in runs:
        row = asdict(run)
        if tuple(str(row[name]) for name in KEY) in done:
            continue
        model, trained = fit_model(run, data)
        if run.seed == 1:
            translate_ours(shown, model, data, run.model)
            write(shown)
        about = {"data_sha256": fingerprint(data), **provenance()}
        for scores in score_lengths(model, data, unseen):
            append(options.out, {**row, **trained, **scores, **about})
        shown.update(summarize(read(options.out)))
        write(shown)


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return [*csv.DictReader(file)]


def write(shown):
    text = json.dumps(shown, ensure_ascii=False)
    SHOWN.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
