"""Every page speaks in the field's words, in its text and its code."""

import ast
import re
from pathlib import Path

import pytest

from tools.notebooks import chapters, code_cells, read_notebook, source_of, tags_of
from tutorial_lib.definitions import as_python

ROOT = Path(__file__).parents[1]
EXERCISES = sorted((ROOT / "tutorial_exercises").glob("[cx]*_*.py"))
# What is not said, and what is said instead. Where a word has an ordinary use, too, the
# expression leaves that out: "in place of", "the error rate", "GPU memory".
TEXT = {
    r"(?<!in )(?<!the )(?<!\btake )(?<!\btakes )(?<!\btook )\bplaces?\b": "position",
    r"\b(the|a) place\b(?! of)": "position",
    r"\b(an?|the|each|every|one|no|its|this|learned|straight) looks?\b(?!-)": "attend",
    r"\b[\d,]+ numbers\b|\bnumbers of (a|the) (vector|state|embedding)": "dimensions",
    r"\b(share|named|told) right(ly)?\b": "accuracy, predictions",
    r"\bslopes?\b(?! of (ALiBi|each head|a head|the line)| and (the )?intercept)"
    r"(?! [=*] )": "gradient, derivative",
    r"\bpass(es)? over the (data|pairs|training)": "epochs",
    r"\b(at|with) a rate of\b|\bthe rate (of 0|grows|falls)": "learning rate",
    r"\b(another|other|nine|five|three|from) starts?\b|\bstart \d": "seed, run",
    r"\b(the|a|one|its|each|whole) cards?\b": "context vector",
    r"\b(the|its|each) memory of (the|an|each) (encoder|sentence)": "hidden states",
    r"\bpieces of words\b": "subword tokens",
    r"\bknobs?\b|\btempered?\b|\btail held down": "sampling parameters",
    r"\bchances\b|\ba chance of\b": "probability",
    r"\b(turn|speed) of (a|each|the) (pair|hand|query|key)": "rotation, frequency",
    r"\bsmall network\b": "feed-forward network, MLP",
    r"\bheard of\b|(?<!no )\bnews\b": "information, receptive field",
    r"\b(look|looks) (is |are )?forbidden|\bwithout looks?\b": "attention knockout",
    r"\bheads? by hand\b": "induction head",
    r"\blearned beforehand\b": "pre-training",
}
# Parts of names in code: between underscores, in small letters.
NAMES = {
    "place places": "position",
    "look looks looking": "attention, attend",
    "card cards summary": "context",
    "memory": "encoder_outputs",
    "reader": "encoder",
    "writer": "decoder",
    "slope slopes": "gradient",
    "rate": "learning_rate",
    "passes": "epochs",
    "chances": "probs, log_probs",
    "prefix prefixes": "kv_cache",
    "knob knobs": "temperature, top_k, top_p",
    "turn turns hand hands speed speeds": "rotation, frequency",
    "twin": "counterfactual",
    "price": "cost",
}
NAMES = {word: instead for words, instead in NAMES.items() for word in words.split()}
# What stays, by chapter, and why.
EXCEPTIONS = {
    "learning_rate": "the field's word",
    "error_rate": "the field's word",
    "acceptance_rate": "the field's word",
    "hit_rate": "the field's word",
    "prefix_mask": "the field's word",
    "prefix_masks": "the field's word",
    "slope": "of a line, beside its intercept",
    "slopes": "what the authors of ALiBi call them",
}


def prose(notebook):
    """Yield (name of the cell, text) of what is read, without links' addresses."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = re.sub(r"\]\([^)]*\)|“[^”]*”|\"[^\"]*\"", "]", source_of(cell))
            yield cell["id"], text
        else:
            yield (
                cell["id"],
                cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", ""),
            )


def code(cell):
    """Return the tree of a cell's code."""
    return ast.parse(as_python(source_of(cell)))


def strings(tree):
    """Yield the texts in code: labels, messages, docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def names(tree):
    """Yield the names that code gives or uses, an import's and a keyword's too."""
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield value


def wrong_words(text):
    for expression, instead in TEXT.items():
        for match in re.finditer(expression, text, re.IGNORECASE):
            around = text[max(match.start() - 20, 0) : match.end() + 20]
            yield f"“{' '.join(around.split())}”: say {instead}"


def wrong_names(tree):
    for name in sorted({*names(tree)} - EXCEPTIONS.keys()):
        for part in re.findall(r"[A-Z]?[a-z]+", name):
            if part.lower() in NAMES:
                yield f"{name}: say {NAMES[part.lower()]}, not {part.lower()}"


def faults(notebook):
    """Say where a notebook uses a word of its own."""
    for where, text in prose(notebook):
        yield from (f"{where}: {fault}" for fault in wrong_words(text))
    for cell in code_cells(notebook):
        if "remove-cell" in tags_of(cell):
            continue
        tree = code(cell)
        wrong = [fault for text in strings(tree) for fault in wrong_words(text)]
        yield from (f"{cell['id']}: {fault}" for fault in [*wrong, *wrong_names(tree)])


@pytest.mark.parametrize("path", chapters(ROOT), ids=lambda path: path.stem)
def test_a_page_speaks_in_the_field_s_words(path):
    assert [*faults(read_notebook(path))] == []


@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_what_a_check_says_is_in_the_field_s_words(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    wrong = [fault for text in strings(tree) for fault in wrong_words(text)]
    assert [*wrong, *wrong_names(tree)] == []


# --- The rules themselves ---------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "the word at this place",
        "Each look needs keys.",
        "a vector of 64 numbers",
        "the slope of the loss",
        "from another start",
        "the card is full",
        "a chance of one half",
        "the share right of words",
    ],
)
def test_a_word_of_our_own_is_found(text):
    assert len([*wrong_words(text)]) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "softmax in place of a maximum, which takes the place of a norm",
        "look at the figure; it looks ahead",
        "numbers from 0 to 9",
        "start with an empty text, and read on from the start",
        "an error rate of 0.1 and a memory of 16 GB",
    ],
)
def test_an_ordinary_use_of_a_word_is_left_alone(text):
    assert [*wrong_words(text)] == []


def test_a_name_of_our_own_is_found_in_code():
    tree = ast.parse("learning_rate, place_of_word = f(memory=1)\nclass LookBack: ...")
    wrong = [*wrong_names(tree)]
    assert [fault.split(":")[0] for fault in wrong] == [
        "LookBack",
        "memory",
        "place_of_word",
    ]
