"""The page of results says what the benchmark of decoding measured."""

import csv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "book" / "results.md").read_text(encoding="utf-8")
CASES = [
    (1, 8),
    (1, 16),
    (1, 32),
    (1, 64),
    (1, 128),
    (32, 8),
    (32, 16),
    (32, 32),
    (32, 64),
]


def speeds():
    """Return words per second by (batch, words) and way of decoding."""
    with (ROOT / "benchmarks" / "decoding.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = {case: {} for case in CASES}
    for row in rows:
        case = int(row["batch"]), int(row["words"])
        found[case][row["decoding"]] = int(row["words_per_second"])
    return found


def test_at_64_words_the_cache_is_at_least_twice_as_fast():
    found = speeds()
    times = [
        found[batch, 64]["cached"] / found[batch, 64]["recomputed"] for batch in (1, 32)
    ]
    assert min(times) >= 2
    # The speed at 64 words is high: those of 32 and 128 words tell the range.
    near = [found[1, words]["cached"] for words in (32, 128)]
    assert max(near) < found[1, 64]["cached"]
    low, high = (speed / found[1, 64]["recomputed"] for speed in near)
    text = " ".join(PAGE.split())
    said = f"{low:.0f} to {high:.0f} times as fast"
    assert f"**A cache makes writing {said}** for a sentence of 64 words" in text
    assert f"{said} for one sentence and {times[1]:.0f} times for 32." in text
    assert f"32 words were written at {near[0]} words a second" in text
    assert f"of 128 words at {near[1]}." in text
    for way in ("cached", "recomputed", "torch.nn.Transformer"):
        one, many = (found[batch, 64][way] for batch in (1, 32))
        assert f"| {one} | {many:,} |" in PAGE


def test_32_sentences_slow_down_by_a_quarter_with_the_cache_and_to_one_without():
    found = speeds()
    left = [found[32, 64][way] / found[32, 16][way] for way in ("cached", "recomputed")]
    assert [round(share, 2) for share in left] == [0.75, 0.25]


def test_with_the_cache_time_grows_with_the_words_and_without_it_faster():
    found = speeds()

    def growth(way):
        short, long = (words / found[1, words][way] for words in (32, 128))
        return long / short

    assert 2.5 < growth("cached") < 5.5  # four times the words
    assert growth("recomputed") > 6
