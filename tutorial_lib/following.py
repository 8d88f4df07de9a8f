"""Following: where the weights of a softmax go, until they multiply values.

Numbers that count the weights take the same way through views, orders and pieces. So it
is known, when something is multiplied, which weights these are.

This module knows no model: functions come in, one after the other, with what they were
given and what they returned.
"""

from typing import NamedTuple

import torch
from torch.utils.weak import WeakTensorKeyDictionary

SOFTMAX = {"softmax", "special_softmax"}
ADDED = {"addmm", "baddbmm"}  # products that are added to the first argument
PRODUCTS = {"matmul", "mm", "mv", "bmm", "einsum"} | ADDED
# What may happen to weights between the softmax and the values. Shapes, orders, pieces:
MOVES = {"view", "view_as", "reshape", "reshape_as", "flatten", "unflatten", "squeeze"}
MOVES |= {"unsqueeze", "transpose", "permute", "swapaxes", "swapdims", "movedim"}
MOVES |= {"moveaxis", "expand", "expand_as", "repeat", "repeat_interleave", "flip"}
MOVES |= {"narrow", "select", "index_select", "split", "tensor_split", "chunk"}
MOVES |= {"unbind", "detach", "clone", "contiguous"}
MOVES |= {"__get__", "__getitem__"}  # weights.mT and weights[:, None]
# Masks and types:
CHANGES = {"masked_fill", "nan_to_num", "div", "tril", "triu", "mul", "where"}
CHANGES |= {"to", "type", "type_as", "float", "double", "half", "bfloat16"}
SECOND = {"mul", "where"}  # weights may be the second argument
# What is not followed further, though values may be multiplied behind it, or by it:
LOSES = {"cat", "concat", "stack", "pad", "as_strided", "add", "sub", "mean"}
LOSES |= {"conv1d", "conv2d"}
OTHER_PRODUCTS = {"linear", "tensordot"}
KNOWN = MOVES | CHANGES | LOSES | PRODUCTS | OTHER_PRODUCTS | {"dropout"}


class Softmax:
    """What a module multiplies of one softmax's result, in one map."""

    def __init__(self, shape, device):
        self.shape = shape
        rows = shape[:-1].numel()
        self.met = torch.zeros(rows, shape[-1], dtype=torch.bool, device=device)
        self.pieces, self.has_queries, self.map = [], True, None

    def add(self, weights, index):
        """Take weights (..., query, key) that multiply values; return the map so far.

        ``index`` is where they stand in the result, counted row by row. Returns None if
        it is not the keys that are summed over, and for pieces that make no map.
        """
        if not index.numel():
            self.map = weights if self.map is None else self.map
            return self.map
        rows, columns = index // self.shape[-1], index % self.shape[-1]
        if not (rows.eq(rows[..., :1]).all() and _has_equal_rows(columns)):
            return None
        rows, columns = rows[..., 0], columns.flatten(0, -2)[0]
        cells = rows.reshape(-1, 1), columns
        if self.met[cells].all():
            return self.map
        self.met[cells] = True
        self.pieces.append((weights, cells))
        self.has_queries = self.has_queries and self._are_queries(rows)
        is_whole = len(self.pieces) == 1 and self.met.any(dim=1).all()
        if self.has_queries and not (is_whole and weights.ndim >= len(self.shape)):
            self.map = self._assembled()
        else:
            self.map = weights if is_whole else None
        return self.map

    def _are_queries(self, rows):
        """Tell whether the result's last axis but one is that of ``rows``."""
        if rows.ndim >= len(self.shape):
            return False
        others, query = rows // self.shape[-2], rows % self.shape[-2]
        return others.eq(others[..., :1]).all() and _has_equal_rows(query)

    def _assembled(self):
        """Return the pieces in the order of the result, without keys that none has."""
        whole = self.pieces[0][0].new_zeros(self.met.shape)
        for weights, cells in self.pieces:
            whole[cells] = weights.flatten(0, -2)
        return whole[:, self.met.any(dim=0)].view(*self.shape[:-1], -1)

    def is_partial(self):
        """Tell whether a query has not met all the values that others have."""
        return not self.met[:, self.met.any(dim=0)].all()


class _Followed(NamedTuple):
    """Weights on their way from a softmax to the values."""

    shape: torch.Size  # of the softmax's result
    softmaxes: dict  # what each module made of it, by its name
    index: torch.Tensor  # where each weight stands in the result, counted row by row
    # What they would be without a dropout and without the NaN of a softmax over
    # nothing; None: just what they are.
    undropped: torch.Tensor | None


