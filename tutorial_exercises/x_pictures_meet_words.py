"""Exercises of the excursion on CLIP and vision-language models: images and words."""

import math

import torch
import torch.nn.functional as F

from tutorial_exercises import Exercise


@Exercise("P.1", "The sigmoid loss of SigLIP", axes="")
def sigmoid_loss(image_vectors, text_vectors, scale, bias):
    """Return SigLIP's loss of a batch, a scalar tensor."""
    batch_size = len(image_vectors)
    image_vectors = F.normalize(image_vectors, dim=-1)
    text_vectors = F.normalize(text_vectors, dim=-1)
    logits = scale * image_vectors @ text_vectors.T + bias  # (image, text)
    signs = 2 * torch.eye(batch_size) - 1  # 1 for pairs, -1 for all others
    return -F.logsigmoid(signs * logits).sum() / batch_size


@sigmoid_loss.oracle
def _(image_vectors, text_vectors, scale, bias):
    """Ask of each image and each text, one after another."""
    total = 0.0
    for i, image in enumerate(image_vectors.double()):
        for j, text in enumerate(text_vectors.double()):
            cosine = image @ text / image.norm() / text.norm()
            logit = scale * cosine + bias
            total = total + torch.log(1 + torch.exp(-logit if i == j else logit))
    return (total / len(image_vectors)).float()


@sigmoid_loss.cases
def _():
    yield "one pair", torch.randn(1, 4), torch.randn(1, 4), 2.0, -1.0
    label = "three pairs"
    yield label, 2 * torch.randn(3, 5), 3 * torch.randn(3, 5), 3.0, -2.0
    yield "as many pairs as dimensions", torch.randn(4, 4), torch.randn(4, 4), 5.0, 0.5


@sigmoid_loss.demand("large logits give a finite loss")
def _(answer):
    vectors = torch.eye(3)
    loss = answer(vectors, -vectors, 200.0, 0.0)
    if not math.isfinite(loss):
        return (
            "With a scale of 200 your loss is not finite: the sigmoid rounds to 0, and "
            "its logarithm is -inf. `F.logsigmoid` computes both at once."
        )
    expected = 200 + 2 * math.log(2)  # two pairs in three have a cosine of 0
    if abs(loss - expected) > 0.01:
        return f"With a scale of 200 expected {expected:.2f}, got {loss:.2f}."
    loss = answer(vectors, vectors.roll(1, 0), 200.0, 0.0)
    if not math.isfinite(loss):
        return (
            "With a scale of 200 your loss is not finite: the probability of a wrong yes "
            "rounds to 1, and log(1 - 1) is -inf. Use `F.logsigmoid(-logit)` for a no."
        )


@sigmoid_loss.demand("gradients reach the vectors, the scale and the bias")
def _(answer):
    inputs = [
        torch.randn(3, 5),
        torch.randn(3, 5),
        torch.tensor(3.0),
        torch.tensor(-2.0),
    ]
    for tensor in inputs:
        tensor.requires_grad_()
    answer(*inputs)
    answer.gradients(*inputs)


sigmoid_loss.hints = """
- Scale all vectors to length 1 by `F.normalize(…, dim=-1)`; `@` makes cosines (image,
  text) of them.
- The probability of "no" is `sigmoid(-logit)`. So multiply the logits by 1 on the diagonal
  and by -1 elsewhere.
- `-F.logsigmoid(signs * logits)` are the losses of all pairs. Add them up, and divide by
  the number of images.
"""

