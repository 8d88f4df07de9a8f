"""Numbers that chapters quote from a benchmark, or from each other, are those there.

A notebook is read in Jupyter, too, where nothing could fill a number in.
"""

import importlib
import statistics
import sys
from pathlib import Path

import pytest

from tools.notebooks import chapters, read_notebook, source_of
from tutorial_lib.data import load_caption_results

pytest.importorskip("sphinx")
ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "book" / "_ext"))
RESULTS = importlib.import_module("results")
BENCHMARKS = ROOT / "benchmarks"


def cell_of(chapter, name):
    [path] = chapters(ROOT, [chapter])
    [cell] = [cell for cell in read_notebook(path)["cells"] if cell["id"] == name]
    return cell


def learning_curve(model, part="unseen"):
    """Return the model's exact match on two clauses, by its training pairs."""
    run = {"model": model, "steps": "2632", "seed": "0", "learning_rate": "0.005"}
    rows = RESULTS.read(BENCHMARKS, "one_vector.csv", **run)
    return {
        int(row["pairs"]): round(float(row[f"{part}, 2 clauses"]), 2) for row in rows
    }


def quotes_of_learning_curves():
    """Yield (chapter, cell, text) for each number that chapter 5 tells."""
    fixed = learning_curve("fixed context")
    seen = learning_curve("fixed context", part="seen")
    few = learning_curve("attention")[1500]
    assert seen[6000] == 1
    yield "05", "capacity-told", "of the first 1,000 training pairs"
    yield "05", "capacity-predict", f"128 dimensions gets {fixed[6000]} of the"
    last = f"24,000 pairs, the same model gets {fixed[24000]} of the unseen ones right."
    yield "05", "capacity-told", last
    larger = learning_curve("fixed context 256, dropout")
    yield "05", "curves-told", f"To reach {few} on two clauses,"
    yield "05", "curves-told", "took 12,000 pairs and attention 1,500,"
    yield "05", "closing", f"To get {few} of the sentences with two clauses right,"
    yield "05", "closing", "took 12,000 training pairs, and attention 1,500."
    assert larger[6000] < few <= larger[12000] and max(fixed.values()) < few
    wider = learning_curve("fixed context 256")
    assert wider[12000] < few
    for pairs, score in wider.items():
        assert fixed[pairs] < score <= larger[pairs]
    short = {"steps": "658", "seed": "0", "learning_rate": "0.005", "pairs": "6000"}
    [quick] = RESULTS.read(BENCHMARKS, "one_vector.csv", model="attention", **short)
    slow = {**short, "steps": "2632", "model": "fixed context 256, dropout"}
    [best] = RESULTS.read(BENCHMARKS, "one_vector.csv", **slow)
    match = round(float(quick["unseen, 2 clauses"]), 2)
    told = f"{match} of two clauses right after {quick['seconds']} seconds"
    yield "06", "compare-rule", told
    told = f"gets {larger[6000]:.2f} after {best['seconds']}."
    yield "06", "compare-rule", told
    attention = learning_curve("attention")
    for curve in (fixed, wider, larger, attention):
        points = [f"{curve[pairs]:.2f}" for pairs in sorted(curve)]
        yield "05", "curves", f"[{', '.join(points)}]"


def quotes_of_captions():
    """Yield (chapter, cell, text) for what chapter 5 tells of real captions."""
    bleu = load_caption_results()["bleu"]
    ends = {}
    for model, scores in bleu.items():
        ends[model] = f"from {scores[0]:.0f} to {scores[-1]:.0f}"
    told = (
        f"falls {ends['fixed context']}, and attention {ends['attention']}, in one run"
    )
    yield "05", "captions-told", told
    results = load_caption_results()
    yield "05", "title", f"*{results['ours'][2]}*"
    translation = results["translations"]["fixed context"][2]
    yield "05", "title", f"*{translation.rstrip('.')}*"


def quotes_of_matching():
    """Yield (chapter, cell, text) for what chapter 17 tells of its detectors."""
    rows = RESULTS.read(BENCHMARKS, "matching.csv", rule="overlap", steps="400")
    ends = []
    for column in ("AP", "AP after NMS"):
        runs = RESULTS.column(rows, column)
        ends.append(f"{min(runs):.2f}–{max(runs):.2f}")
    assert len(rows) == 3
    told = f"an AP of {ends[0]}, and {ends[1]} after NMS (three seeds)."
    yield "17", "duplicates-told", told
    for rule in ("matching", "raster order"):
        cells = []
        for steps in ("400", "1200"):
            rows = RESULTS.read(BENCHMARKS, "matching.csv", rule=rule, steps=steps)
            runs = RESULTS.column(rows, "AP")
            ends = sorted({f"{run:.2f}" for run in runs})
            cells.append("–".join([ends[0], *ends[1:][-1:]]))
        yield "17", "exercise-3-told", f"| {rule} | {cells[0]} | {cells[1]} |"
    rows = RESULTS.read(BENCHMARKS, "matching.csv", rule="matching, no self-attention")
    runs = RESULTS.column(rows, "AP")
    yield "17", "duplicates-rule", f"AP is {min(runs):.2f}–{max(runs):.2f}, with"
    runs = RESULTS.column(rows, "duplicates")
    told = f"{min(runs):.2f}–{max(runs):.2f} duplicates per digit (two seeds)"
    yield "17", "duplicates-rule", told
    assert len(rows) == 2
    [row] = RESULTS.read(BENCHMARKS, "matching.csv", rule="matching, equal queries")
    told = f"With queries that begin equal, the AP is {float(row['AP']):.2f}."
    yield "17", "train-told", told


