"""Solutions of chapter 2, and the mistakes its checks must recognize."""

import torch
from torch.nn.functional import one_hot

from tutorial_lib.attention import nadaraya_watson


def boxcar_weights(queries, keys, width):
    """Share each query's attention equally over the keys within the width."""
    near = ((queries[:, None] - keys).abs() <= width).float()  # (query, key)
    total = near.sum(dim=-1, keepdim=True)
    return near / total.clamp(min=1)  # where nobody is near: 0 / 1


def classify_by_kernel(queries, keys, labels, *, classes, kernel):
    """Return the probability of each class for each query."""
    values = one_hot(labels, classes).float()  # (key, class)
    outputs, _ = nadaraya_watson(queries, keys, values, kernel)
    return outputs  # (query, class)


def leave_one_out_error(keys, values, kernel):
    """Predict each value from all the others; return the mean squared error."""
    similarities = kernel(keys[:, None] - keys)  # (key, key)
    similarities = similarities * (1 - torch.eye(len(keys)))
    total = similarities.sum(dim=-1)  # (key,)
    predictions = similarities @ values / total.where(total > 0, 1)
    return (predictions - values).square().mean()


ANSWERS = {
    # -‖q - k‖² / (2σ²) = -(2 - 2 q · k) / (2σ²) = q · k / σ² - 1 / σ². The last term is
    # the same for every key and drops out of the softmax, so c = 1 / σ² = 1 / 0.0625.
    "2.4": 16.0,
}

WRONG_ANSWERS = [
    ("2.4", 4.0, "one-power"),
    ("2.4", 8.0, "lost-two"),
    ("2.4", 32.0, "lost-half"),
    ("2.4", -16.0, "sign"),
    ("2.4", 0.0625, "inverse"),
    ("2.4", 5.0, "value"),
    ("2.4", "16", "type"),
]

SHARED = "near / total.clamp(min=1)"
ERROR = "(predictions - values).square().mean()"
OUTPUTS = "outputs, _ = nadaraya_watson(queries, keys, values, kernel)"

