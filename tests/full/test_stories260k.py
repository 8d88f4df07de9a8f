"""The published Llama writes the published text; its weights come by the loader."""

import numpy as np
import pytest
import torch
from test_pretrained import numpy_logits

from tutorial_lib.attention import KVCache
from tutorial_lib.data import DataError, load_stories260k
from tutorial_lib.decoding import generate, greedy
from tutorial_lib.pretrained import from_llama2c

# What Andrej Karpathy's own program writes at temperature 0, with the model:
# https://github.com/karpathy/llama2.c/blob/1386edfd9090e2ef1da6636f3ba3220362079024/doc/stories260K.md
PUBLISHED = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside "
    "in the park. One day, she saw a big, red ball. She wanted to play with it, but it "
    "was too high.\nLily's mom said, \"Lily, let's go to the park.\" Lily was sad and "
    "didn't know what to do. She said, \"I want to play with your ball, but I can't "
    "find it.\"\nLily was sad and didn't know what to do. She said, \"I'm sorry, Lily. "
    "I didn't know what to do.\"\nLily didn't want to help her mom, so she said, \"I'm "
    "sorry, mom. I didn't know what to do.\" Her mom said, \"Don't worry, Lily. We can "
    "help you."
)


@pytest.fixture(scope="module")
def stories():
    try:
        return load_stories260k()
    except DataError as error:
        pytest.skip(f"needs the published weights: {error}")


@torch.no_grad()
def test_the_published_model_computes_what_its_format_says(stories):
    model = from_llama2c(stories.path)
    assert sum(weight.numel() for weight in model.parameters()) == 260_032
    tokens = stories.tokenizer.encode("One day, Lily and Tom went to the park.")
    expected = numpy_logits(stories.path.read_bytes(), tokens)
    np.testing.assert_allclose(model(torch.tensor([tokens]))[0], expected, atol=2e-4)


def test_the_published_model_writes_the_published_text(stories):
    bos = stories.tokenizer.bos
    [tokens] = generate(
        from_llama2c(stories.path),
        torch.tensor([[bos]]),
        KVCache(),
        greedy,
        max_new_tokens=256,
        eos=bos,
    ).tolist()
    text = stories.tokenizer.decode([bos, *tokens])
    assert text == PUBLISHED