def quotes_of_chapter_6():
    """Yield (chapter, cell, text) for what chapter 11 tells of chapter 6's model."""
    [table] = cell_of("06", "compare-table")["outputs"]
    rows = "".join(table["data"]["text/plain"]).splitlines()[2:]
    one, two, three = (row.split()[-1] for row in rows)
    yield "11", "accuracy-told", f"Chapter 6 gets {one}, {two} and {three}"


def quotes_of_llama():
    """Yield (chapter, cell, text) for each row of the excursion on Llama."""
    for change in ("GPT-2", "RMSNorm, no biases", "SwiGLU", "RoPE", "GQA"):
        rows = RESULTS.read(BENCHMARKS, "llama.csv", change=change)
        losses = [f"{loss:.2f}" for loss in RESULTS.column(rows, "nats_valid")]
        steps = statistics.median_low(int(row["steps"]) for row in rows)
        parameters = int(rows[0]["parameters"])
        kept = int(rows[0]["cache_bytes_per_token"])
        numbers = f"| {', '.join(losses)} | {steps:,} | {parameters:,} | {kept:,} |"
        yield "x_llama", "changes", f"{change} {numbers}"
    best = {}
    for change in ("GPT-2", "RMSNorm, no biases"):
        rows = RESULTS.read(BENCHMARKS, "llama_search.csv", change=change)
        best[change] = min(RESULTS.column(rows, "nats_valid"))
    gpt, rms_norm = best.values()
    told = f"GPT-2 reached {gpt:.2f} nats and RMSNorm {rms_norm:.2f}."
    yield "x_llama", "changes", told


def quotes_of_clothes():
    """Yield (chapter, cell, text) for what chapters 14 and 15 tell of photographs."""
    [trained] = RESULTS.read(BENCHMARKS, "clothes.csv")
    accuracy = f"{100 * float(trained['accuracy']):.0f} %"
    yield "14", "clothes", f"photographs it classifies {accuracy} correctly"
    orders = ["random", "saliency", "rollout", "last layer", "brightness"]
    yield "15", "clothes-told", f"| fill | {' | '.join(orders)} |"
    for fill in ("mean pixel", "background"):
        numbers = []
        for order in orders:
            rows = RESULTS.read(
                BENCHMARKS,
                "clothes_maps.csv",
                order=order,
                fill=fill,
                deleted_patches="8",
            )
            [probability] = RESULTS.column(rows, "probability")
            numbers.append(f"{probability:.2f}")
        yield "15", "clothes-told", f"| {fill} | {' | '.join(numbers)} |"


def quotes_of_decoys():
    """Yield (chapter, cell, text) for what chapter 15 tells of six models."""
    best = {}
    columns = "hit rate", "mass", "accuracy without best cell"
    for name in ("layer 0", "layer 1", "rollout", "saliency", "nearest neighbor"):
        rows = RESULTS.read(BENCHMARKS, "decoys.csv", map=name)
        assert len(rows) == 6
        cells = []
        for column in columns:
            values = RESULTS.column(rows, column)
            best[name, column] = values
            ends = f"{min(values):.2f}", f"{max(values):.2f}"
            cells.append("–".join(dict.fromkeys(ends)))  # once if both are the same
        yield "15", "hit-told", f"| {name} | {' | '.join(cells)} |"
    [hits] = set(best["nearest neighbor", "hit rate"])
    yield "15", "hit-told", f"has a hit rate of {hits:.2f}."
    of_rollout = best["rollout", "hit rate"]  # the most of the four, as below
    assert sum(hits > rollout for rollout in of_rollout) == 5
    close = 0
    for seed in range(6):
        rivals = [best[name, "hit rate"][seed] for name in ("layer 0", "layer 1")]
        close += of_rollout[seed] - max(rivals) < 0.01
    assert close == 2
    for seed in range(6):
        for name in ("layer 0", "layer 1", "saliency"):
            of_map = [best[name, column][seed] for column in columns]
            of_best = [best["rollout", column][seed] for column in columns]
            assert of_best[0] > of_map[0] and of_best[2] < of_map[2]
        masses = [best[name, "mass"][seed] for name in ("layer 0", "layer 1")]
        assert best["rollout", "mass"][seed] < max(masses)
    differences = []
    for row in rows:
        differences.append(float(row["without decoys"]) - float(row["whole"]))
    assert min(differences) > -0.005
    told = f"five other models between 0.00 and {max(differences):.2f} higher"
    yield "15", "occlusion-told", told


