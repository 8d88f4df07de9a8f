"""Recording: keep the weights of every attention layer while a model runs.

Two hooks say which module runs. A `TorchFunctionMode` sees every torch function that
the model calls. Fused attention never holds its weights, so it is asked for them beside
the call; the weights of a softmax are followed until they multiply values.
"""

import math
import re
import threading
import warnings
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import NamedTuple
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

SOFTMAX = ["_safe_softmax", "_softmax", "softmax", "special_softmax"]
PRODUCTS = ["matmul", "mm", "bmm", "einsum", "linalg_matmul"]
# Products that are not followed: the module that calls them is named.
OTHER_PRODUCTS = [
    *["addbmm", "addmm", "addmv", "baddbmm", "chain_matmul", "dot", "embedding_bag"],
    *["inner", "kron", "linalg_multi_dot", "linalg_vecdot", "mv", "tensordot"],
    *["_sparse_addmm", "_sparse_mm"],
]
# Products, too, unless it is by a parameter: that is a layer after a softmax.
LAYERS = ["bilinear", "conv1d", "linear"]
# Weights that are followed only to name the module that multiplies values by them.
OTHER_SOFTMAX = ["_masked_softmax", "gumbel_softmax", "softmin"]
# What may happen to weights between the softmax and the values; weights.mT is a
# __get__, and weights[:, None] a __getitem__. Whatever else happens to them makes
# something else of them, of which nothing is known, though it may multiply values, too.
STEPS = [
    *["__get__", "__getitem__", "bfloat16", "clone", "contiguous", "detach", "div"],
    *["double", "dropout", "expand", "flatten", "float", "half", "masked_fill"],
    *["movedim", "mul", "nan_to_num", "permute", "reshape", "squeeze", "swapaxes"],
    *["to", "transpose", "tril", "triu", "type", "type_as", "unflatten", "unsqueeze"],
    *["view", "view_as", "where"],
]
# What takes weights and makes none, as do ones_like and new_zeros.
NO_WEIGHTS = re.compile("log|new_.*|requires_grad|.*_like")


@contextmanager
def record_attention(model):
    """Record the attention weights of every layer of ``model`` within a ``with`` block.

    Yields a dictionary from the name of each module that attends ("" is the model
    itself) to its weights (batch, head, query, key), detached and before dropout. It is
    the innermost module that attends whose ``forward`` or ``attend`` runs. Each call of
    the model starts afresh, and so does each call of a part of it, for the layers in
    that part: after decoding token by token the maps are those of the last step. A
    layer that runs several times within one call has its queries joined.

    Attention is ``F.scaled_dot_product_attention``, with the heads it is given, and
    ``nn.MultiheadAttention`` and all that is made of it. Besides, it is a softmax over
    the last axis that multiplies something by ``@``, ``bmm`` or ``einsum``, and may be
    masked, reshaped or dropped out before. What an axis holds, nobody tells: of
    attention between channels, the keys in a map are channels; of queries that were
    packed by group, a head is a KV head; and axes before that of the heads join the
    batch. A query that may attend to nothing has weights 0.

    A warning names each module with a softmax, or another of torch's fused functions,
    whose weights go another way, such as in pieces or grouped on five axes: it has no
    map. It may be no attention, either, such as a mixture of experts. Rows of weights
    that are transposed after the softmax need not sum to 1. Pieces of weights that
    multiply values by ``*`` are not seen, since a router's are no attention, nor are
    weights without a softmax of torch, such as exp over its sum or that of a
    log-softmax, a function that ``torch.compile`` has made, or what goes through numpy:
    no warning names them.

    Outputs stay the same, but torch's own layers in evaluation leave their fast path,
    which moves the seventh digit, and writes zeros over padding. Raises ValueError if
    something in the model is compiled, scripted or traced, if the model ran and no
    attention in it could be recorded, and for weights that make no one map.
    """
    for name, module in model.named_modules():
        if _is_compiled(module):
            raise ValueError(
                f"what runs in the module {name!r} cannot be seen: record the model "
                "from before torch.compile, torch.jit, torch.fx or torch.export"
            )
    recorder = _Recorder(model)
    begins = register_module_forward_pre_hook(recorder.begin)
    ends = register_module_forward_hook(recorder.end, always_call=True)
    layers = [layer for layer in model.modules() if hasattr(type(layer), "attend")]
    with attending_by(layers, recorder.noted), begins, ends, recorder:
        yield recorder.maps
    recorder.report()


