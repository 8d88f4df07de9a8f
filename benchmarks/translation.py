"""Translation of real sentences: three models, and two protocols.

    python benchmarks/translation.py [--folder ../shared/data] [--only tatoeba]

The folder holds tatoeba/fra.txt and the files of Multi30k in multi30k/; without it both
are downloaded. Every run is a row of translation.csv, written when it is finished; a
run that has its row is not repeated, so that an interrupted benchmark goes on.

In the protocol "held out" a model trains for 96 s and is tested on sentences that it
never saw. The clock is the process's CPU time, and the learning rate follows it, so
that a busy machine changes little. How the loss fell meanwhile goes to
translation_curves.csv. The protocol "512 pairs" is that of a well-known
textbook, Dive into Deep Learning: 30 epochs on the first 512 pairs of the file, no word
about other sentences. Both are scored on the same sentences here.
"""

import argparse
import collections
import dataclasses
import hashlib
import math
import statistics
from pathlib import Path

import torch
from records import Clock, append, provenance, read_done
from torch import nn

from tutorial_lib import transformer
from tutorial_lib.data import Vocabulary, detokenize, load_translation, tokenize
from tutorial_lib.data.downloads import read_tatoeba
from tutorial_lib.decoding import translate
from tutorial_lib.metrics import bleu, exact_match
from tutorial_lib.progress_bar import progress_bar
from tutorial_lib.seq2seq import AttentionDecoder, Decoder, Encoder, Seq2Seq
from tutorial_lib.training import fit, token_losses, warmup_cosine

SECONDS = 96  # of CPU time, for training
FIRST = 5000  # lines of Tatoeba's file, in which short sentences come first
TEXTBOOK = 512  # pairs
RECIPES = {  # what differs between the data: for recurrent networks, then Transformers
    "tatoeba": {"dropout": 0.3, "learning_rate": 0.004, "tokens": 500},
    "multi30k": {"dropout": 0.0, "learning_rate": 0.008, "tokens": 500},
}
TRANSFORMER_RECIPES = {
    "tatoeba": {"dropout": 0.1, "learning_rate": 0.002, "tokens": 500},
    "multi30k": {
        "dropout": 0.0,
        "learning_rate": 0.003,
        "tokens": 250,
        "betas": (0.9, 0.98),
    },
}
MODELS = {  # by protocol
    "held out": ("fixed context", "attention", "Transformer"),
    "512 pairs": ("fixed context", "attention"),
}
KEY = ("data", "protocol", "model", "seed")
PARTS = 20  # of the time, each a point of the learning curve


def list_runs(seeds):
    """Return (data, protocol, model, seed) of every run, one seed after the other."""
    kinds = [
        ("tatoeba", "held out"),
        ("multi30k", "held out"),
        ("tatoeba", "512 pairs"),
    ]
    return [
        (data, protocol, model, seed)
        for seed in range(seeds)
        for data, protocol in kinds
        for model in MODELS[protocol]
    ]


def load(name, protocol, folder):
    folder = folder and folder / name
    if name == "multi30k":
        return load_translation("multi30k", folder=folder)
    data = load_translation("tatoeba", first=FIRST, folder=folder)
    return data if protocol == "held out" else keep_first(data, folder)


def keep_first(data, folder):
    """Train on the first 512 pairs of the file that are not held out, and no others."""
    places = {}
    english, french, _ = read_tatoeba(folder=folder, first=FIRST)
    for i, (source, target) in enumerate(zip(english, french, strict=True)):
        places[tuple(tokenize(source, "en")), tuple(tokenize(target, "fr"))] = i
    train = sorted(data.train, key=lambda pair: places[pair.source, pair.target])
    train = train[:TEXTBOOK]
    return dataclasses.replace(
        data,
        train=train,
        source_vocabulary=Vocabulary((pair.source for pair in train), min_count=2),
        target_vocabulary=Vocabulary((pair.target for pair in train), min_count=2),
    )


