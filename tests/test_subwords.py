"""Subword tokens: a small vocabulary by hand, files that are none, and a real one."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorial_lib.data import DataError, load_stories260k
from tutorial_lib.data.subwords import (
    SubwordTokenizer,
    byte_tokenizer,
    read_tokenizer,
)

BYTES = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
MERGES = [" t", "he", " the", "hee"]  # the first one first
SINGLE = [" ", "t", "h", "e", "é"]


def by_hand():
    scores = [0.0] * 259 + [-float(i) for i in range(len(MERGES))] + [-1e9] * 5
    return SubwordTokenizer(BYTES + MERGES + SINGLE, scores)


def pieces(tokenizer, text):
    return [tokenizer.tokens[i] for i in tokenizer.encode(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("the", [" the"]),
        ("thee", [" the", "e"]),  # " the" has a better score than "hee"
        ("hee", [" ", "hee"]),
        ("t the", [" t", " the"]),
        ("é", [" ", "é"]),
        ("ñ", [" ", "<0xC3>", "<0xB1>"]),
        ("hehehe", [" ", "he", "he", "he"]),
    ],
)
def test_merges_come_by_score_and_unknown_characters_are_bytes(text, expected):
    assert pieces(by_hand(), text) == ["<s>", *expected]


@given(st.text())
def test_every_text_comes_back(text):
    tokenizer = by_hand()
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_a_tokenizer_of_bytes_needs_no_file():
    tokenizer = byte_tokenizer()
    assert len(tokenizer) == 259 and tokenizer.tokens == BYTES
    given = [*BYTES]
    copy = SubwordTokenizer(given, [0.0] * 259)
    given[5] = "changed"
    assert copy.tokens == BYTES
    assert tokenizer.encode("é") == [1, 3 + 0x20, 3 + 0xC3, 3 + 0xA9]
    assert tokenizer.decode(tokenizer.encode("Zoë ate.")) == "Zoë ate."


def test_a_continuation_keeps_its_first_blank():
    tokenizer = by_hand()
    ids = tokenizer.encode("the the")
    assert tokenizer.decode(ids[2:]) == " the"
    assert tokenizer.decode([*ids, tokenizer.eos]) == "the the"
    assert tokenizer.decode([3 + 0xC3]) == "\ufffd"
    assert tokenizer.decode([]) == ""


LONG = SubwordTokenizer([*BYTES, "a", " a long word"], [0.0] * 261)


def saved(tokenizer):
    content = struct.pack("<i", max(len(token.encode()) for token in tokenizer.tokens))
    for token, score in zip(tokenizer.tokens, tokenizer.scores, strict=True):
        content += struct.pack("<fi", score, len(token.encode())) + token.encode()
    return content


def test_a_file_is_read_as_it_is_written(tmp_path):
    path = tmp_path / "tok.bin"
    path.write_bytes(saved(by_hand()))
    tokenizer = read_tokenizer(path)
    assert tokenizer.tokens == by_hand().tokens and len(tokenizer) == 268
    assert tokenizer.scores == by_hand().scores
    path.write_bytes(saved(byte_tokenizer()))
    assert read_tokenizer(path).tokens == BYTES


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "requires a buffer"),
        (struct.pack("<i", 7), "it lacks the bytes"),
        (b"<html>Please log in</html>", "is no tokenizer"),
        (saved(by_hand())[:-1], "a token is cut off"),
        (saved(LONG)[: -8 - len(" a long word")], "it lacks a token of 12 bytes"),
        (saved(by_hand())[:-6], "requires a buffer"),
        (saved(by_hand())[:400], "is no tokenizer"),
        (struct.pack("<ifi", 3, 0.0, -5) + b"abc", "a token is cut off"),
        (struct.pack("<ifi", 1, 0.0, 1) + b"\xff", "can't decode"),
    ],
)
def test_another_file_and_a_part_of_one_are_refused(tmp_path, content, reason):
    path = tmp_path / "tok.bin"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=reason) as caught:
        read_tokenizer(path)
    message = str(caught.value)
    assert message.startswith(f"{path} is no tokenizer of llama2.c: ")
    assert "\n" not in message


def test_a_damaged_or_missing_download_is_named_with_the_way_out(tmp_path):
    with pytest.raises(DataError, match=r"stories260K.bin cannot be read: .* Download"):
        load_stories260k(folder=tmp_path)
    (tmp_path / "stories260k").mkdir()
    (tmp_path / "stories260k" / "stories260K.bin").write_bytes(b"")
    (tmp_path / "stories260k" / "tok512.bin").write_bytes(b"<html>")
    with pytest.raises(DataError, match=r"tok512.bin cannot be read: .* no tokenizer"):
        load_stories260k(folder=tmp_path)
