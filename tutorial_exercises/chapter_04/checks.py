"""Checks for chapter 4: masks and batches done right.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import math

import torch

from tutorial_exercises.exercise import Exercise
from tutorial_exercises.memory import Watch
from tutorial_exercises.probe import call_advising

from .specimens import LEAKY, RIGHT

packed = Exercise(
    "4.1",
    "Several sentences in one row",
    name="packed_mask",
    returns="batch query key",
    hints=[
        "Three conditions must hold for a cell: same sentence, not later, no padding.",
        "`sentence[:, :, None] == sentence[:, None, :]` compares every query with "
        "every key: (batch, query, key).",
        "Join that with `causal_mask(sentence.shape[1])` by `&`. The third condition, "
        "`sentence > 0`, still lacks an axis for the queries.",
    ],
)


@packed.spec
def packed_mask(sentence):
    """Ask the three questions of every cell, one at a time."""
    batch, tokens = sentence.shape
    mask = torch.zeros(batch, tokens, tokens, dtype=torch.bool)
    for b, i in torch.cartesian_prod(torch.arange(batch), torch.arange(tokens)):
        for j in range(tokens):
            same = sentence[b, i] == sentence[b, j]
            mask[b, i, j] = same and j <= i and sentence[b, j] > 0
    return mask


NO_AXIS = (
    "must match the size",
    "axes",
    "The tables do not fit. `sentence[:, :, None] == sentence[:, None, :]` is (batch, "
    "query, key), and `sentence > 0`, (batch, key), lacks an axis for the queries.",
)


@packed.step("a boolean mask, (batch, query, key)")
def _(probe):
    sentence = torch.tensor([[1, 1, 2, 2, 2], [1, 2, 3, 4, 4]])
    mask = call_advising(probe, (sentence,), [NO_AXIS])
    probe.shape(mask, batch=2, query=5, key=5)
    message = f"The mask must be boolean, got {mask.dtype}."
    probe.require(mask.dtype == torch.bool, "dtype", message)


@packed.step("two sentences that do not see each other, nor the future")
def _(probe):
    probe(torch.tensor([[1, 1, 2, 2, 2], [1, 2, 3, 4, 4]]))
    probe.same()


@packed.step("padding looks at nothing and is seen by nobody")
def _(probe):
    probe(torch.tensor([[1, 1, 1, 2, 2, 0, 0], [0, 0, 3, 3, 1, 1, 0]]))
    probe.same()


additive = Exercise(
    "4.2",
    "A mask to add",
    name="additive_mask",
    returns="query key",
    hints=[
        "Begin with zeros of the right type, and fill in where the mask is False.",
        "−∞ gives NaN in an empty row. The lowest number of the type plus a negative "
        "score may be −∞ again. What lies between?",
        "`torch.finfo(dtype)` knows the lowest number of a type. A good part of it, "
        "but not all, leaves room for scores on both sides.",
    ],
)


@additive.spec
def additive_mask(mask, dtype):
    """Write the numbers cell by cell."""
    added = torch.zeros(mask.shape, dtype=dtype)
    for i, j in (~mask).nonzero().tolist():
        added[i, j] = torch.finfo(dtype).min / 2
    return added


OVERFLOW = (
    "without overflow",
    "out-of-range",
    "Your number is out of reach for float16, whose lowest is −65,504. Ask "
    "`torch.finfo(dtype)`.",
)


def _some_hidden():
    return torch.tensor([[1, 1, 0, 1], [0, 1, 0, 0], [1, 0, 1, 1]]).bool()


@additive.step("0 where a query may look, below 0 elsewhere, of the type asked for")
def _(probe):
    mask = _some_hidden()
    mask[2] = False
    for dtype in (torch.float32, torch.float16):
        added = call_advising(probe, (mask, dtype), [OVERFLOW])
        probe.shape(added, query=3, key=4)
        message = f"Asked for {dtype}, you returned {added.dtype}."
        probe.require(added.dtype == dtype, "dtype", message)
        message = "Where a query may look, exactly 0 must be added."
        probe.require(added[mask].eq(0).all(), "visible", message)
        message = "Where a query may not look, in an empty row as well, a number far "
        message += "below 0 must be added."
        probe.require(added[~mask].lt(0).all(), "hidden", message)


def _weights(probe, mask, scores):
    return (scores + probe(mask, scores.dtype)).softmax(dim=-1)


def _hides(dtype):
    def step(probe):
        mask = _some_hidden()
        scores = torch.where(mask, -1000.0, 1000.0).to(dtype)
        hidden = _weights(probe, mask, scores)[~mask]
        probe.require(
            hidden.eq(0).all(),
            "too-high",
            "A hidden key still gets weight. Its score may be 1000 and the visible "
            "ones −1000: your number must outweigh that.",
        )

    return step


def _no_nan(dtype):
    def step(probe):
        mask = torch.tensor([[True, False, True], [False, False, False]])
        for score in (0.0, -1000.0, 1000.0):
            weights = _weights(probe, mask, torch.full((2, 3), score, dtype=dtype))
            probe.require(
                weights.isfinite().all(),
                "empty-row",
                f"In {str(dtype)[6:]}, a row that sees nothing is NaN when its scores "
                f"are {score:.0f}: the sums are all −∞ there, or past the lowest "
                "number of the type.",
            )

    return step


for dtype in (torch.float32, torch.bfloat16, torch.float16):
    name = str(dtype).removeprefix("torch.")
    additive.step(f"hidden keys get a weight of exactly 0 in {name}")(_hides(dtype))
    additive.step(f"no row is NaN in {name}")(_no_nan(dtype))


batch = Exercise(
    "4.3",
    "A loop becomes a batch",
    name="attend_in_batch",
    fallback="tutorial_exercises.chapter_04.solutions:attend_in_batch",
    hints=[
        "`pad_sequence(sentences, batch_first=True)` makes the batch; keep the "
        "lengths.",
        "Hide the padding from every query: `padding_mask(lengths, keys=x.shape[1])`.",
        "Cut each output to its length: `[o[:n] for o, n in zip(outputs, lengths)]`.",
    ],
)


@batch.spec
def attend_in_batch(sentences):
    """Take each sentence and each of its words in turn."""
    outputs = [torch.zeros_like(x) for x in sentences]
    for x, output in zip(sentences, outputs, strict=True):
        for i, query in enumerate(x):
            output[i] = _look_round(query, x)
    return outputs


def _look_round(query, x):
    scores = [(query * key).sum().item() / math.sqrt(len(key)) for key in x]
    powers = [math.exp(score - max(scores)) for score in scores]
    return sum(p * value for p, value in zip(powers, x, strict=True)) / sum(powers)


# Where weights are made; torch's own attention shows its outputs only, one each word.
SOFTMAXES = ("softmax", "exp", "scaled_dot_product_attention")


BATCH_SECOND = (
    "lengths must lie between",
    "batch-first",
    "The lengths do not fit your padded tensor. Is the batch its first axis? "
    "`pad_sequence` puts it second unless it is told `batch_first=True`.",
)


def _sentences(*lengths, d_model=8):
    return [torch.randn(length, d_model) for length in lengths]


@batch.step("one output for each sentence, as long as the sentence")
def _(probe):
    sentences = _sentences(3, 5, 2)
    outputs = call_advising(probe, (sentences,), [BATCH_SECOND])
    is_list = isinstance(outputs, (list, tuple)) and all(map(torch.is_tensor, outputs))
    message = "Return a list with one tensor of outputs for each sentence."
    probe.require(is_list and len(outputs) == 3, "list", message)
    got, wanted = ([tuple(x.shape) for x in xs] for xs in (outputs, sentences))
    message = f"The outputs must have the shapes {wanted}, yours have {got}."
    probe.require(got == wanted, "lengths", message)


@batch.step("each output is what the sentence gets alone")
def _(probe):
    probe(_sentences(3, 5, 2))
    probe.same()


@batch.step("a word whose numbers are 0 is a word")
def _(probe):
    sentences = _sentences(3, 5, 2)
    sentences[1][2, 0] = 0
    sentences[1][4] = 0
    probe(sentences)
    probe.same()


@batch.step("one batch, not a loop over the sentences")
def _(probe):
    lengths = [3, 1, 2, 3] * 10  # 90 words, but at most 9 weights in a sentence
    with Watch() as seen:
        probe(_sentences(*lengths))
    largest = max(seen.sizes.get(name, 0) for name in SOFTMAXES)
    probe.require(
        largest >= sum(lengths),
        "loop",
        "The outputs are right, but no softmax ever ran over the words of all "
        "sentences: you call attention for one sentence after the other. Pad them "
        "into one (batch, token, d_model) tensor, and call it once, with a mask.",
    )


@batch.step("an empty sentence does no harm")
def _(probe):
    probe(_sentences(2, 0, 4))
    probe.same()


leak = Exercise(
    "4.4",
    "A test that finds the leak",
    name="leaks",
    fallback="tutorial_exercises.chapter_04.solutions:leaks",
    seconds=20,  # for who asks gradients one by one
    hints=[
        "Make x, call attend; replace all words from place t on, call it again; "
        "compare the outputs before t.",
        "Do that for every t, for training True and False, and with a batch of two.",
        "New words 100 times as large bring small leaks to light; two right outputs "
        "may differ in the sixth digit (`torch.allclose`).",
    ],
)


@leak.spec
def leaks(attend):
    """Ask the gradients: each output's slope by each later word must be exactly 0."""
    return any(_leaks_by_slope(attend, training) for training in (True, False))


