"""What the docstrings promise to raise, provoked: one table for the whole library."""

import ast
import gzip
import re
from pathlib import Path

import pytest
import torch
from torch import nn

from tutorial_lib import (
    attention,
    decoding,
    definitions,
    gpt,
    interpret,
    kernels,
    llama,
    masks,
    metrics,
    notebook,
    position,
    seq2seq,
    shapes,
    training,
    transformer,
    vit,
    windows,
)
from tutorial_lib.data import datasets, downloads, stories, subwords, text
from tutorial_lib.plotting import charts, drawing, heatmaps, images, pictures

LIBRARY = Path(__file__).parents[1] / "tutorial_lib"
PROMISE = re.compile(r"\b[Rr]aises?\s(.*)", re.DOTALL)
ERROR = re.compile(r"\b\w*Error\b|\bStopped\b")
ELSEWHERE = re.compile(r"\berrors as in\b")
CHECKS = {"add_causal", "check_counts", "check_mask", "check_shapes", "frequencies"}
FUNCTIONS = (ast.FunctionDef, ast.ClassDef)

X, EMPTY = torch.ones(2, 5, 8), torch.ones(1, 0).long()
MASK, WORDS = torch.ones(5, 5), text.Vocabulary([["a"]])
TOKENS = torch.ones(1, 5).long()
GPT = gpt.GPT(6, 8, 2, 1, max_tokens=4).eval()
LLAMA = llama.Llama(6, 8, 2, 1, 1, max_tokens=4)
SIZES = (6, 8, 2, 16, 1)
VIT_SIZES = {"num_classes": 2, "d_model": 8, "num_layers": 1, "num_heads": 2}
VIT_SIZES |= {"mlp_dim": 8}
VIT = vit.VisionTransformer(8, 4, **VIT_SIZES)
LINEAR = nn.Linear(8, 1)
CHOICE = {"max_new_tokens": 2}


class Vocabularies:
    source_vocabulary = target_vocabulary = WORDS


class Unsure(nn.Module):
    """A model whose logits are NaN."""

    def decode_step(self, tokens, state):
        return torch.full((len(tokens), 6), torch.nan), state


def train(loss=lambda model, batch: model(batch).mean(), batches=(X,), **options):
    optimizer = torch.optim.SGD(options.pop("parameters", LINEAR.parameters()), lr=0.1)
    return training.fit(
        LINEAR, list(batches), loss, optimizer=optimizer, **({"steps": 1} | options)
    )


def stop_in_a_bar():
    with notebook.progress_bar(2):
        raise KeyboardInterrupt


def interrupted(model, batch):
    raise KeyboardInterrupt


def recorded():
    with interpret.record_attention(LINEAR):
        LINEAR(X)


def knocked_out():
    with interpret.attention_knockout([LINEAR], MASK.bool()):
        pass


def ablated(head, num_heads):
    with interpret.ablate_head(LINEAR, head, num_heads):
        pass


def speculate(prompt=(1, 1), draft=GPT, count=1):
    options = {"num_draft_tokens": count, "max_new_tokens": 2}
    prompt = torch.tensor(prompt, dtype=torch.long)
    return decoding.speculative_decode(GPT, draft, prompt, **options)


def search(model=GPT, beams=2, longest=2):
    options = {"num_beams": beams, "max_new_tokens": longest}
    return decoding.beam_search(model, TOKENS[:, :1], attention.KVCache(), **options)


def pairs(**options):
    vocabularies = WORDS, WORDS
    pair = text.SentencePair(("a",), options.pop("target", ("a",)))
    given = [pair] * options.pop("count", 1)
    return text.Batches(given, *vocabularies, **({"batch_size": 1} | options))


def fan(weights):
    picture = drawing.Picture(2)
    boxes = [picture.box(x, 1, "a", "key") for x in (1, 2, 3)]
    return picture.fan(boxes[0], boxes[1:], "key", weights)


def unreadable(folder):
    (folder / "file").write_bytes(b"no model")
    return folder / "file"


def uneven(folder):
    (folder / "multi30k").mkdir()
    for language, lines in (("en", "A.\nB.\n"), ("fr", "A.\n")):
        path = folder / f"multi30k/val.{language}.gz"
        path.write_bytes(gzip.compress(lines.encode()))
    return folder