@contextmanager
def attending_by(layers, change):
    """Let ``change`` give the classes of layers another method ``attend`` in a block.

    The layers stay as they are, and so do copies that are made of them.
    """
    methods = {type(layer): type(layer).attend for layer in layers}
    with ExitStack() as stack:
        for kind, attend in methods.items():
            stack.enter_context(patch.object(kind, "attend", change(attend)))
        yield


def _is_compiled(module):
    is_traced = isinstance(module, (torch.jit.ScriptModule, torch.fx.GraphModule))
    is_traced = is_traced or type(module).__module__ == "torch.export.unflatten"
    compiled_call = getattr(module, "_compiled_call_impl", None)
    is_wrapper = hasattr(module, "_orig_mod")  # around what torch.compile was given
    has_compiled = hasattr(module.forward, "_torchdynamo_orig_callable")
    return is_traced or compiled_call is not None or is_wrapper or has_compiled


class _Followed(NamedTuple):
    """Weights on their way from a softmax to the values."""

    weights: torch.Tensor | None  # without dropout; None: they are not followed further
    softmax: object  # stands for the softmax that they are from
    size: float  # how many they were; infinite where some have been left out
    batch_and_head: torch.Size | None = None  # sizes of these axes, if they were merged


class _Recorder(TorchFunctionMode):
    """Sees every torch function of a running model, and keeps the attention weights."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.names = {module: name for name, module in model.named_modules()}
        self.running = []  # names of modules, the innermost last
        self.called = None  # what was called anew since a map was made
        self.ran = False
        self.thread = threading.get_ident()
        self.elsewhere = {}  # names of modules that ran in another thread
        self.followed = WeakTensorKeyDictionary()  # the model's tensors
        self.maps = {}
        self.softmaxes = {}  # which softmax each map was last made of
        self.missed = {}  # names of modules without a map

    def begin(self, module, inputs):
        """Note that a module runs."""
        if threading.get_ident() != self.thread:
            if module in self.names:
                self.elsewhere[self.names[module]] = True
        elif module in self.names:
            if not self.running:
                self.called = module
            self.running.append(self.names[module])
            self.ran = True

    def end(self, module, inputs, outputs):
        """Note that a module has run."""
        if module in self.names and threading.get_ident() == self.thread:
            self.running.pop()

    def noted(self, attend):
        """Return a method ``attend`` that is noted as ``forward`` is."""

        @wraps(attend)
        def attend_and_note(module, *args, **kwargs):
            self.begin(module, args)
            try:
                return attend(module, *args, **kwargs)
            finally:
                self.end(module, args, None)

        return attend_and_note

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Let the function run as it would, then see what it attended to."""
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        if self.running:
            with torch.DisableTorchFunction(), torch.no_grad():  # nobody records this
                self.see(function, args, kwargs, result)
        return result

    def see(self, function, args, kwargs, result):
        """Keep the weights of a fused function, begin to follow a softmax, or go on."""
        name = getattr(function, "__name__", "").partition(".")[0]  # aten's softmax.int
        if not name.startswith("__"):
            name = name.removesuffix("_")  # in place: mul_, masked_fill_
        if name == "scaled_dot_product_attention":
            weights, values = _fused_weights(*args, **kwargs)
            self.keep(None if _is_grouped(weights, values) else weights, object())
        elif name == "multi_head_attention_forward":
            self.keep(_multi_head_weights(*args, **kwargs), object())
        elif "attention" in name:  # what the fused functions call, with other arguments
            self.miss()
        elif name in SOFTMAX:
            self.begin_to_follow(result, *args, **kwargs)
        elif name in OTHER_SOFTMAX:
            self.followed[result] = _Followed(None, object(), result.numel())
        else:
            given = _tensors([*args, *kwargs.values()])
            followed = [x for x in given if x in self.followed]
            if followed:
                self.follow(followed[0], name, function, args, kwargs, result)

    def begin_to_follow(self, result, input, dim=None, *_, **__):
        """Follow the result of a softmax; over another axis, only to name a module."""
        if input.ndim > 1 and dim in (-1, input.ndim - 1):
            nothing = input.isneginf().all(dim=-1, keepdim=True)  # to attend to
            weights = result.detach().masked_fill(nothing, 0)
            self.followed[result] = _Followed(weights, object(), input.numel())
        elif input.ndim > 1:
            self.followed[result] = _Followed(None, object(), input.numel())

    def follow(self, tensor, name, function, args, kwargs, result):
        """Go on with a tensor of weights, which is among the arguments."""
        before = self.followed[tensor]
        given = _tensors([*args, *kwargs.values()])
        by_layer = any(isinstance(one, torch.nn.Parameter) for one in given)
        in_place = getattr(function, "__name__", "").partition(".")[0].endswith("_")
        changed = args[0] if name == "__setitem__" else result
        is_step = name in STEPS and torch.is_tensor(result)
        if changed is not tensor and any(changed is arg for arg in args):
            is_step = False  # x.mul_(weights) makes something of x
        if name in PRODUCTS and any(arg is tensor for arg in _tensors(args)):
            self.multiply(tensor, name, args)
        elif name in PRODUCTS + OTHER_PRODUCTS or (name in LAYERS and not by_layer):
            self.miss()
        elif name in ("mul", "div") and result.numel() > min(
            before.size, tensor.numel()
        ):
            if result.numel() > before.size:
                self.miss()  # a sum makes attention of it
        elif name == "dropout":
            self.followed[result] = before
        elif is_step and before.weights is not None:
            args = [before.weights if arg is tensor else arg for arg in args]
            weights = function(*args, **kwargs)
            after = before._replace(weights=weights)
            if weights.numel() < tensor.numel():  # weights[:, :, 1:]
                after = before._replace(weights=None, size=math.inf)
            elif before.weights.ndim == 4 and weights.ndim == 3:
                after = after._replace(batch_and_head=before.weights.shape[:2])
            self.followed[result] = after
        elif not NO_WEIGHTS.fullmatch(name):
            for one in _tensors([changed]):
                is_kept = one.is_floating_point() and (one is not tensor or in_place)
                if by_layer:  # over the heads, or else of no weights
                    is_known = before.weights is not None or name not in LAYERS
                    is_kept = is_kept and one.shape == tensor.shape and is_known
                if is_kept:
                    size = before.size if one.numel() >= tensor.numel() else math.inf
                    self.followed[one] = before._replace(weights=None, size=size)

    def multiply(self, tensor, name, args):
        """Keep a tensor of weights that multiplies values, if keys are summed over."""
        weights, softmax, _, sizes = self.followed[tensor]
        place = [one is tensor for one in _tensors(args)].index(True)
        if weights is not None and name == "einsum":
            weights = _in_einsum(weights, args, place)
        elif weights is not None:
            weights = weights if place == 0 else weights.mT  # the values stand first
            weights = None if _is_grouped(weights, args[1 - place]) else weights
        if weights is not None:
            if sizes and weights.ndim == 3 and len(weights) == sizes.numel():
                weights = weights.unflatten(0, sizes)
            weights = torch.atleast_2d(weights)
        self.keep(weights, softmax)

    def keep(self, weights, softmax):
        """Make weights (..., query, key) the map of the module that runs, if any."""
        if weights is None:
            self.miss()
            return
        self.start_afresh()
        name = self.running[-1]
        while weights.ndim < 4:
            weights = weights.unsqueeze(-3)
        weights = weights.flatten(0, -4).clone()  # (batch, head, query, key)
        try:
            weights.flatten()[:1].tolist()
        except RuntimeError as error:
            raise ValueError(
                f"the weights of {name!r} have no values to be recorded: run the model "
                "outside torch.vmap, and not on the meta device"
            ) from error
        if name not in self.maps:
            self.maps[name] = weights
        elif softmax is not self.softmaxes[name]:
            self.maps[name] = _join(self.maps[name], weights, name)
        self.softmaxes[name] = softmax

    def miss(self):
        """Note that the module that runs has no map."""
        self.start_afresh()
        self.missed[self.running[-1]] = True

    def start_afresh(self):
        """Forget what the modules did that were called anew."""
        if self.called is not None:
            for part in self.called.modules():
                self.maps.pop(self.names.get(part), None)
                self.missed.pop(self.names.get(part), None)
            self.called = None

    def report(self):
        """Say what could not be recorded."""
        names = ", ".join(map(repr, self.missed))
        for name in self.missed:
            self.maps.pop(name, None)
        if self.ran and not self.maps:
            raise ValueError(
                f"{type(self.model).__name__} ran, but no attention could be recorded: "
                "in this thread, it used neither torch's own attention nor a softmax "
                "over the last axis whose whole result multiplies values by @, bmm or "
                "einsum"
            )
        if self.elsewhere:
            warnings.warn(
                "the maps are not of all attention: another thread ran "
                f"{next(iter(self.elsewhere))!r}, where nothing is recorded",
                stacklevel=4,
            )
        if names:
            warnings.warn(
                "the maps may not be of all attention: the weights of a softmax could "
                f"not be followed in {names}",
                stacklevel=4,
            )


