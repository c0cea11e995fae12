"""What a training costs: parameters, tokens, operations.

`docs/cost.md` states the rules of counting.
"""

import dataclasses
import math

# The operations of a multiply-add.
FLOPS = 2
# A training step multiplies three times: forward, backward to the inputs and backward
# to the weights.
PASSES = 3
# The vocabulary of the second model in `parameters_without_tables`. Learnt ones are
# larger.
OTHER_SIZE = 4


@dataclasses.dataclass(frozen=True)
class Cost:
    """What the training of a model costs, padding left out.

    Attributes:
        parameters: all of them.
        parameters_without_tables: those whose shape does not depend on a vocabulary.
        train_source_tokens: source tokens that were read in all epochs.
        train_target_tokens: the same for target inputs.
        train_flops: floating-point operations of the matrix products, those of the
            forward pass three times.
    """

    parameters: float
    parameters_without_tables: float
    train_source_tokens: float
    train_target_tokens: float
    train_flops: float

    @property
    def flops_by_parameters(self) -> float:
        """6·N·D: N parameters without tables, D tokens of both sides."""
        tokens = self.train_source_tokens + self.train_target_tokens
        return FLOPS * PASSES * self.parameters_without_tables * tokens


COST_FIELDS = [field.name for field in dataclasses.fields(Cost)]


def training_cost(model, split, epochs: float) -> Cost:
    """Returns what it costs to train a model for some epochs.

    Args:
        model: a `TranslationModel` with its weights made.
        split: the training text, a `reprt.data.encoding.EncodedSplit`.
        epochs: how many; a part of one counts as that part of its tokens.
    """
    sources, targets = split.tokens
    products = int(model.multiply_adds(sources, targets).sum())
    return Cost(
        model.count_params(),
        parameters_without_tables(model),
        round(epochs * int(sources.sum())),
        round(epochs * int(targets.sum())),
        round(epochs * FLOPS * PASSES * products),
    )


def parameters_without_tables(model) -> int:
    """Returns how many parameters have a shape that no vocabulary decides.

    Left out are the tables that embed tokens and what scores tokens.

    >>> import reprt
    >>> model = reprt.models.build("transformer-base", 100, 100, num_blocks=1)
    >>> (model.count_params() - parameters_without_tables(model)) / 100
    512.0
    """
    other_model = type(model)(OTHER_SIZE, OTHER_SIZE, model.config)
    other_model.build()
    pairs = zip(model.weights, other_model.weights, strict=True)
    count = 0
    for weight, other_weight in pairs:
        if weight.shape == other_weight.shape:
            count += math.prod(weight.shape)
    return count


def scientific(number: float) -> str:
    """Returns a large number in short, such as `6.02e23`."""
    digits, exponent = f"{number:.2e}".split("e")
    return f"{digits}e{int(exponent)}"