def table(folder):
    """List what raises: the function or class, the type of error, and calls."""
    model = transformer.Transformer(
        *(
            part(*SIZES, max_tokens=3, norm_first=True)
            for part in (transformer.Encoder, transformer.Decoder)
        )
    )
    rnn = seq2seq.Encoder(6, 4, 3)
    mha = attention.MultiHeadAttention(8, 2)
    biased = position.PositionedAttention(8, 2, position_bias=position.ALiBi(4))
    file = unreadable(folder)
    return [
        (interpret.rollout, ValueError, lambda: interpret.rollout([X])),
        (
            interpret.gradient_times_input,
            ValueError,
            lambda: interpret.gradient_times_input(lambda x: x.sum(-1), X, LINEAR),
        ),
        (
            interpret.ablate_head,
            ValueError,
            lambda: ablated(2, 2),
            lambda: ablated(0, 3),
        ),
        (interpret.attention_knockout, ValueError, knocked_out),
        (
            attention.masked_softmax,
            ValueError,
            lambda: attention.masked_softmax(MASK, MASK),
            lambda: attention.masked_softmax(MASK, MASK[:4].bool()),
        ),
        (
            attention.nadaraya_watson,
            ValueError,
            lambda: attention.nadaraya_watson(X[0], X[0], X[0, 1:], torch.exp),
        ),
        (
            attention.attention_weights,
            ValueError,
            lambda: attention.attention_weights(X, X, MASK),
        ),
        (
            attention.scaled_dot_product_attention,
            ValueError,
            lambda: attention.scaled_dot_product_attention(X, X, X[:, 1:]),
            lambda: attention.scaled_dot_product_attention(X, X[..., 1:], X),
        ),
        (
            attention.MultiHeadAttention,
            ValueError,
            lambda: attention.MultiHeadAttention(8, 3),
        ),
        (
            attention.MultiHeadAttention.forward,
            ValueError,
            lambda: mha(X[0], X[0], X[0]),
            lambda: mha(X, X[:1].expand(3, -1, -1), X),
            lambda: mha(X, X, X, MASK),
        ),
        (
            attention.add_causal,
            ValueError,
            lambda: attention.add_causal(MASK.bool(), (4, 4), device="cpu"),
            lambda: attention.add_causal(None, (4, 5), device="cpu"),
        ),
        (
            datasets.load_translation,
            ValueError,
            lambda: datasets.load_translation("wmt"),
            lambda: datasets.load_translation("grammar", first=3),
        ),
        (
            datasets.load_translation,
            downloads.DataError,
            lambda: datasets.load_translation("tatoeba", folder=folder),
        ),
        (
            datasets.ImageBatches,
            ValueError,
            lambda: datasets.ImageBatches(None, batch_size=0),
        ),
        (datasets.load_images, ValueError, lambda: datasets.load_images("mnist")),
        (
            datasets.load_images,
            RuntimeError,
            lambda: datasets.load_images("fashion_mnist", folder=folder),
        ),
        (
            downloads.fetch,
            downloads.DataError,
            lambda: downloads.fetch("http://127.0.0.1:9/x", "0" * 64, folder=folder),
        ),
        (
            downloads.read_tatoeba,
            downloads.DataError,
            lambda: downloads.read_tatoeba(folder=folder),
        ),
        (
            downloads.read_multi30k,
            downloads.DataError,
            lambda: downloads.read_multi30k("val", folder=folder),
            lambda: downloads.read_multi30k("val", folder=uneven(folder)),
        ),
        (
            downloads.read_shakespeare,
            downloads.DataError,
            lambda: downloads.read_shakespeare(folder=folder),
        ),
        (
            downloads.load_stories260k,
            downloads.DataError,
            lambda: downloads.load_stories260k(folder=folder),
        ),
        (
            stories.split,
            ValueError,
            lambda: stories.split(1, 1, 1, seed=0, longer=(7,)),
            lambda: stories.split(1, 1, 1, seed=0, longer=3),
        ),
        (subwords.read_tokenizer, ValueError, lambda: subwords.read_tokenizer(file)),
        (
            text.check_counts,
            ValueError,
            lambda: text.check_counts(k=0),
            lambda: text.check_counts(k=1.5),
        ),
        (text.tokenize, ValueError, lambda: text.tokenize("Hallo", "de")),
        (
            text.pad,
            ValueError,
            lambda: text.pad([[]], WORDS),
            lambda: text.pad(["a"], WORDS),
        ),
        (
            text.Batches,
            ValueError,
            lambda: pairs(batch_size=0),
            lambda: pairs(count=0),
            lambda: pairs(target=()),
        ),
        (
            decoding.generate,
            ValueError,
            lambda: decoding.generate(Unsure(), TOKENS, None, torch.argmax, **CHOICE),
            lambda: decoding.generate(
                GPT, TOKENS[:, :1], attention.KVCache(), max, max_new_tokens=-1
            ),
        ),
        (
            decoding.beam_search,
            ValueError,
            lambda: search(beams=0),
            lambda: search(longest=-1),
            lambda: search(Unsure()),
        ),
        (
            decoding.translate,
            ValueError,
            lambda: decoding.translate(GPT, [], None, batch_size=0),
            lambda: decoding.translate(GPT, [[]], Vocabularies, progress=False),
        ),
        (
            decoding.apply_temperature,
            ValueError,
            lambda: decoding.apply_temperature(X, 0),
            lambda: decoding.apply_temperature(X, torch.nan),
        ),
        (decoding.top_k, ValueError, lambda: decoding.top_k(X, 0)),
        (
            decoding.top_p,
            ValueError,
            lambda: decoding.top_p(X, 0),
            lambda: decoding.top_p(X, 1.1),
        ),
        (
            decoding.min_p,
            ValueError,
            lambda: decoding.min_p(X, 0),
            lambda: decoding.min_p(X, 1.1),
        ),
        (
            decoding.speculative_decode,
            ValueError,
            lambda: speculate(prompt=()),
            lambda: speculate(count=0),
            lambda: speculate(draft=gpt.GPT(7, 8, 2, 1, max_tokens=4)),
        ),
        (
            definitions.definitions,
            SyntaxError,
            lambda: definitions.definitions("def ("),
        ),
        (gpt.GPT.forward, ValueError, lambda: GPT(EMPTY), lambda: GPT(TOKENS)),
        (
            gpt.from_gpt2,
            ValueError,
            lambda: gpt.from_gpt2({}, 2),
            lambda: gpt.from_gpt2("model.bin", 2),
        ),
        *(
            (make, ValueError, lambda make=make: make(0), lambda make=make: make(-1))
            for make in (
                kernels.gaussian,
                kernels.boxcar,
                kernels.epanechnikov,
                kernels.triangular,
            )
        ),
        (
            llama.GroupedQueryAttention,
            ValueError,
            lambda: llama.GroupedQueryAttention(8, 4, 3),
            lambda: llama.GroupedQueryAttention(8, 3, 3),
        ),
        (llama.Llama.forward, ValueError, lambda: LLAMA(EMPTY), lambda: LLAMA(TOKENS)),
        (llama.from_llama2c, ValueError, lambda: llama.from_llama2c(file)),
        (
            masks.padding_mask,
            ValueError,
            lambda: masks.padding_mask([5], 4),
            lambda: masks.padding_mask([-1], 4),
            lambda: masks.padding_mask([2.5], 4),
            lambda: masks.padding_mask([[1, 2]], 4),
            lambda: masks.padding_mask(2, 4),
        ),
        (masks.window_mask, ValueError, lambda: masks.window_mask(4, -1)),
        (
            metrics.accuracy,
            ValueError,
            lambda: metrics.accuracy([1], [1, 2]),
            lambda: metrics.accuracy(X, X),
            lambda: metrics.accuracy(EMPTY, EMPTY),
        ),
        (
            metrics.exact_match,
            ValueError,
            lambda: metrics.exact_match(["a"], ["a"]),
            lambda: metrics.exact_match([["a"]], []),
            lambda: metrics.exact_match([], []),
        ),
        (
            metrics.bleu,
            ValueError,
            lambda: metrics.bleu([["a"]], ["a"]),
            lambda: metrics.bleu(["a"], []),
            lambda: metrics.bleu([], []),
        ),
        (
            metrics.alignment_accuracy,
            ValueError,
            lambda: metrics.alignment_accuracy([MASK], [{(0, 5)}]),
            lambda: metrics.alignment_accuracy([MASK], [set()]),
        ),
        (charts.show_curves, ValueError, lambda: charts.show_curves(curves={})),
        (drawing.Picture.fan, ValueError, lambda: fan([0.1, 0.2, 0.7])),
        (
            heatmaps.show_heatmaps,
            ValueError,
            lambda: heatmaps.show_heatmaps(2 * MASK),
            lambda: heatmaps.show_heatmaps(MASK, key_labels="abc"),
            lambda: heatmaps.show_heatmaps(MASK, mask=MASK[:2].bool()),
            lambda: heatmaps.show_heatmaps(MASK, outline=MASK),
        ),
        (
            heatmaps.as_cells,
            ValueError,
            lambda: heatmaps.as_cells({(5, 0)}, (5, 5)),
            lambda: heatmaps.as_cells(MASK[:2].bool(), (5, 5)),
        ),
        (
            images.show_images,
            ValueError,
            lambda: images.show_images(torch.ones(1, 2, 5, 5)),
            lambda: images.show_images([MASK], titles=["a", "b"]),
        ),
        (
            pictures.show_scaled_dot_product,
            ValueError,
            lambda: pictures.show_scaled_dot_product(X[0], X[0, :, :3], X[0], query=0),
        ),
        (
            position.sinusoids,
            ValueError,
            lambda: position.sinusoids(torch.arange(3), 5),
        ),
        (position.frequencies, ValueError, lambda: position.frequencies(5)),
        (
            position.SinusoidalEncoding,
            ValueError,
            lambda: position.SinusoidalEncoding(5, 9),
        ),
        (
            position.SinusoidalEncoding.forward,
            ValueError,
            lambda: position.SinusoidalEncoding(8, 4)(X),
            lambda: position.SinusoidalEncoding(8, 9)(X, start=-1),
        ),
        (position.RotaryEncoding, ValueError, lambda: position.RotaryEncoding(5)),
        (
            position.RotaryEncoding.forward,
            ValueError,
            lambda: position.RotaryEncoding(4)(X),
        ),
        (position.PositionedAttention, ValueError, lambda: biased(X, X, X)),
        (
            position.sinusoidal_grid,
            ValueError,
            lambda: position.sinusoidal_grid(2, 2, 6),
        ),
        (interpret.record_attention, ValueError, recorded),
        (
            seq2seq.Encoder.forward,
            RuntimeError,
            lambda: rnn(TOKENS, torch.tensor([0])),
        ),
        (
            shapes.check_mask,
            ValueError,
            lambda: shapes.check_mask(MASK, (5, 5)),
            lambda: shapes.check_mask(MASK.bool(), (4, 4)),
            lambda: shapes.check_mask(None, (4, 5), causal=True),
        ),
        (
            shapes.check_shapes,
            ValueError,
            lambda: shapes.check_shapes(X, X, X[:, 1:]),
            lambda: shapes.check_shapes(X, X, X, axes=4),
        ),
        (
            training.fit,
            ValueError,
            lambda: train(batches=[]),
            lambda: train(lambda model, batch: model(batch).mean().item()),
            lambda: train(parameters=nn.Linear(8, 1).parameters()),
            lambda: train(steps=None),
        ),
        (
            training.fit,
            FloatingPointError,
            lambda: train(lambda model, batch: model(batch).mean() * torch.inf),
        ),
        (training.fit, notebook.Stopped, lambda: train(interrupted)),
        (notebook.progress_bar, notebook.Stopped, stop_in_a_bar),
        (
            training.warmup_cosine,
            ValueError,
            lambda: training.warmup_cosine(5, 5),
            lambda: training.warmup_cosine(-1, 5),
        ),
        (
            transformer.Encoder.forward,
            ValueError,
            lambda: model.encoder(TOKENS, torch.tensor([5])),
        ),
        (
            transformer.Decoder.forward,
            ValueError,
            lambda: model.decoder(TOKENS, X[:1]),
        ),
        (
            vit.VisionTransformer,
            ValueError,
            lambda: vit.VisionTransformer(9, 4, **VIT_SIZES),
            lambda: vit.VisionTransformer((8, 8), 4, **VIT_SIZES),
            lambda: vit.VisionTransformer(8, 4, **VIT_SIZES | {"num_heads": 3}),
        ),
        (
            vit.VisionTransformer.forward,
            ValueError,
            lambda: VIT(torch.ones(1, 1, 8, 9)),
        ),
        (
            vit.VisionTransformer.embed,
            ValueError,
            lambda: VIT.embed(torch.ones(1, 3, 8, 8)),
        ),
        (vit.from_torchvision, ValueError, lambda: vit.from_torchvision(LINEAR)),
        (
            notebook.explore,
            ValueError,
            lambda: notebook.explore(lambda x: x, x=None),
            lambda: notebook.explore(lambda x=3: x, x=(0, 1)),
        ),
        (
            windows.cyclic_shift_mask,
            ValueError,
            lambda: windows.cyclic_shift_mask(5, 2, 1),
            lambda: windows.cyclic_shift_mask(4, 0, 0),
        ),
        (
            windows.shifted_window_mask,
            ValueError,
            lambda: windows.shifted_window_mask(4, 0, 0),
        ),
        (
            windows.window_partition,
            ValueError,
            lambda: windows.window_partition(torch.zeros(1, 4, 4, 2), 0),
            lambda: windows.window_partition(torch.zeros(1, 4, 6, 2), 4),
        ),
        (
            windows.window_reverse,
            ValueError,
            lambda: windows.window_reverse(torch.zeros(4, 4, 2), 0, 4),
            lambda: windows.window_reverse(torch.zeros(4, 4, 2), 2, 5),
            lambda: windows.window_reverse(torch.zeros(4, 4, 2), 2, 8),
        ),
    ]