def make_model(name, data, dropout):
    """Make a translator that reads and writes French with one table of words.

    Press and Wolf (2017): the words' vectors are then learned from every prediction,
    not only where a word stands in the input.
    """
    if name == "Transformer":
        return make_transformer(data, dropout)
    encoder = Encoder(len(data.source_vocabulary), 256, 128, dropout=dropout)
    sizes = (len(data.target_vocabulary), 256, 256, 2 * 128)
    if name == "attention":
        decoder = AttentionDecoder(*sizes, 128, dropout=dropout)
    else:
        decoder = Decoder(*sizes, dropout=dropout)
    decoder.vocab.weight = decoder.embedding.weight
    nn.init.normal_(decoder.embedding.weight, std=0.15)  # so that logits begin small
    return Seq2Seq(encoder, decoder)


def make_transformer(data, dropout):
    """Make a Transformer with the norm first and one table of French words."""
    sizes = (128, 4, 256, 2)  # d_model, heads, d_ff, blocks
    options = {"max_tokens": 256, "norm_first": True, "dropout": dropout}
    return transformer.Transformer(
        transformer.Encoder(len(data.source_vocabulary), *sizes, **options),
        transformer.Decoder(len(data.target_vocabulary), *sizes, **options),
        tied=True,
    )


def train_for(seconds, model, data, recipe, seed):
    """Train until the CPU time is spent, the learning rate following the clock."""
    batches = data.batches(tokens=recipe["tokens"], seed=seed)
    optimizer = torch.optim.AdamW(
        model.parameters(),
        recipe["learning_rate"],
        betas=recipe.get("betas", (0.9, 0.999)),
        weight_decay=0.01,
        fused=True,
    )
    factor = warmup_cosine(100, 1000)  # a tenth of the time, in thousandths of it
    clock = Clock()  # last, because torch's first optimizer takes seconds to import

    def until_spent():
        epoch = 0
        while True:
            batches.set_epoch(epoch)
            for batch in batches:
                if clock.seconds() >= seconds:
                    return
                yield batch
            epoch += 1

    history = fit(
        model,
        until_spent(),
        lambda model, batch: token_losses(model, batch, smoothing=0.1),
        optimizer=optimizer,
        epochs=1,  # of that stream, which holds several of the data
        schedule=lambda step: factor(1000 * clock.seconds() / seconds),
        seed=seed,
    )
    return history, clock.seconds()


def train_as_the_textbook(model, data, seed):
    """Train for 30 epochs with batch, optimizer and clipping of the textbook."""
    batches = data.batches(size=128, seed=seed)
    optimizer, clock = torch.optim.Adam(model.parameters(), lr=0.005), Clock()
    history = fit(
        model, batches, token_losses, optimizer=optimizer, epochs=30, clip=1, seed=seed
    )
    return history, clock.seconds()


def textbook_score(output, reference):
    """Score one sentence, a list of words, from 0 to 1, as the textbook does.

    The product over n = 1, 2 of the share of n-grams found, to the power 1/2^n, times
    the penalty for short outputs. An output of one word has no pair of words and is
    scored by that word alone. (BLEU proper takes the geometric mean of four such
    shares over a whole corpus.)
    """
    if not output:
        return 0.0
    score = math.exp(min(0, 1 - len(reference) / len(output)))
    for n in range(1, min(2, len(output)) + 1):
        found, expected = n_grams(output, n), n_grams(reference, n)
        score *= ((found & expected).total() / found.total()) ** (1 / 2**n)
    return score


def n_grams(words, n):
    return collections.Counter(zip(*(words[i:] for i in range(n)), strict=False))