def quotes_of_real_model():
    """Yield (chapter, cell, text) for what the excursion on SmolLM2 tells."""
    known = RESULTS.results(BENCHMARKS)
    faster = known["real_model.faster.200"]
    yield "12", "kv-memory", f"{faster} times as fast with its cache"
    for name, told in (("cache", "with a KV cache"), ("none", "without")):
        few = known[f"real_model.{name}.50.speed"]
        many = known[f"real_model.{name}.200.speed"]
        yield "x_cost", "cache-measured", f"| {told} | {few} | {many} |"
    needed = {}
    for way in ("zero_ablated", "mean_ablated"):
        rises = {}
        for row in RESULTS.read(BENCHMARKS, "head_ablations.csv"):
            rise = float(row[way]) - float(row["intact"])
            rises[f"{row['layer']}.{row['head']}"] = rise
        ranked = sorted(rises, key=rises.get, reverse=True)
        needed[way] = [head for head in ranked if rises[head] > 3]
    first, second, third = needed["zero_ablated"]
    told = f"three raise the loss by more than 3 nats: {first}, {second} and {third}."
    yield "x_real", "previous-answer", told
    assert set(needed["mean_ablated"]) == {first, second}  # as exercise R.3 finds
    table = []
    for row in RESULTS.read(BENCHMARKS, "head_ablations.csv"):
        table.append(f"{float(row['zero_ablated']):.2f}")
    for start in range(0, len(table), 9):
        yield "x_real", "ablations-table", " ".join(table[start : start + 9])


def quotes_of_speculative_decoding():
    """Yield (chapter, cell, text) for the real model with three drafts."""
    for draft in ("20 layers", "27 layers", "prompt lookup"):
        cells = []
        for kind in ("story", "repeat"):
            rows = RESULTS.read(BENCHMARKS, "speculative.csv", kind=kind, draft=draft)
            per_pass = statistics.mean(RESULTS.column(rows, "tokens_per_pass"))
            faster = statistics.mean(RESULTS.column(rows, "faster"))
            cells.append(f"{per_pass:.1f} | {faster:.1f}")
        yield "x_speculative", "real-table", f"{draft} | {' | '.join(cells)} |"
    passes = RESULTS.read(BENCHMARKS, "speculative_passes.csv")
    ratios = RESULTS.column(passes[1:], "ratio")  # the first is of a single token
    told = f"takes {min(ratios):.1f} to {max(ratios):.1f} times as long"
    yield "x_speculative", "real-intro", told


QUOTES = [
    *quotes_of_learning_curves(),
    *quotes_of_captions(),
    *quotes_of_decoys(),
    *quotes_of_matching(),
    *quotes_of_chapter_6(),
    *quotes_of_llama(),
    *quotes_of_clothes(),
    *quotes_of_real_model(),
    *quotes_of_speculative_decoding(),
]


@pytest.mark.parametrize(("chapter", "cell", "text"), QUOTES)
def test_a_chapter_quotes_the_numbers_of_its_benchmark(chapter, cell, text):
    assert text in source_of(cell_of(chapter, cell))


def test_the_book_shows_the_scores_of_captions_that_the_benchmark_measured():
    shown = load_caption_results()
    for model, scores in shown["bleu"].items():
        rows = RESULTS.read(BENCHMARKS, "captions.csv", model=model)
        for words, score in zip(shown["words"], scores, strict=True):
            measured = [
                float(row["bleu"]) for row in rows if float(row["mean_words"]) == words
            ]
            assert abs(statistics.mean(measured) - score) < 0.051


def test_the_book_shows_a_map_of_the_caption_that_it_translates():
    shown = load_caption_results()
    for model, map_ in shown["maps"].items():
        assert shown["ours"][0].lower().startswith(" ".join(map_["source"][:3]))
        assert shown["translations"][model][0].startswith(map_["target"][0])
        assert len(map_["weights"]) == len(map_["target"])
        for row in map_["weights"]:
            assert len(row) == len(map_["source"]) and abs(sum(row) - 1) < 0.02


def test_the_stored_excursion_on_llama_ran_the_published_model():
    assert "134,515,008 parameters" in str(cell_of("x_llama", "load")["outputs"])
    answers = str(cell_of("x_llama", "story")["outputs"])
    assert "The capital of France is Paris." in answers
