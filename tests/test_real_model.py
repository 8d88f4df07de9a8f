"""What the benchmark of a real model's speed compares, on a small Llama."""

import importlib
import sys
from pathlib import Path

import pytest
import torch

from tutorial_lib.attention import KVCache
from tutorial_lib.llama import Llama

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))
BENCHMARK = importlib.import_module("real_model")


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Llama(11, 16, 4, 2, num_kv_heads=2, d_ff=24).eval()


def test_without_its_cache_a_model_generates_the_same_tokens(model):
    prompt = torch.tensor([[1, 2, 3]])
    cached, seconds = BENCHMARK.continued(model, prompt, "KV cache", 6)
    anew, _ = BENCHMARK.continued(model, prompt, "none", 6)
    assert cached.shape == (1, 6) and torch.equal(cached, anew)
    assert seconds > 0


@torch.no_grad()
def test_without_its_cache_a_step_has_the_logits_of_the_whole_text(model):
    text = torch.tensor([[1, 2, 3, 4, 5]])
    without = BENCHMARK.WithoutCache(model)
    logits, read = without.decode_step(text[:, 3:], text[:, :3])
    assert torch.equal(read, text)
    expected, _ = model.decode_step(text, KVCache())
    assert torch.allclose(logits, expected, atol=1e-6)


def test_a_cache_has_the_bytes_of_keys_and_values_of_each_layer_and_head(model):
    text = torch.tensor([[1, 2, 3, 4, 5]])
    # Keys and values, 2 layers, 2 heads, 5 tokens, 16 / 4 dimensions, 4 bytes.
    assert BENCHMARK.cache_bytes(model, text) == 2 * 2 * 2 * 5 * 4 * 4


def test_what_the_results_tell_of_the_cache_is_what_its_sizes_make():
    pytest.importorskip("sphinx")
    sys.path.append(str(ROOT / "book" / "_ext"))
    known = importlib.import_module("results").results(ROOT / "benchmarks")
    # Keys and values, 30 layers, 3 heads of 64 dimensions, 4 bytes: as the page says.
    assert known["real_model.bytes_per_token"] == f"{2 * 30 * 3 * 64 * 4:,}"
    for length in ("50", "200"):
        with_cache = float(known[f"real_model.cache.{length}.speed"])
        without = float(known[f"real_model.none.{length}.speed"])
        faster = float(known[f"real_model.faster.{length}"])
        assert faster == pytest.approx(with_cache / without, rel=0.03)
    assert float(known["real_model.faster.200"]) > float(known["real_model.faster.50"])
