"""Translation of real sentences: three models, in words and in subwords.

    python benchmarks/translation.py [--folder ../shared/data] [--workers 8]

The folder holds tatoeba/fra.txt and the files of Multi30k in multi30k/; without it both
are downloaded. A model trains for 96 s and translates sentences that it never saw. The
clock is the process's CPU time, and the learning rate follows it, so that a busy
machine changes little.

"search" tries learning rates and dropouts for each model on each kind of data and
scores them on validation sentences; its rows go to translation_search.csv. "compare"
trains what was best with other seeds, and scores it on test sentences; its rows go to
translation.csv. "beyond" looks past the search, where it chose the largest learning
rate of all for captions: it tries twice that rate, and scores it on the same validation
sentences; its rows go to translation_beyond.csv. A row is written when its run is
finished, and what has its row is not repeated, so that an interrupted benchmark goes
on.

Of Multi30k the last thousand training captions are kept out of everything, search and
comparison, until the models of the comparison translate them once: the column
bleu_fresh.
"""

import argparse
import csv
import dataclasses
import hashlib
import itertools
import multiprocessing
import os
import random
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from records import Clock, append, provenance, read_done
from subwords import Subwords
from torch import nn

from tutorial_lib.data import Batches, Vocabulary, detokenize, load_translation
from tutorial_lib.decoding import translate
from tutorial_lib.metrics import bleu, exact_match
from tutorial_lib.notebook import progress_bar
from tutorial_lib.seq2seq import (
    AttentionDecoder,
    Decoder,
    Encoder,
    Seq2Seq,
    initialize,
)
from tutorial_lib.training import fit, token_losses, warmup_cosine
from tutorial_lib.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
)

SECONDS = 96  # of CPU time, for training
BATCH = 500  # French tokens, padding counted
DATA = ("tatoeba", "multi30k")
UNITS = ("words", "subwords")
MODELS = ("fixed context", "attention", "Transformer")
RATES = {  # what the search tries
    "fixed context": (0.002, 0.004, 0.008),
    "attention": (0.002, 0.004, 0.008),
    "Transformer": (0.001, 0.002, 0.004),
}
DROPOUTS = (0.0, 0.2)
FIRST = 5000  # lines of Tatoeba's file, in which short sentences come first
MIN_COUNTS = {"tatoeba": 2, "multi30k": 5}  # of a word that is known
VOCABULARY = {"tatoeba": 1000, "multi30k": 4000}  # for each language
FRESH = 1000  # captions


@dataclass(frozen=True)
class Run:
    """What is trained on what; a row begins with it."""

    data: str
    units: str
    model: str
    learning_rate: float
    dropout: float
    seed: int


def list_search():
    return [
        Run(data, units, model, rate, dropout, seed=0)
        for data, units, model in itertools.product(DATA, UNITS, MODELS)
        for rate, dropout in itertools.product(RATES[model], DROPOUTS)
    ]


def list_beyond(search):
    """Return twice the chosen learning rate for captions, where it was the largest."""
    return [
        dataclasses.replace(run, learning_rate=2 * run.learning_rate, seed=0)
        for run in list_comparison(search, seeds=1)
        if run.data == "multi30k" and run.learning_rate == max(RATES[run.model])
    ]


def list_comparison(search, seeds):
    """Return the best of each kind in the search, with seeds that it did not use."""
    best = {}
    for row in search:
        kind = row["data"], row["units"], row["model"]
        if kind not in best or float(row["bleu_valid"]) > best[kind][0]:
            settings = float(row["learning_rate"]), float(row["dropout"])
            best[kind] = float(row["bleu_valid"]), *settings
    return [
        Run(*kind, rate, dropout, seed)
        for seed in range(1, seeds + 1)
        for kind, (_, rate, dropout) in best.items()
    ]


def load(name, units, folder):
    """Return the data with its vocabularies, and captions that stay unused."""
    if name == "tatoeba":
        data = split_tatoeba(folder)
        fresh = []
    else:
        data, fresh = split_multi30k(folder)
    languages = (
        [pair.source for pair in data.train],
        [pair.target for pair in data.train],
    )
    if units == "subwords":
        known = [
            Subwords(language, vocab_size=VOCABULARY[name]) for language in languages
        ]
    else:
        known = [Vocabulary(some, min_count=MIN_COUNTS[name]) for some in languages]
    vocabularies = dict(
        zip(("source_vocabulary", "target_vocabulary"), known, strict=True)
    )
    return dataclasses.replace(data, **vocabularies), fresh