def _fused_weights(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **options
):
    """Return the weights of ``F.scaled_dot_product_attention``, and the values.

    The weights are the outputs of other values, 0 and 1.
    """
    identity = torch.eye(key.shape[-2], dtype=value.dtype, device=value.device)
    values = identity.expand(*value.shape[:-2], -1, -1)
    weights = F.scaled_dot_product_attention(
        query, key, values, attn_mask, is_causal=is_causal, **options
    )
    return weights, value


def _is_grouped(weights, values):
    """Tell whether weights on five axes share values along one, as groups do."""
    if weights.ndim < 5:
        return False
    sizes = zip(weights.shape, values.shape, values.stride(), strict=False)
    return values.ndim < weights.ndim or any(
        size > 1 and (own == 1 or stride == 0) for size, own, stride in [*sizes][:-2]
    )


def _multi_head_weights(query, *args, **kwargs):
    """Return the weights of ``F.multi_head_attention_forward``, for every head."""
    kwargs.update(need_weights=True, average_attn_weights=False, training=False)
    weights = F.multi_head_attention_forward(query, *args, **kwargs)[1]
    if all(x.isfinite().all() for x in (query, *args) if torch.is_tensor(x)):
        weights = weights.nan_to_num(nan=0.0)  # the softmax over nothing
    return weights if query.ndim == 3 else weights[None]  # (batch, head, query, key)


