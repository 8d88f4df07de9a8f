"""How fast a real language model generates in this book's own code, with its KV cache.

    python benchmarks/real_model.py

SmolLM2-135M-Instruct in the book's `Llama` continues a short prompt by `generate` and
`greedy`, in 32 bits and on one thread: 50 and 200 new tokens, with the KV cache and
without it. Without one, every step computes the whole text again, but the logits of its
last token alone. Both must generate the same tokens. Times are CPU seconds, of ROUNDS
runs that alternate. The bytes of the cache are those at the end, when it has keys and
values of all tokens but the last. Loading the model takes part in no time.

Rows go to real_model.csv. A row is written when it is finished, and what has its row
is not repeated.
"""

from pathlib import Path

import torch
from records import Clock, append, provenance, read_done

from tutorial_lib.attention import KVCache
from tutorial_lib.decoding import generate, greedy
from tutorial_lib.pretrained import smollm2

ROWS = Path(__file__).with_suffix(".csv")
KEY = "cache", "new_tokens", "round"
PROMPT = "The lighthouse keeper unlocked the door and"
LENGTHS = 50, 200  # new tokens
ROUNDS = 3


class WithoutCache:
    """A `Llama` whose state is the text so far, which each step reads anew."""

    def __init__(self, model):
        self.model = model

    def decode_step(self, tokens, text):
        """Return the logits (batch, vocab) after the new tokens, and the whole text."""
        text = torch.cat([text, tokens], dim=1)
        x = self.model.token_embedding(text)  # (batch, token, d_model)
        for layer in self.model.layers:
            x = layer(x)
        last = self.model.norm(x[:, -1])  # (batch, d_model)
        return self.model.output(last), text


def continued(model, prompt, cache, new_tokens):
    """Return the new tokens (batch, token), and the CPU seconds that they took."""
    clock = Clock()
    if cache == "KV cache":
        generator = model
        state = KVCache()
    else:
        generator = WithoutCache(model)
        state = prompt[:, :0]
    tokens = generate(generator, prompt, state, greedy, max_new_tokens=new_tokens)
    return tokens, clock.seconds()


@torch.no_grad()
def cache_bytes(model, text):
    """Return how many bytes the keys and values of a text take."""
    kv_cache = KVCache()
    model(text, kv_cache)
    pairs = kv_cache.values()
    return sum(K.nbytes + V.nbytes for K, V in pairs)


def main():
    torch.set_num_threads(1)
    model, tokenizer = smollm2()
    prompt = torch.tensor([tokenizer.encode(PROMPT).ids])
    expected = {}
    for length in LENGTHS:
        expected[length], _ = continued(model, prompt, "KV cache", length)  # warm-up
    for number in range(ROUNDS):
        for length in LENGTHS:
            for cache in ("KV cache", "none"):
                key = cache, str(length), str(number)
                if key in read_done(ROWS, KEY):
                    continue
                tokens, seconds = continued(model, prompt, cache, length)
                assert torch.equal(tokens, expected[length]), "the cache changes it"
                row = dict(zip(KEY, key, strict=True))
                row["prompt_tokens"] = prompt.shape[1]
                row["cpu_seconds"] = f"{seconds:.2f}"
                row["tokens_per_second"] = f"{length / seconds:.2f}"
                text = torch.cat([prompt, tokens[:, :-1]], dim=1)
                used = cache_bytes(model, text) if cache == "KV cache" else 0
                row["cache_bytes"] = used
                append(ROWS, row | provenance())
                print(row)


if __name__ == "__main__":
    main()
