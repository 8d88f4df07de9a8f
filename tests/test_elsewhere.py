"""The page of others' numbers names the tests that there are, and no others.

The tests of ``test_elsewhere_*.py`` take their tolerances from its tables: ``within``.
"""

import ast
import functools
import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "book" / "elsewhere.md").read_text(encoding="utf-8")
LINES = re.findall(r"^\|(.+)\|$", PAGE, re.MULTILINE)
ROWS = [line for line in LINES if not re.search(r"---|Compared with", line)]
APART = {  # tests that stand with those of a module, and the row that one holds
    "test_it_equals_torchs_own_with_the_same_weights_maps_included": (
        "multi-head attention, outputs and weights"
    ),
    "test_encoder_and_decoder_are_torchs_stacks_of_layers": "whole encoder and decoder",
    "test_logits_and_attention_maps_are_torchvisions": "Vision Transformer",
    "test_gpt_2_s_weights_give_what_gpt_2_computes": "GPT-2",
    "test_bleu_is_sacrebleus_whatever_the_words_and_references": None,
}


def within(row):
    """Return the tolerance in the last column of the row that begins so: a number."""
    [cell] = [line.split("|")[-1] for line in ROWS if line.split("|")[0].strip() == row]
    cell = cell.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")).strip()
    power = re.fullmatch(r"10(-\d+)", cell)
    if power:
        return 10.0 ** int(power[1])
    return float(cell.removesuffix(" %")) / (100 if cell.endswith("%") else 1)


@functools.cache
def functions(pattern):
    """List the names of the test functions in the files that match a pattern."""
    return [
        node.name
        for path in TESTS.glob(pattern)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def test_every_test_that_stands_apart_is_one():
    assert [name for name in APART if functions("test_*.py").count(name) != 1] == []


def test_every_row_says_what_with_whom_and_how_close():
    assert len(ROWS) > 15
    for row in ROWS:
        cells = [cell.strip() for cell in row.split("|")]
        assert len(cells) == 3 and all(cells), row
        assert 0 <= within(cells[0]) < 0.02, row


def test_every_row_s_tolerance_is_the_one_that_a_test_uses():
    source = "\n".join(p.read_text("utf-8") for p in TESTS.glob("test_elsewhere_*.py"))
    asked = set(re.findall(r'within\(\s*"(.*?)"', source))
    apart = set(filter(None, APART.values()))
    assert asked | apart == {row.split("|")[0].strip() for row in ROWS}
    assert asked & apart == set()


def test_every_link_leads_to_a_file_of_one_version_that_a_test_names():
    links = re.findall(r"\]\((.*?)\)", PAGE)
    source = "\n".join(p.read_text("utf-8") for p in TESTS.glob("test_elsewhere_*.py"))
    for link in links:
        assert re.match(r"https://github\.com/[\w-]+/[\w-]+/blob/[0-9a-f]{40}/", link)
        assert link.rsplit("/", 1)[1] in source, link


def test_the_page_has_at_most_500_words_that_are_not_folded():
    read = re.sub(r"\]\(.*?\)", "", PAGE.split(":::{dropdown}")[0])
    assert len(read.replace("|", " ").split()) <= 500