sigmoid_loss.mistakes = """
The image vectors do not have length 1: `F.normalize(image_vectors, dim=-1)`.
    F.normalize(image_vectors, dim=-1) → image_vectors
The text vectors do not have length 1: `F.normalize(text_vectors, dim=-1)`.
    F.normalize(text_vectors, dim=-1) → text_vectors
You normalize over the batch. Each vector has a length of its own: `dim=-1`.
    F.normalize(image_vectors, dim=-1) → F.normalize(image_vectors, dim=0)
    F.normalize(text_vectors, dim=-1) → F.normalize(text_vectors, dim=0)
The bias is missing: `scale * cosine + bias`.
    text_vectors.T + bias → text_vectors.T
You subtract the bias. The logit is `scale * cosine + bias`.
    text_vectors.T + bias → text_vectors.T - bias
The scale is missing: `scale * cosine + bias`.
    scale * image_vectors @ → image_vectors @
You divide by the scale. It is not a temperature: multiply by it.
    scale * image_vectors @ → 1 / scale * image_vectors @
You ask of the right pairs only. The others shall say no: their sign is -1.
    2 * torch.eye(batch_size) - 1 → torch.eye(batch_size)
    signs * logits).sum() → logits.diagonal()).sum()
All pairs shall say yes here. Images and texts of different pairs do not belong together.
    signs * logits → logits
Your signs are the wrong way round: yes on the diagonal, no elsewhere.
    signs * logits → -signs * logits
The sign of the loss is wrong: a logarithm of probabilities is below 0.
    -F.logsigmoid → F.logsigmoid
You take the mean over all pairs. Divide their sum by the number of images.
    .sum() / batch_size → .mean()
You return the sum. Divide it by the number of images.
    .sum() / batch_size → .sum()
This is CLIP's loss, a softmax over the batch. Here each pair is a question of its own.
    -F.logsigmoid(signs * logits).sum() / batch_size → F.cross_entropy(
            logits, torch.arange(batch_size)
        )
right:
    -F.logsigmoid(signs * logits).sum() / batch_size → F.binary_cross_entropy_with_logits(
            logits, torch.eye(batch_size), reduction="sum"
        ) / batch_size
"""


@Exercise("P.2", "Several prompts for a class", axes="image")
def zero_shot_classes(image_vectors, prompt_vectors):
    """Return the index of the class of each image: (image,)."""
    prompt_vectors = F.normalize(prompt_vectors, dim=-1)
    class_vectors = prompt_vectors.mean(dim=1)  # (class, d_model)
    class_vectors = F.normalize(class_vectors, dim=-1)
    similarities = image_vectors @ class_vectors.T  # (image, class)
    return similarities.argmax(dim=1)


@zero_shot_classes.oracle
def _(image_vectors, prompt_vectors):
    """Compare each image with the mean direction of each class's prompts."""
    classes = []
    for prompts in prompt_vectors:
        total = sum(prompt / prompt.norm() for prompt in prompts)
        classes.append(total / total.norm())
    chosen = []
    for image in image_vectors:
        cosines = [float(image @ one) for one in classes]
        chosen.append(cosines.index(max(cosines)))
    return torch.tensor(chosen)


def prompts_of(images, classes, prompts, d_model):
    """Make vectors of images and prompts: of many lengths, and more or less alike."""
    image_vectors = torch.randn(images, d_model)
    directions = torch.randn(classes, 1, d_model)
    spread = 3 * torch.rand(classes, 1, 1)
    vectors = directions + spread * torch.randn(classes, prompts, d_model)
    lengths = torch.exp(1.5 * torch.randn(classes, prompts, 1))
    return image_vectors, lengths * vectors


@zero_shot_classes.cases
def _():
    yield "one prompt a class", *prompts_of(20, 5, 1, 4)
    yield "three prompts a class", *prompts_of(60, 6, 3, 4)
    yield "as many classes as prompts", *prompts_of(60, 4, 4, 3)


zero_shot_classes.hints = """
- `F.normalize(prompt_vectors, dim=-1)` scales each prompt's vector to length 1.
- The prompts are the second axis: `.mean(dim=1)`. A mean of vectors of length 1 is shorter
  than 1, so normalize again.
- `image_vectors @ class_vectors.T` is (image, class); take the argmax over the classes.
"""