def score(model, data):
    """Translate the test sentences and compare them with their references."""
    sources, targets = zip(*((p.source, p.target) for p in data.test), strict=True)
    outputs = translate(model, sources, data)
    beams = translate(model, sources, data, width=4)
    written, references = sentences(outputs), sentences(targets)
    several = [sentences(data.references[source]) for source in sources]
    result = bleu(written, references)
    brackets = bleu(sentences(outputs, "<unk>"), references)
    return {
        "bleu": f"{result.score:.2f}",
        "signature": result.signature,
        "bleu_beam_4": f"{bleu(sentences(beams), references).score:.2f}",
        "bleu_unknown_as_three": f"{brackets.score:.2f}",
        "bleu_all_references": f"{bleu(written, several).score:.2f}",
        "exact_match": f"{exact_match(outputs, targets):.4f}",
        "textbook_score": mean_score(outputs, targets),
        "unknown_words": sum(words.count("<unk>") for words in outputs),
        "first_five": " | ".join(sentences(outputs[:5], "<unk>")),
    }


def score_training(model, data):
    """Translate 512 sentences that the model was trained on."""
    seen = data.train[:TEXTBOOK]
    outputs = translate(model, [pair.source for pair in seen], data)
    targets = [pair.target for pair in seen]
    four = slice(None, None, len(seen) // 4)
    return {
        "bleu_training": f"{bleu(sentences(outputs), sentences(targets)).score:.2f}",
        "textbook_score_training": mean_score(outputs, targets),
        "textbook_score_four": mean_score(outputs[four], targets[four]),
    }


def sentences(word_lists, unknown="⁇"):
    """Join words; <unk> becomes one sign, which BLEU counts as one wrong word.

    Left as it is, sacrebleu would split it into three: <, unk and >.
    """
    joined = (detokenize(words) for words in word_lists)
    return [sentence.replace("<unk>", unknown) for sentence in joined]


def mean_score(outputs, references):
    return f"{statistics.mean(map(textbook_score, outputs, references)):.4f}"


def measure(name, protocol, model_name, seed, folder):
    """Train one model; return its row, and the rows of its learning curve."""
    data = load(name, protocol, folder)
    recipe = (TRANSFORMER_RECIPES if model_name == "Transformer" else RECIPES)[name]
    torch.manual_seed(seed)
    if protocol == "held out":
        model = make_model(model_name, data, recipe["dropout"])
        history, seconds = train_for(SECONDS, model, data, recipe, seed)
    else:
        model = make_model(model_name, data, 0.2)
        history, seconds = train_as_the_textbook(model, data, seed)
    if history.interrupted:
        raise SystemExit("Stopped: this run is not written down, those before it are.")
    run = dict(zip(KEY, (name, protocol, model_name, seed), strict=True))
    row = {
        **run,
        "cpu_seconds": f"{seconds:.1f}",
        "steps": len(history.steps),
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "training_pairs": len(data.train),
        "source_words": len(data.source_vocabulary),
        "target_words": len(data.target_vocabulary),
        "test_sentences": len(data.test),
        **score(model, data),
        **score_training(model, data),
        "data_sha256": fingerprint(data),
        **provenance(),
    }
    return row, [{**run, **point} for point in curve(history.losses)]


def curve(losses):
    """Return the mean training loss of each twentieth of a run, in nats per word."""
    ends = [len(losses) * i // PARTS for i in range(PARTS + 1)]
    return [
        {
            "share_of_run": round((i + 1) / PARTS, 2),
            "training_loss": f"{statistics.mean(losses[ends[i] : ends[i + 1]]):.4f}",
        }
        for i in range(PARTS)
    ]


def fingerprint(data):
    pairs = [f"{pair.source} {pair.target}" for pair in (*data.train, *data.test)]
    return hashlib.sha256("\n".join(pairs).encode()).hexdigest()[:16]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, help="of the data; without it: download")
    parser.add_argument("--only", choices=RECIPES, help="run one of the data sets")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each kind")
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    runs = list_runs(options.seeds)
    runs = [run for run in runs if options.only in (None, run[0])]
    with progress_bar(len(runs), unit="run") as bar:
        for run in runs:
            if tuple(map(str, run)) not in read_done(options.out, KEY):
                row, points = measure(*run, options.folder)
                for point in points:
                    append(options.out.with_stem(f"{options.out.stem}_curves"), point)
                append(options.out, row)
            bar.update()


if __name__ == "__main__":
    main()
