"""The attention-only Transformer is a sum of what its embeddings and heads write."""

import torch

from tutorial_lib.attention import scaled_dot_product_attention
from tutorial_lib.attention_only import AttentionOnly
from tutorial_lib.masks import causal_mask

TOKENS = torch.tensor([[3, 1, 4, 1, 5]])


def make_model():
    torch.manual_seed(0)
    return AttentionOnly(9, 8, 2, 2, max_tokens=6)


@torch.no_grad()
def test_logits_are_those_of_the_embeddings_plus_each_head_s_own_output():
    model = make_model()
    x = model.token_embedding.weight[TOKENS[0]] + model.position_embedding.weight[:5]
    for attention in model.layers:
        added = torch.zeros_like(x)
        for head in range(2):
            own = slice(4 * head, 4 * head + 4)
            Q, K, V = (
                x @ W.weight[own].T
                for W in (attention.W_Q, attention.W_K, attention.W_V)
            )
            outputs, _ = scaled_dot_product_attention(Q, K, V, causal_mask(5))
            added += outputs @ attention.W_O.weight[:, own].T
        x = x + added
    expected = x @ model.unembedding.weight.T
    torch.testing.assert_close(model(TOKENS)[0], expected)


@torch.no_grad()
def test_from_embeddings_the_layers_give_the_same_logits():
    model = make_model()
    torch.testing.assert_close(model.run_layers(model.embed(TOKENS)), model(TOKENS))


@torch.no_grad()
def test_a_token_changes_nothing_before_it():
    model = make_model()
    changed = TOKENS.clone()
    changed[0, 3] = 7
    torch.testing.assert_close(model(TOKENS)[:, :3], model(changed)[:, :3])
    assert not model(TOKENS)[:, 3:].allclose(model(changed)[:, 3:])