def _in_einsum(weights, args, place):
    """Return weights (..., query, key); None if that is not what they are.

    The query is the last axis but the keys' that the values lack.
    """
    if "->" not in args[0]:
        return None
    terms, _, output = args[0].replace(" ", "").partition("->")
    terms = terms.split(",")
    own = terms.pop(place)
    given = "".join(terms)
    dots = "01234567"[: weights.ndim - len(own.replace("...", ""))]
    own, given = (term.replace("...", dots) for term in (own, given))
    *others, key = own
    if key in output or key not in given or len({*own}) < len(own):
        return None
    lacking = [axis for axis in others if axis not in given]
    if weights.ndim > 4 and len(lacking) > 1:
        return None  # grouped: which are heads?
    if not lacking:
        return weights.unsqueeze(-2)
    return weights.movedim(own.index(lacking[-1]), -2)


def _tensors(args):
    """List the tensors among arguments, and in lists of them."""
    tensors = []
    for arg in args:
        if isinstance(arg, (tuple, list)):
            tensors.extend(_tensors(arg))
        elif torch.is_tensor(arg):
            tensors.append(arg)
    return tensors


def _join(earlier, later, name):
    """Append queries; an earlier query gives weight 0 to keys that came after it."""
    more_keys = later.shape[-1] - earlier.shape[-1]
    if earlier.shape[:2] != later.shape[:2] or more_keys < 0:
        raise ValueError(
            f"the module {name!r} attended twice within one call, with (batch, head, "
            f"query, key) = {tuple(earlier.shape)} and {tuple(later.shape)}, which "
            "make no one map: record a part of the model that attends once"
        )
    return torch.cat([F.pad(earlier, (0, more_keys)), later], dim=-2)
