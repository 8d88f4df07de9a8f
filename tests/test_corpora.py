"""Corpora in one form: parts that share no sentence, and nothing lost in silence."""

import gzip
import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from tutorial_lib.data import (
    DataError,
    SentencePair,
    downloads,
    load_translation,
    tokenize,
)

SHARED = Path(__file__).parents[2] / "shared" / "data"
PARTS = ("train", "valid", "test")


def shared(name):
    if not (SHARED / name).exists():
        pytest.skip(f"needs copies of the corpus in {SHARED / name}")
    return SHARED / name


@pytest.fixture
def tatoeba(tmp_path):
    """Write 30 English sentences with three translations each, authors beside them."""
    lines = [
        f"It’s {i}!\tC’est {i}{end}\tTatoeba #{i}" for i in range(30) for end in ".!?"
    ]
    (tmp_path / "fra.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def multi30k(tmp_path):
    """Write 8, 3 and 3 pairs; one sentence is in two parts, and one line is empty."""
    for part, numbers in (
        ("train", range(8)),
        ("val", (8, 9, 10)),
        (TEST, (1, 11, 12)),
    ):
        for language, word in (("en", "Dog"), ("fr", "Chien")):
            lines = [f"{word} {i}" if i != 5 else "" for i in numbers]
            path = tmp_path / f"{part}.{language}.gz"
            path.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n"))
    return tmp_path


TEST = "test_2016_flickr"


def sources(data, part):
    return {pair.source for pair in getattr(data, part)}


def assert_parts_are_apart(data):
    train, valid, test = (sources(data, part) for part in PARTS)
    assert train and valid and test
    assert not train & valid
    assert not train & test
    assert not valid & test


def assert_vocabularies_are_of_the_training_part(data, *, min_count):
    for side in ("source", "target"):
        counts = Counter(word for pair in data.train for word in getattr(pair, side))
        known = {word for word, count in counts.items() if count >= min_count}
        assert set(getattr(data, f"{side}_vocabulary").words[4:]) == known


def test_tatoeba_holds_out_sentences_with_all_their_translations(tatoeba):
    data = load_translation("tatoeba", folder=tatoeba, held_out=10)
    assert [len(getattr(data, part)) for part in PARTS] == [18 * 3, 2, 10]
    assert_parts_are_apart(data)
    assert len(sources(data, "test")) == 10
    assert sources(data, "valid") | sources(data, "test") == set(data.references)
    for pair in (*data.valid, *data.test):
        number = pair.source[2]
        assert data.references[pair.source] == [
            ("c'", "est", number, end) for end in ".!?"
        ]
        assert pair.target == ("c'", "est", number, ".")
    assert data.left_out == {}


def test_the_seed_chooses_what_is_held_out(tatoeba):
    def held_out(seed):
        return load_translation("tatoeba", folder=tatoeba, held_out=10, seed=seed).test

    assert held_out(0) == held_out(0)
    assert held_out(0) != held_out(1)


def test_sentences_that_differ_only_in_writing_are_one(tmp_path):
    lines = ["Go!\tVa !", "GO !\tva\u202f!", "Go!\tPars !", "Hi.\tSalut."]
    (tmp_path / "fra.txt").write_text("\n".join(lines), encoding="utf-8")
    data = load_translation("tatoeba", folder=tmp_path, held_out=1)
    taken = {**data.references, **{p.source: [] for p in data.train}}
    for p in data.train:
        taken[p.source].append(p.target)
    assert taken == {
        ("go", "!"): [("va", "!"), ("va", "!"), ("pars", "!")],
        ("hi", "."): [("salut", ".")],
    }


def test_the_authors_of_tatoeba_are_said_to_be_where_they_are(tatoeba):
    where = load_translation("tatoeba", folder=tatoeba, held_out=5).attribution
    assert f"CC BY 2.0 FR; its author: column 3 of {tatoeba / 'fra.txt'}" in where
    lines = (tatoeba / "fra.txt").read_text(encoding="utf-8").splitlines()
    two = "\n".join(line.rsplit("\t", 1)[0] for line in lines)
    (tatoeba / "fra.txt").write_text(two, encoding="utf-8")
    where = load_translation("tatoeba", folder=tatoeba, held_out=5).attribution
    assert "tatoeba.org, CC BY 2.0 FR" in where


def test_only_the_first_lines_are_read(tatoeba):
    data = load_translation("tatoeba", folder=tatoeba, first=24, held_out=3)
    assert len(data.train) == (24 // 3 - 3) * 3
    numbers = {int(pair.source[2]) for part in PARTS for pair in getattr(data, part)}
    assert numbers == set(range(8))


def test_training_takes_no_more_than_it_is_given(tatoeba):
    data = load_translation("tatoeba", folder=tatoeba, held_out=10, train=7)
    assert len(data.train) == 7
    assert len(data.test) == 10
    assert_vocabularies_are_of_the_training_part(data, min_count=2)


def test_holding_out_everything_is_refused(tatoeba):
    with pytest.raises(ValueError, match=r"held_out=25 .* none of the 30 English"):
        load_translation("tatoeba", folder=tatoeba, held_out=25)


def test_a_zip_file_is_read_as_it_is(tatoeba):
    expected = load_translation("tatoeba", folder=tatoeba, held_out=5)
    with zipfile.ZipFile(tatoeba / "fra-eng.zip", "w") as archive:
        archive.write(tatoeba / "fra.txt", "fra-eng/fra.txt")
    (tatoeba / "fra.txt").unlink()
    data = load_translation("tatoeba", folder=tatoeba, held_out=5)
    assert data.train == expected.train
    assert data.test == expected.test


def test_empty_and_long_sentences_are_left_out_and_counted(tmp_path):
    lines = [f"One {i}.\tUn {i}." for i in range(10)]
    lines[3:3] = [
        "",
        "Alone.\t",
        "\tSeul.",
        "One two three four.\tUn.",
        "One.\tU n d t",
    ]
    (tmp_path / "fra.txt").write_text("\n".join(lines), encoding="utf-8")
    data = load_translation("tatoeba", folder=tmp_path, held_out=3, max_words=3)
    assert data.left_out == {"with an empty side": 3, "of more than 3 words": 2}
    assert len(data.train) + len(data.valid) + len(data.test) == 10
    assert repr(data) == (
        "tatoeba: 7 train, 0 valid, 3 test pairs; 6 English and 6 French words; "
        "left out: 3 with an empty side, 2 of more than 3 words"
    )


def test_multi30k_keeps_its_parts_but_for_a_sentence_in_two(multi30k):
    data = load_translation("multi30k", folder=multi30k, min_count=1)
    assert [pair.source for pair in data.test] == [
        ("dog", "1"),
        ("dog", "11"),
        ("dog", "12"),
    ]
    assert [pair.target[1] for pair in data.valid] == ["8", "9", "10"]
    assert [pair.target[1] for pair in data.train] == ["0", "2", "3", "4", "6", "7"]
    assert data.left_out == {"with an empty side": 1, "also held out": 1}
    assert data.references[("dog", "12")] == [("chien", "12")]
    assert_parts_are_apart(data)


def test_multi30k_is_cut_where_it_is_asked_to_be(multi30k):
    data = load_translation("multi30k", folder=multi30k, first=3, held_out=2)
    assert [pair.source[1] for pair in data.train] == ["0", "2"]
    assert [pair.source[1] for pair in data.test] == ["1", "11"]
    assert data.source_vocabulary.words[4:] == []  # no word occurs 5 times


def test_grammar_sentences_carry_what_the_grammar_knows():
    data = load_translation("grammar", train=300, held_out=50)
    assert [len(getattr(data, part)) for part in PARTS] == [300, 10, 50]
    assert_parts_are_apart(data)
    assert_vocabularies_are_of_the_training_part(data, min_count=1)
    assert {pair.clauses for pair in data.test} == {1, 2}
    for pair in data.test:
        targets, positions = zip(*pair.alignment, strict=True)
        assert set(targets) == set(range(len(pair.target)))
        assert set(positions) == set(range(len(pair.source)))
        assert len(pair.tags) == len(pair.source)


def test_the_grammar_is_as_large_as_asked_and_as_the_seed_says():
    assert len(load_translation("grammar").train) == 3_000
    first, again, other = (
        load_translation("grammar", train=20, seed=seed).train for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_the_grammar_tests_on_longer_sentences_on_request():
    data = load_translation("grammar", train=100, held_out=20, longer=(3,))
    assert Counter(pair.clauses for pair in data.test) == {1: 10, 2: 10, 3: 10}
    assert {pair.clauses for pair in data.train} == {1, 2}


def test_what_does_not_fit_is_refused_by_name(tatoeba):
    with pytest.raises(ValueError, match="grammar, tatoeba, multi30k, got 'wmt'"):
        load_translation("wmt")
    with pytest.raises(ValueError, match=r"leave out first= and folder="):
        load_translation("grammar", first=10)
    with pytest.raises(ValueError, match=r"tatoeba is what it is: leave out longer="):
        load_translation("tatoeba", folder=tatoeba, longer=(3,))
    with pytest.raises(ValueError, match="no pair left to train on"):
        load_translation("grammar", train=9, max_words=1)
    with pytest.raises(ValueError, match='"train", "valid" or "test", got \'val\''):
        load_translation("grammar", train=20).batches("val", size=4)


@pytest.mark.parametrize("count", [-5, 0, 2.5])
@pytest.mark.parametrize("name", ["train", "held_out", "min_count", "max_words"])
def test_what_is_no_number_of_things_is_refused(tatoeba, name, count):
    message = f"{name} must be a positive whole number, got {count}"
    for options in ({"name": "grammar"}, {"name": "tatoeba", "folder": tatoeba}):
        with pytest.raises(ValueError, match=message):
            load_translation(**options, **{name: count})


def test_what_is_no_number_of_lines_is_refused(tatoeba):
    for first in (-1, 0, 2.5):
        with pytest.raises(ValueError, match="first must be a positive whole number"):
            load_translation("tatoeba", folder=tatoeba, first=first)


@pytest.mark.parametrize("longer", [3, (2,), (-3,), (3, 3.5), (7,), "3"])
def test_what_is_no_number_of_clauses_is_refused(longer):
    with pytest.raises(ValueError, match="longer must list numbers from 3 to 6, got"):
        load_translation("grammar", train=10, held_out=10, longer=longer)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_gives_its_batches(tatoeba, part):
    data = load_translation("tatoeba", folder=tatoeba, held_out=10)
    batches = list(data.batches(part, size=4))
    assert sum(len(batch.source) for batch in batches) == len(getattr(data, part))
    [batch] = data.batches("valid", tokens=100, shuffle=False)
    sentence = data.target_vocabulary.decode(batch.target[0])
    assert sentence[:2] == ["c'", "est"]


def refuse(name, folder):
    """Load what is damaged, and return the one line that says so."""
    with pytest.raises(DataError) as caught:
        load_translation(name, folder=folder)
    message = str(caught.value)
    assert "\n" not in message
    assert "Download https://" in message
    assert f"{folder}" in message
    return message


def test_a_missing_file_is_named_with_its_address(tmp_path):
    assert downloads.TATOEBA[0] in refuse("tatoeba", tmp_path)
    assert f"{downloads.MULTI30K}train.en.gz" in refuse("multi30k", tmp_path)


@pytest.mark.parametrize("line", ["No tab here.", "Four.\tQuatre.\tx\ty"])
def test_a_line_without_its_columns_is_named(tatoeba, line):
    with open(tatoeba / "fra.txt", "a", encoding="utf-8") as file:
        file.write(line)
    assert "line 91 has not the columns" in refuse("tatoeba", tatoeba)


@pytest.mark.parametrize("content", ["", "\n", "<html>\nPlease log in\n</html>\n"])
def test_a_file_of_something_else_is_named(tmp_path, content):
    (tmp_path / "fra.txt").write_text(content)
    assert "line 1 has not the columns" in refuse("tatoeba", tmp_path)


def test_sides_of_different_length_are_named(multi30k):
    path = multi30k / "val.fr.gz"
    path.write_bytes(gzip.compress(b"Chien 8\nChien 9\n"))
    assert "it has 2 lines and val.en.gz 3" in refuse("multi30k", multi30k)


def test_a_truncated_file_is_named(multi30k):
    path = multi30k / "train.fr.gz"
    path.write_bytes(path.read_bytes()[:-9])
    assert str(path) in refuse("multi30k", multi30k)


def test_another_encoding_is_named(tatoeba):
    (tatoeba / "fra.txt").write_bytes("Summer.\tÉté.\tx".encode("latin-1"))
    assert "line 1 is not UTF-8" in refuse("tatoeba", tatoeba)


def test_without_a_folder_files_are_fetched_into_the_cache(
    multi30k, tmp_path, monkeypatch
):
    fetched = []

    def fetch(address, checksum):
        fetched.append((address, checksum))
        return multi30k / address.rsplit("/", 1)[-1]

    monkeypatch.setattr(downloads, "fetch", fetch)
    load_translation("multi30k")
    assert [address.rsplit("/", 1)[-1] for address, _ in fetched] == [
        f"{part}.{language}.gz"
        for part in ("train", "val", TEST)
        for language in ("en", "fr")
    ]
    for address, checksum in fetched:
        assert address.startswith(downloads.MULTI30K)
        assert downloads.MULTI30K_CHECKSUMS[address.rsplit("/", 1)[-1]] == checksum


def test_offline_the_way_out_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("TUTORIAL_DATA", str(tmp_path))
    for proxy in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")  # where nobody listens
    with pytest.raises(DataError) as caught:
        load_translation("tatoeba")
    address = "https://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip"
    assert f"download {address} yourself and save it as {tmp_path}" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_the_pins_are_those_of_the_real_files():
    folder = shared("multi30k")
    for name, checksum in downloads.MULTI30K_CHECKSUMS.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == checksum


def test_a_file_saved_by_hand_in_the_cache_is_taken(tmp_path, monkeypatch):
    for path in shared("multi30k").iterdir():
        shutil.copy(path, tmp_path)
    monkeypatch.setenv("TUTORIAL_DATA", str(tmp_path))
    monkeypatch.setattr("requests.get", None)  # any download would fail
    data = load_translation("multi30k", first=100)
    assert len(data.train) == 100


def test_the_real_multi30k_has_its_official_parts():
    data = load_translation("multi30k", folder=shared("multi30k"))
    assert [len(getattr(data, part)) for part in PARTS] == [28_999, 1_014, 1_000]
    assert data.left_out == {"also held out": 1}
    assert_parts_are_apart(data)
    assert_vocabularies_are_of_the_training_part(data, min_count=5)
    first = "A man in an orange hat starring at something."
    assert list(data.test[0].source) == tokenize(first, "en")


def test_the_real_tatoeba_holds_out_500_sentences():
    data = load_translation("tatoeba", folder=shared("tatoeba"), first=5_000)
    assert [len(getattr(data, part)) for part in PARTS[1:]] == [100, 500]
    assert_parts_are_apart(data)
    taken = len(data.train) + sum(map(len, data.references.values()))
    assert taken == 5_000
    assert all(isinstance(pair, SentencePair) for pair in data.train)


def test_importing_data_metrics_and_plotting_loads_nothing_heavy():
    code = (
        "import sys, tutorial_lib.data, tutorial_lib.metrics, tutorial_lib.plotting\n"
        "heavy = 'matplotlib pandas PIL pooch requests sacrebleu sklearn torchvision'\n"
        "print(sorted({*heavy.split()} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"