def _leaks_by_slope(attend, training):
    x = torch.randn(2, 6, 3)
    slopes = torch.autograd.functional.jacobian(lambda x: attend(x, training), x)
    return bool(slopes.abs().sum(dim=(0, 2, 3, 5)).triu(diagonal=1).any())


@leak.step("answers True or False, and lets honest attentions pass")
def _(probe):
    for name, attend in RIGHT.items():
        if probe.verdict(attend):
            _explain_false_alarm(probe, name)


def _explain_false_alarm(probe, name):
    silent = [not probe(attend) for _, attend, _ in LEAKY.values()]
    probe.require(
        sum(silent) <= len(silent) / 2,
        "inverted",
        "You answer True for an honest attention and False for most of the leaking "
        "ones: the other way round. True must mean that there is a leak.",
    )
    probe.fail(
        "false-alarm",
        f"Your test finds a leak where none is: in the attention {name}. The usual "
        "causes: you compare the output at the place that you changed, which may "
        "move; you change earlier words, not later ones; you compare with an attention "
        "of your own instead of comparing before and after; or you compare exactly, "
        "where the sixth digit may differ.",
    )


@leak.step("finds nine leaks")
def _(probe):
    found = []
    for fault, (code, leaking, advice) in LEAKY.items():
        seen = probe.verdict(leaking)
        message = f"{_listed(found)}\nThe next one passes your test unseen. {advice}"
        probe.require(seen, f"misses-{code}", message)
        found.append(fault)


def _listed(found):
    """Name the leaks found so far, and no other: the hunt is the reader's."""
    lines = [f"Leaks found: {len(found)} of {len(LEAKY)}.", *found]
    return "\n  ✓ ".join(lines)