zero_shot_classes.mistakes = """
The prompts' vectors are not of length 1 before the mean: long ones count more.
    prompt_vectors = F.normalize(prompt_vectors, dim=-1) →
The mean is not scaled to length 1: a class whose prompts agree has a longer mean.
    class_vectors = F.normalize(class_vectors, dim=-1) →
You take the first prompt only. Take the mean over the prompts.
    prompt_vectors.mean(dim=1) → prompt_vectors[:, 0]
You take the mean over the classes. The prompts are the second axis: `mean(dim=1)`.
    prompt_vectors.mean(dim=1) → prompt_vectors.mean(dim=0)
You choose the least similar class: take the argmax.
    argmax(dim=1) → argmin(dim=1)
You choose an image for each class. Take the argmax over the classes, `dim=1`.
    argmax(dim=1) → argmax(dim=0)
You return similarities. Return the index of the largest for each image.
    return similarities.argmax(dim=1) → return similarities.amax(dim=1)
    return similarities.argmax(dim=1) → return similarities
right:
    image_vectors @ → F.normalize(image_vectors, dim=-1) @
    prompt_vectors.mean(dim=1) → prompt_vectors.sum(dim=1)
"""


@Exercise("P.3", "Which image may a word attend to?", axes="batch token patch")
def last_image_mask(is_image, num_images, num_patches):
    """Return which patches a token may attend to: (batch, token, patch), boolean."""
    last_image = is_image.cumsum(dim=1) - 1  # (batch, token), -1 before the first
    image_of_patch = torch.arange(num_images).repeat_interleave(num_patches)
    return last_image[:, :, None] == image_of_patch


@last_image_mask.oracle
def _(is_image, num_images, num_patches):
    """Read each text word by word, and remember the last image."""
    batch, tokens = is_image.shape
    mask = torch.zeros(batch, tokens, num_images * num_patches, dtype=torch.bool)
    for b in range(batch):
        images = 0
        for t in range(tokens):
            images += bool(is_image[b, t])
            if images:
                last = (images - 1) * num_patches
                mask[b, t, last : last + num_patches] = True
    return mask


@last_image_mask.cases
def _():
    texts = torch.zeros(3, 8, dtype=torch.bool)
    texts[0, [1, 4]] = True
    texts[1, [0, 5, 6]] = True
    texts[2, [3, 7]] = True
    yield "one image in each text", torch.eye(4, dtype=torch.bool)[1:], 2, 3
    yield "up to three images", texts, 3, 4
    yield "as many patches as images", texts, 3, 3
    yield "a text without images", torch.zeros(1, 4, dtype=torch.bool), 2, 3


last_image_mask.hints = """
- How many images have there been up to each token? `is_image.cumsum(dim=1)` counts.
- To which image does each patch belong? `torch.arange(num_images)` with each number
  repeated: `.repeat_interleave(num_patches)`.
- A token may attend where both numbers are equal. Compare (batch, token, 1) with (patch,).
"""

last_image_mask.mistakes = """
Your numbers are one too large: the first image has index 0.
    is_image.cumsum(dim=1) - 1 → is_image.cumsum(dim=1)
A token may attend to one image, the last before it, and not to all before it.
    last_image[:, :, None] == image_of_patch → last_image[:, :, None] >= image_of_patch
The patches of an image lie side by side: use `repeat_interleave`, not `repeat`.
    repeat_interleave(num_patches) → repeat(num_patches)
Your mask is inverted: True means that a token may attend.
    last_image[:, :, None] == image_of_patch → last_image[:, :, None] != image_of_patch
You count through the batch. Each text has images of its own: count along the tokens.
    is_image.cumsum(dim=1) → is_image.cumsum(dim=0)
Tokens after an image attend to it, too, not only the token `[image]` itself.
    last_image[:, :, None] == image_of_patch → (…) & is_image[:, :, None]
The token `[image]` attends to its own image. You count only those before it.
    is_image.cumsum(dim=1) - 1 → is_image.cumsum(dim=1) - is_image.long() - 1
Before the first image a token may attend to nothing, not to the first image.
    is_image.cumsum(dim=1) - 1 → (…).clamp(min=0)
right:
    last_image[:, :, None] == image_of_patch → last_image.unsqueeze(-1) == image_of_patch
"""
