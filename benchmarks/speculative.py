"""Speculative decoding of a real model, timed: SmolLM2 with three drafts.

    python benchmarks/speculative.py

SmolLM2-135M-Instruct in the book's `Llama` generates up to NEW_TOKENS tokens greedily,
in 32 bits, on one thread and with KV caches: first alone, then with drafts. Drafts are
by its own first layers, from whose hidden states the final norm and the output
embeddings make a prediction (a logit lens), or by prompt lookup: what followed when
the last two tokens came before. From the caches the entries of rejected tokens are
removed. All ways must generate the same tokens. The texts are beginnings of stories,
and requests to repeat two sentences, of which an answer can copy much.

Times are CPU seconds. What is compared takes turns, and a row holds a ratio: how much
faster a text came than without drafts, in speculative.csv; how long a forward pass of
so many tokens takes, by one of a single token, in speculative_passes.csv. A row is
written when it is finished, and what has its row is not repeated.
"""

from pathlib import Path

import torch
from records import Clock, append, provenance, read_done

from tutorial_lib.attention import KVCache
from tutorial_lib.pretrained import chat_prompt, smollm2

ROWS = Path(__file__).with_suffix(".csv")
PASSES = Path(__file__).with_name("speculative_passes.csv")
NEW_TOKENS = 50
DRAFTS = {"20 layers": 20, "27 layers": 27, "prompt lookup": 0}
LENGTHS = (3,)  # draft tokens a step
TOKENS = 1, 2, 3, 5, 9, 17  # of one forward pass
ROUNDS = 9
STORIES = (
    "It was raining, and",
    "In the morning the old man",
    "At the end of the day",
)
SENTENCES = (
    "The lighthouse keeper unlocked the heavy door and climbed the ninety steps.",
    "My sister bought three lemons, a loaf of bread and some cheese at the market.",
    "The train to Lisbon leaves from platform four at a quarter past eleven.",
)
REQUEST = "Repeat this text without a change: "


def truncated(kv_cache, num_tokens):
    """Return a cache without what stands behind the first tokens."""
    kept = KVCache()
    for layer, (K, V) in kv_cache.items():
        kept[layer] = (K[:, :, :num_tokens], V[:, :, :num_tokens])
    return kept


class Layers:
    """A draft model: the first layers of the target model, and its output."""

    def __init__(self, model, num_layers):
        self.model = model
        self.num_layers = num_layers
        self.kv_cache = KVCache()

    def draft(self, text, count):
        """Return the ``count`` likeliest tokens, one after the other."""
        self.kv_cache = truncated(self.kv_cache, len(text) - 1)
        drafted = []
        for _ in range(count):
            start = self.kv_cache.num_tokens()
            x = self.model.token_embedding(torch.tensor([(text + drafted)[start:]]))
            for i, layer in enumerate(self.model.layers[: self.num_layers]):
                x = layer(x, self.kv_cache, i)
            logits = self.model.output(self.model.norm(x[0, -1]))  # (vocab,)
            drafted.append(logits.argmax().item())
        return drafted


class PromptLookup:
    """No model: copy what followed the last two tokens when they came before."""

    def draft(self, text, count):
        """Return up to ``count`` tokens; none if the last two never came before."""
        for start in range(len(text) - 3, -1, -1):
            if text[start : start + 2] == text[-2:]:
                return text[start + 2 : start + 2 + count]
        return []


def generate(model, prompt, draft, count, eos):
    """Return the text, how many tokens were drafted and accepted, and the passes."""
    kv_cache = KVCache()
    text = list(prompt)
    drafted_tokens = 0
    accepted_tokens = 0
    passes = 0
    while len(text) < len(prompt) + NEW_TOKENS and eos not in text[len(prompt) :]:
        drafted = draft.draft(text, count) if draft else []
        new = text[kv_cache.num_tokens() :] + drafted
        x = model.token_embedding(torch.tensor([new]))
        for i, layer in enumerate(model.layers):
            x = layer(x, kv_cache, i)
        logits = model.output(model.norm(x[0, -len(drafted) - 1 :]))
        best = logits.argmax(dim=-1).tolist()  # of the target, at each position
        accepted = 0
        while accepted < len(drafted) and drafted[accepted] == best[accepted]:
            accepted += 1
        text = text + best[: accepted + 1]
        kv_cache = truncated(kv_cache, len(text) - 1)
        drafted_tokens += len(drafted)
        accepted_tokens += accepted
        passes += 1
    text = text[: len(prompt) + NEW_TOKENS]
    if eos in text[len(prompt) :]:
        text = text[: text.index(eos, len(prompt)) + 1]
    return text, drafted_tokens, accepted_tokens, passes


def new_draft(model, name):
    return Layers(model, DRAFTS[name]) if DRAFTS[name] else PromptLookup()


def run_texts(model, tokenizer):
    """Time each text with each draft beside the same without one."""
    key_names = "kind", "text", "draft", "draft_tokens"
    prompts = {("story", i): text for i, text in enumerate(STORIES)}
    for i, sentence in enumerate(SENTENCES):
        two = f"{sentence} {SENTENCES[i - 1]}"
        prompts["repeat", i] = chat_prompt(REQUEST + two)
    eos = tokenizer.token_to_id("<|im_end|>")
    for (kind, number), text in prompts.items():
        prompt = tokenizer.encode(text).ids
        for name in DRAFTS:
            for count in LENGTHS:
                key = kind, str(number), name, str(count)
                if key in read_done(ROWS, key_names):
                    continue
                clock = Clock()
                alone, _, _, _ = generate(model, prompt, None, 0, eos)
                seconds_alone = clock.seconds()
                draft = new_draft(model, name)
                clock = Clock()
                ours, drafted, accepted, passes = generate(
                    model, prompt, draft, count, eos
                )
                seconds = clock.seconds()
                assert ours == alone, "drafts change the text"
                row = dict(zip(key_names, key, strict=True))
                row["drafted"] = drafted
                row["accepted"] = accepted
                row["new_tokens"] = len(ours) - len(prompt)
                row["tokens_per_pass"] = f"{row['new_tokens'] / passes:.3f}"
                row["faster"] = f"{seconds_alone / seconds:.3f}"
                append(ROWS, row | provenance())


def run_passes(model):
    """Time forward passes of several tokens, behind a text of 50, in turns."""
    text = torch.randint(1000, 40_000, (1, 50))
    kv_cache = KVCache()
    model(text, kv_cache)
    ratios = {tokens: [] for tokens in TOKENS}
    if "1" in read_done(PASSES, ("tokens",)):
        return
    for _ in range(ROUNDS):
        seconds = {}
        for tokens in TOKENS:
            cache = truncated(kv_cache, 50)
            clock = Clock()
            model(text[:, :tokens], cache)
            seconds[tokens] = clock.seconds()
        for tokens in TOKENS:
            ratios[tokens].append(seconds[tokens] / seconds[1])
    for tokens, some in ratios.items():
        median = torch.tensor(some).median().item()
        row = {"tokens": tokens, "ratio": f"{median:.3f}", "rounds": ROUNDS}
        append(PASSES, row | provenance())


@torch.no_grad()
def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, tokenizer = smollm2()
    run_passes(model)
    run_texts(model, tokenizer)


if __name__ == "__main__":
    main()
