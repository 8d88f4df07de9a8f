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
    one, many = (f"{ratio:.0f}" for ratio in times)
    text = " ".join(PAGE.split())
    assert f"generates 64 tokens about {one} times as fast," in text
    assert f"and in a batch of 32 sequences {many} times as fast." in text
    less, more = (
        f"{found[1, words]['cached'] / found[1, words]['recomputed']:.0f}"
        for words in (32, 128)
    )
    assert f"{less} times for 32 tokens, {more} times for 128." in text
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