def split_tatoeba(folder):
    """Take 500 English sentences for the test and 400 to choose settings by."""
    data = load_translation("tatoeba", first=FIRST, folder=folder, held_out=750)
    valid = [*data.valid, *data.test[500:]]
    return dataclasses.replace(data, test=data.test[:500], valid=valid)


def split_multi30k(folder):
    """Put the last captions to learn from aside."""
    data = load_translation("multi30k", folder=folder)
    fresh = data.train[-FRESH:]
    unused = {pair.source for pair in fresh}
    train = [pair for pair in data.train[:-FRESH] if pair.source not in unused]
    return dataclasses.replace(data, train=train), fresh


def make_model(name, data, dropout):
    """Make a translator that reads and writes French with tied embeddings.

    Press and Wolf (2017): the vectors are then learned from every prediction, not only
    where a word stands in the input.
    """
    english = len(data.source_vocabulary)
    french = len(data.target_vocabulary)
    if name == "Transformer":
        sizes = (128, 4, 2)  # d_model, num_heads, num_layers
        options = {"d_ff": 256, "max_tokens": 256}
        encoder = TransformerEncoder(english, *sizes, **options)
        decoder = TransformerDecoder(french, *sizes, **options)
        model = Transformer(encoder, decoder)
    else:
        encoder = Encoder(english, 256, 128)
        sizes = (french, 256, 256, 2 * 128)
        if name == "attention":
            decoder = AttentionDecoder(*sizes, 128)
        else:
            decoder = Decoder(*sizes)
        model = Seq2Seq(encoder, decoder).apply(initialize)
        decoder.out.weight = decoder.embedding.weight
        nn.init.normal_(decoder.embedding.weight, std=0.15)  # so that logits are small
    add_dropout(model, dropout)
    return model


def add_dropout(model, rate):
    """Drop outputs of embeddings, sub-layers and readouts in training."""

    def drop(module, inputs, output):
        return F.dropout(output, rate, module.training)

    for name, module in model.named_modules():
        is_last = name.endswith(("W_O", "W_2", "readout"))
        if is_last or isinstance(module, nn.Embedding):
            module.register_forward_hook(drop)


class TokenBatches(Batches):
    """Batches of at most ``max_tokens`` target tokens, padding counted."""

    def __init__(self, data, *, max_tokens, seed):
        vocabularies = data.source_vocabulary, data.target_vocabulary
        super().__init__(data.train, *vocabularies, batch_size=1, seed=seed)
        self.max_tokens = max_tokens

    def __iter__(self):
        groups = self.group()
        random.Random(f"batches {self.seed} {self.epoch}").shuffle(groups)
        for pairs in groups:
            yield from Batches(
                pairs,
                self.source_vocabulary,
                self.target_vocabulary,
                batch_size=len(pairs),
                shuffle=False,
            )

    def group(self):
        groups = [[]]
        for pair in self.ordered():  # the longest comes last
            tokens = len(pair.target) + 2  # with <bos> and <eos>
            if (len(groups[-1]) + 1) * tokens > self.max_tokens:
                groups.append([])
            groups[-1].append(pair)
        return groups


def train(model, data, run, spent=SECONDS):
    """Train until the CPU time is ``spent``; the learning rate follows the clock."""
    batches = TokenBatches(data, max_tokens=BATCH, seed=run.seed)
    rate = run.learning_rate
    optimizer = torch.optim.AdamW(
        model.parameters(), rate, betas=(0.9, 0.98), weight_decay=0.01, fused=True
    )
    factor = warmup_cosine(100, 1000)  # a tenth of the time, in thousandths of it
    clock = Clock()  # last, because torch's first optimizer takes seconds to import

    def until_spent():
        for epoch in itertools.count():
            batches.set_epoch(epoch)
            for batch in batches:
                if clock.seconds() >= spent:
                    return
                yield batch

    history = fit(
        model,
        until_spent(),
        lambda model, batch: token_losses(model, batch, label_smoothing=0.1),
        optimizer=optimizer,
        epochs=1,  # of that stream, which holds several of the data
        schedule=lambda step: factor(1000 * clock.seconds() / spent),
        seed=run.seed,
    )
    return {"cpu_seconds": f"{clock.seconds():.1f}", "steps": len(history.losses)}


