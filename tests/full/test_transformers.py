"""SmolLM2 and MiniLM compute in the book's classes what they do in transformers."""

import pytest
import torch
import transformers
from test_minilm import HIDDEN_STATE, QUESTION
from test_smollm2 import LOGITS, ODD_TEXTS, TEXT
from torch.nn.utils.rnn import pad_sequence

from tutorial_lib.attention import KVCache
from tutorial_lib.decoding import generate, greedy
from tutorial_lib.installed import find_files
from tutorial_lib.interpret import record_attention
from tutorial_lib.pretrained import MINILM, SMOLLM2, chat_prompt, minilm, smollm2

# --- SmolLM2 --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ours():
    return smollm2()


@pytest.fixture(scope="module")
def theirs():
    """Return the model and the tokenizer that transformers makes of the same file."""
    [path] = find_files(SMOLLM2).values()
    folder = str(path.parent)
    model = transformers.LlamaForCausalLM.from_pretrained(
        folder, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager"
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=path.name)
    return model.eval(), tokenizer


def tokens_of(ours, text):
    _, tokenizer = ours
    return torch.tensor([tokenizer.encode(text).ids])


@torch.no_grad()
def test_smollm2_s_logits_and_attention_maps_are_those_of_transformers(ours, theirs):
    tokens = tokens_of(ours, chat_prompt(TEXT))
    with record_attention(ours[0]) as maps:
        logits = ours[0](tokens)
    expected = theirs[0](tokens, output_attentions=True)
    torch.testing.assert_close(logits, expected.logits, atol=1e-3, rtol=0)
    assert len(maps) == len(expected.attentions) == 30
    for recorded, weights in zip(maps.values(), expected.attentions, strict=True):
        torch.testing.assert_close(recorded, weights, atol=1e-4, rtol=0)


@torch.no_grad()
def test_the_numbers_that_the_short_tests_compare_with_are_those_of_transformers(
    ours, theirs
):
    logits = theirs[0](tokens_of(ours, TEXT)).logits[0]
    for position, words in LOGITS.items():
        for word, expected in words.items():
            [token] = ours[1].encode(word).ids
            assert logits[position, token].item() == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("text", ["Once upon a time", chat_prompt("What is a cat?")])
def test_smollm2_writes_what_it_writes_in_transformers(ours, theirs, text):
    tokens = tokens_of(ours, text)
    new = generate(ours[0], tokens, KVCache(), greedy, max_new_tokens=10, eos=2)
    expected = theirs[0].generate(
        tokens,
        attention_mask=torch.ones_like(tokens),
        do_sample=False,
        max_new_tokens=10,
    )
    assert new.equal(expected[:, tokens.shape[1] :])


def test_a_chat_s_prompt_is_that_of_the_template_in_the_file(theirs):
    question = [{"role": "user", "content": "What is attention?"}]
    expected = theirs[1].apply_chat_template(
        question, tokenize=False, add_generation_prompt=True
    )
    assert chat_prompt("What is attention?") == expected


@pytest.mark.parametrize("text", [t for t in ODD_TEXTS if not any(map(str.isdigit, t))])
def test_texts_without_digits_are_split_as_in_transformers(ours, theirs, text):
    # Digits it keeps together where it reads GGUF, unlike the published tokenizer.
    expected = theirs[1](text, add_special_tokens=False)["input_ids"]
    assert ours[1].encode(text).ids == expected


# --- MiniLM ---------------------------------------------------------------------------

SENTENCES = [
    "The animal didn't cross the street because it was too tired.",
    QUESTION,
    "bank",
]


@torch.no_grad()
def test_minilm_s_hidden_states_and_maps_are_those_of_transformers():
    model, tokenizer = minilm()
    path = find_files(MINILM)["model.safetensors"]
    theirs = transformers.BertModel.from_pretrained(
        str(path.parent), attn_implementation="eager"
    ).eval()
    rows = [torch.tensor(tokenizer.encode(text).ids) for text in SENTENCES]
    tokens = pad_sequence(rows, batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    with record_attention(model) as maps:
        x = model(tokens, lengths)
    is_token = torch.arange(tokens.shape[1]) < lengths[:, None]  # (batch, token)
    expected = theirs(tokens, attention_mask=is_token.long(), output_attentions=True)
    torch.testing.assert_close(
        x[is_token], expected.last_hidden_state[is_token], atol=1e-4, rtol=0
    )
    assert expected.last_hidden_state[1, 0, :4].tolist() == pytest.approx(
        HIDDEN_STATE, abs=1e-4
    )
    assert len(maps) == len(expected.attentions) == 6
    for recorded, weights in zip(maps.values(), expected.attentions, strict=True):
        rows = is_token[:, None, :, None]  # queries that are padding may differ
        difference = (recorded - weights) * rows
        assert difference.abs().max() < 1e-4


@pytest.mark.parametrize("sentence", SENTENCES)
def test_minilm_s_tokens_are_those_of_transformers(sentence):
    _, tokenizer = minilm()
    path = find_files(MINILM)["tokenizer.json"]
    theirs = transformers.AutoTokenizer.from_pretrained(str(path.parent))
    assert tokenizer.encode(sentence).ids == theirs(sentence)["input_ids"]