def modules():
    for path in sorted(LIBRARY.rglob("*.py")):
        name = ".".join(path.relative_to(LIBRARY.parent).with_suffix("").parts)
        if path.name != "__init__.py":
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def public(tree, before=""):
    """Yield what a reader may use, with its name: functions, classes and methods."""
    for node in tree.body:
        if isinstance(node, FUNCTIONS) and not node.name.startswith("_"):
            yield f"{before}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from public(node, f"{node.name}.")


def promised():
    """List (function or class, name of an error) as docstrings have them."""
    for module, tree in modules():
        for name, node in public(tree):
            promise = PROMISE.search(ast.get_docstring(node) or "")
            for error in ERROR.findall(promise[1]) if promise else ():
                yield f"{module}.{name}", error


def name_of(thing):
    return f"{thing.__module__}.{thing.__qualname__}"


def test_whatever_is_promised_is_in_the_table_and_nothing_else(tmp_path):
    listed = {(name_of(thing), error.__name__) for thing, error, *_ in table(tmp_path)}
    assert listed == {*promised()}


def test_each_promise_is_kept_in_one_line(tmp_path):
    for thing, error, *calls in table(tmp_path):
        for number, call in enumerate(calls):
            with pytest.raises(BaseException) as caught:
                call()
                pytest.fail(f"{name_of(thing)} does not raise in call {number}")
            assert caught.type is error, (name_of(thing), number, caught.value)
            ours = error is not RuntimeError
            assert not ours or "\n" not in str(caught.value), name_of(thing)


def called(node):
    calls = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
    return {getattr(call, "id", getattr(call, "attr", "")) for call in calls}


def test_who_raises_says_so():
    silent = []
    for module, tree in modules():
        own = {node.name: node for node in tree.body if isinstance(node, FUNCTIONS)}
        raising, before = set(CHECKS), None
        while raising != before:
            before = set(raising)
            raising |= {name for name, node in own.items() if raises(node, before)}
        for name, node in public(tree):
            said = ast.get_docstring(node) or ""
            if isinstance(node, ast.ClassDef):
                made = [x for x in node.body if getattr(x, "name", "") == "__init__"]
                node = made[0] if made else ast.Pass()
            elif "." in name:
                continue  # of methods what they say is tried above
            if raises(node, raising) and not (
                PROMISE.search(said) or ELSEWHERE.search(said)
            ):
                silent.append(f"{module}.{name}")
    assert silent == []


def raises(node, raising):
    """Tell whether a function raises an error, itself or by a helper."""
    own = any(isinstance(part, ast.Raise) and part.exc for part in ast.walk(node))
    helpers = {name for name in raising if name.startswith("_") or name in CHECKS}
    return own or bool(called(node) & helpers)