def score_valid(model, data, fresh):
    return {"bleu_valid": written_like(model, data, data.valid)}


def score_test(model, data, fresh):
    """Translate the test sentences, greedily and with a beam, and the fresh ones."""
    sources, targets = zip(*((p.source, p.target) for p in data.test), strict=True)
    outputs = translate(model, sources, data)
    written = sentences(outputs)
    references = sentences(targets)
    several = [sentences(data.references[source]) for source in sources]
    result = bleu(written, references)
    return {
        "bleu": f"{result.score:.2f}",
        "bleu_beam_4": written_like(model, data, data.test, num_beams=4),
        "bleu_fresh": (fresh and written_like(model, data, fresh, num_beams=4)) or "",
        "bleu_all_references": f"{bleu(written, several).score:.2f}",
        "exact_match": f"{exact_match(outputs, targets):.4f}",
        "unknown": sum(words.count("<unk>") for words in outputs),
        "first_five": " | ".join(sentences(outputs[:5], "<unk>")),
        "signature": result.signature,
    }


def written_like(model, data, pairs, num_beams=1):
    """Return the BLEU of what the model makes of some pairs."""
    sources = [pair.source for pair in pairs]
    outputs = translate(model, sources, data, num_beams=num_beams)
    references = sentences([pair.target for pair in pairs])
    return f"{bleu(sentences(outputs), references).score:.2f}"


def sentences(word_lists, unknown="⁇"):
    """Join words; <unk> becomes one sign, which BLEU counts as one wrong word.

    Left as it is, sacrebleu would split it into three: <, unk and >.
    """
    joined = (detokenize(words) for words in word_lists)
    return [sentence.replace("<unk>", unknown) for sentence in joined]


def measure(run, score, folder):
    """Train one model and return its row."""
    os.environ["TQDM_DISABLE"] = "1"  # one bar counts the runs
    torch.set_num_threads(1)
    data, fresh = load(run.data, run.units, folder)
    torch.manual_seed(run.seed)
    model = make_model(run.model, data, run.dropout)
    trained = train(model, data, run)
    return {
        **asdict(run),
        **trained,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "training_pairs": len(data.train),
        "source_units": len(data.source_vocabulary),
        "target_units": len(data.target_vocabulary),
        "valid_sentences": len(data.valid),
        "test_sentences": len(data.test),
        **score(model, data, fresh),
        "data_sha256": fingerprint(data),
        **provenance(),
    }


def fingerprint(data):
    pairs = [f"{pair.source} {pair.target}" for pair in (*data.train, *data.test)]
    return hashlib.sha256("\n".join(pairs).encode()).hexdigest()[:16]


def carry_out(runs, score, path, options):
    """Write the row of every run that has none, some runs side by side."""
    done = read_done(path, [field.name for field in dataclasses.fields(Run)])
    runs = [run for run in runs if tuple(map(str, asdict(run).values())) not in done]
    runs = [run for run in runs if options.only in (None, run.data)]
    processes = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(options.workers, processes) as pool,
        progress_bar(len(runs), unit="run") as bar,
    ):
        waiting = [pool.submit(measure, run, score, options.folder) for run in runs]
        for finished in as_completed(waiting):
            append(path, finished.result())
            bar.update()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, help="of the data; without it: download")
    parser.add_argument("--only", choices=DATA, help="run one of the data sets")
    parser.add_argument("--part", choices=("search", "beyond", "compare"))
    parser.add_argument("--workers", type=int, default=1, help="runs side by side")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each kind")
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    search = options.out.with_stem(f"{options.out.stem}_search")
    if options.part in (None, "search"):
        carry_out(list_search(), score_valid, search, options)
    if options.part == "search":
        return
    if not search.exists():
        raise SystemExit(f"no settings in {search}: run --part search first")
    with search.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if options.part in (None, "beyond"):
        beyond = options.out.with_stem(f"{options.out.stem}_beyond")
        carry_out(list_beyond(rows), score_valid, beyond, options)
    if options.part in (None, "compare"):
        runs = list_comparison(rows, options.seeds)
        carry_out(runs, score_test, options.out, options)


if __name__ == "__main__":
    main()