class Follower:
    """Follows every softmax over a last axis through the functions that come."""

    def __init__(self):
        self.followed = WeakTensorKeyDictionary()  # tensors, as _Followed
        self.lost = WeakTensorKeyDictionary()  # tensors: the function that lost them

    def begin(self, scores, result):
        """Follow the ``result`` of a softmax."""
        nothing = attends_to_nothing(scores)
        undropped = result.masked_fill(nothing, 0) if nothing.any() else None
        index = torch.arange(result.numel(), device=result.device).view(result.shape)
        self.followed[result] = _Followed(result.shape, {}, index, undropped)

    def follow(self, function, args, kwargs, result, module):
        """Take one step; return what weights met in it, if they met values.

        That is a `Softmax` whose map is new, or the name of a function, as a text,
        which is not followed. ``module()`` names what runs, None what is not recorded.
        """
        name = getattr(function, "__name__", "")
        if name not in KNOWN:
            return None
        args = args[1:] if name in ADDED else args
        places = [i for i, arg in enumerate(args) if torch.is_tensor(arg)]
        place = next((i for i in places if args[i] in self.followed), None)
        if place is None or name in LOSES:
            return self._follow_lost(name, args, result)
        if name in PRODUCTS:
            return self._multiply(name, args, place, result, module())
        before, weights = self.followed[args[place]], args[place]
        if name == "mul" and weights.shape[-1] == 1 < result.shape[-1]:
            return "*"
        if name == "dropout":
            undropped = _undropped(weights, before)
            self.followed[result] = before._replace(undropped=undropped)
        elif name in (MOVES | CHANGES if place == 0 else SECOND):
            self._step(name, function, (args, place, kwargs), result)
        return name if name in OTHER_PRODUCTS else None

    def _follow_lost(self, name, args, result):
        """Return what lost the weights, if the product of something behind it comes."""
        tensors = _tensors(args)
        lost = next((self.lost[x] for x in tensors if x in self.lost), None)
        if name in LOSES and any(x in self.followed for x in tensors):
            lost = name
        if lost and name in PRODUCTS | OTHER_PRODUCTS:
            return lost
        if lost:
            self.lost.update((x, lost) for x in _tensors([result]))
        return None

    def _step(self, name, function, call, result):
        """Follow weights through a function that moves or changes them."""
        args, place, kwargs = call
        before = self.followed[args[place]]
        if not _tensors([result]):  # as of weights.shape
            return

        def run(tensor):
            return function(*args[:place], tensor, *args[place + 1 :], **kwargs)

        index = run(before.index) if name in MOVES else before.index
        undropped = None if before.undropped is None else run(before.undropped)
        if torch.is_tensor(result):
            result, index, undropped = [result], [index], [undropped]
        undropped = undropped or [None] * len(result)
        for one, its_index, its_undropped in zip(result, index, undropped, strict=True):
            its_index = its_index.expand(one.shape)  # a mask may be of more heads
            self.followed[one] = before._replace(
                index=its_index, undropped=its_undropped
            )

    def _multiply(self, name, args, place, result, module):
        before = self.followed[args[place]]
        weights = _undropped(args[place], before)
        weights = _by_query_and_key(args, place, weights)
        if module is None or weights is None:
            return None
        index = _by_query_and_key(args, place, before.index)
        softmax = Softmax(before.shape, weights.device)
        softmax = before.softmaxes.setdefault(module, softmax)
        known = softmax.map
        if softmax.add(weights.clone(), index) is None:
            self.lost[result] = name
        return None if softmax.map is known else softmax


def attends_to_nothing(scores):
    """Tell of each query whether it may attend to nothing: (..., query, 1)."""
    return scores.isneginf().all(dim=-1, keepdim=True)


def _undropped(weights, before):
    return weights.detach() if before.undropped is None else before.undropped


def _by_query_and_key(args, place, weights):
    """Turn weights so that their last axis is the one that a product sums over.

    ``args`` are those of ``matmul``, ``bmm`` or ``einsum``, and ``place`` is where the
    weights stood among them. Returns None for an ``einsum`` that sums over no axis of
    the weights, or over several.
    """
    if torch.is_tensor(args[0]):
        weights = torch.atleast_2d(weights)
        return weights if place == 0 else weights.mT
    terms, _, output = args[0].replace(" ", "").partition("->")
    terms = terms.split(",")
    own, values = terms.pop(place - 1), "".join(terms)
    axes = own.replace("...", "")
    if sum(axis not in output for axis in axes) != 1:
        return None
    # Batch and head are also in the values, queries are not, keys not in the output.
    order = sorted(axes, key=lambda axis: (axis not in output, axis not in values))
    before = "..." if "..." in own else ""
    return torch.einsum(f"{own}->{before}{''.join(order)}", weights)


def _tensors(args):
    """List the tensors of floating numbers among arguments, and in lists of them."""
    found = []
    for arg in args:
        if isinstance(arg, (tuple, list)):
            found += _tensors(arg)
        elif torch.is_tensor(arg) and arg.is_floating_point():
            found.append(arg)
    return found


def _has_equal_rows(numbers):
    rows = numbers.reshape(-1, numbers.shape[-1])
    return rows.eq(rows[:1]).all()