MUTANTS = [
    ("boxcar_weights", ".clamp(min=1)", "", "zero-by-zero"),
    ("boxcar_weights", "dim=-1, keepdim=True", "dim=0", "columns"),
    ("boxcar_weights", "dim=-1, keepdim=True", "dim=-1", "keepdim"),
    ("boxcar_weights", "(queries[:, None] - keys)", "(queries - keys)", "pair-by-pair"),
    ("boxcar_weights", ".abs()", "", "one-sided"),
    ("boxcar_weights", "<=", "<", "strict"),
    ("boxcar_weights", "<= width", "<= width / 2", "half"),
    ("boxcar_weights", SHARED, "near", "not-shared"),
    ("boxcar_weights", SHARED, "near.softmax(dim=-1)", "softmax"),
    (
        "boxcar_weights",
        SHARED,
        "torch.where(near > 0, 0, -1e9).softmax(dim=-1)",
        "everybody",
    ),
    (
        "boxcar_weights",
        "(queries[:, None] - keys)",
        "(queries - keys[:, None])",
        "shape",
    ),
    ("boxcar_weights", SHARED, "(near / total.clamp(min=1)).sum(dim=-1)", "shape"),
    ("boxcar_weights", SHARED, "near / (total + 1)", "row-sum"),
    (
        "classify_by_kernel",
        "one_hot(labels, classes)",
        "one_hot(labels)",
        "missing-class",
    ),
    (
        "classify_by_kernel",
        OUTPUTS,
        "outputs = kernel(torch.cdist(queries, keys)) @ values\n"
        "    outputs = outputs / outputs.sum(dim=-1, keepdim=True)",
        "zero-by-zero",
    ),
    ("classify_by_kernel", ".float()", "", "error"),
    (
        "classify_by_kernel",
        "one_hot(labels, classes).float()",
        "labels.float()",
        "mean-of-labels",
    ),
    ("classify_by_kernel", "return outputs", "return outputs.argmax(dim=-1)", "argmax"),
    ("classify_by_kernel", "return outputs", "return outputs.T", "shape"),
    ("classify_by_kernel", "return outputs", "return outputs, _", "both"),
    ("classify_by_kernel", "return outputs", "return _", "weights"),
    (
        "classify_by_kernel",
        "return outputs",
        "return outputs.softmax(dim=-1)",
        "softmax-on-top",
    ),
    (
        "classify_by_kernel",
        "return outputs",
        "return one_hot(outputs.argmax(dim=-1), classes)",
        "winner",
    ),
    (
        "classify_by_kernel",
        "values, kernel)",
        "values, lambda distance: torch.exp(-(distance**2) / 2))",
        "fixed-kernel",
    ),
    (
        "classify_by_kernel",
        "values, kernel)",
        "values, torch.ones_like)",
        "kernel-ignored",
    ),
    (
        "classify_by_kernel",
        OUTPUTS,
        "outputs = kernel(torch.cdist(queries, keys)) @ values",
        "not-shared",
    ),
    (
        "classify_by_kernel",
        OUTPUTS,
        "outputs = kernel((queries[:, None] - keys).square().sum(dim=-1)) @ values\n"
        "    outputs = outputs / outputs.sum(dim=-1, keepdim=True)",
        "squared",
    ),
    (
        "classify_by_kernel",
        OUTPUTS,
        "outputs = kernel(torch.cdist(queries, keys)).softmax(dim=-1) @ values",
        "softmax-of-similarities",
    ),
    *[
        (
            "classify_by_kernel",
            OUTPUTS,
            "similarities = kernel(torch.cdist(queries, keys))\n"
            "    each = [similarities[:, labels == c] for c in range(classes)]\n"
            f"    outputs = torch.stack([{mean} for s in each], dim=-1)\n"
            "    outputs = outputs / outputs.sum(dim=-1, keepdim=True)",
            "mean-by-class",
        )
        for mean in ("s.mean(dim=-1)", "s.sum(dim=-1) / max(1, s.shape[1])")
    ],
    (
        "classify_by_kernel",
        OUTPUTS,
        "outputs = (kernel(torch.cdist(queries, keys)) @ values).softmax(dim=-1)",
        "softmax-of-votes",
    ),
    (
        "classify_by_kernel",
        OUTPUTS,
        "outputs = kernel(torch.cdist(queries, keys))\n"
        "    outputs = outputs / outputs.sum(dim=0) @ values",
        "columns",
    ),
    ("leave_one_out_error", " * (1 - torch.eye(len(keys)))", "", "sees-itself"),
    (
        "leave_one_out_error",
        """similarities = similarities * (1 - torch.eye(len(keys)))
    total = similarities.sum(dim=-1)""",
        """total = similarities.sum(dim=-1)
    similarities = similarities * (1 - torch.eye(len(keys)))""",
        "masked-after",
    ),
    (
        "leave_one_out_error",
        "(1 - torch.eye(len(keys)))",
        "(keys[:, None] != keys)",
        "twins",
    ),
    (
        "leave_one_out_error",
        "similarities = similarities * (1 - torch.eye(len(keys)))",
        "similarities.fill_diagonal_(0)",
        "overwritten",
    ),
    ("leave_one_out_error", ".where(total > 0, 1)", "", "zero-by-zero"),
    (
        "leave_one_out_error",
        """similarities * (1 - torch.eye(len(keys)))
    total""",
        """similarities.masked_fill(torch.eye(len(keys)) > 0, -torch.inf)
    similarities = similarities.softmax(dim=-1)
    total""",
        "softmax",
    ),
    (
        "leave_one_out_error",
        "kernel(keys[:, None] - keys)",
        "torch.exp(-(((keys[:, None] - keys) / 0.3) ** 2) / 2)",
        "fixed-kernel",
    ),
    (
        "leave_one_out_error",
        ERROR,
        "(predictions - values)[total > 0].square().mean()",
        "lonely-skipped",
    ),
    ("leave_one_out_error", ERROR, f"{ERROR}.item()", "plain-number"),
    ("leave_one_out_error", ".mean()", ".sum()", "sum"),
    ("leave_one_out_error", ".mean()", ".mean().sqrt()", "root"),
    ("leave_one_out_error", ".square()", ".abs()", "absolute"),
    ("leave_one_out_error", ".mean()", "", "each-key"),
    ("leave_one_out_error", ERROR, f"{ERROR}.detach()", "no-gradient"),
    ("leave_one_out_error", f"return {ERROR}", ERROR, "no-return"),
]

ACCEPT = [
    ("boxcar_weights", "total.clamp(min=1)", "total.where(total > 0, 1)"),
    ("boxcar_weights", SHARED, "torch.nan_to_num(near / total)"),
    ("boxcar_weights", SHARED, "near / (total + 1e-9)"),
    (
        "classify_by_kernel",
        "one_hot(labels, classes).float()",
        "torch.eye(classes)[labels]",
    ),
    (
        "leave_one_out_error",
        "similarities * (1 - torch.eye(len(keys)))",
        "similarities.masked_fill(torch.eye(len(keys)).bool(), 0)",
    ),
    ("leave_one_out_error", ERROR, "torch.nn.functional.mse_loss(predictions, values)"),
]
