"""Everything that decides one training, as tables that can grow."""

import inspect
import re
from typing import Annotated, Any, Literal, Self, Union

import pydantic
from pydantic import Field

from reprt.data.corpora.tables import Quoting, is_table
from reprt.data.tokenizers.registry import Vocabulary
from reprt.data.tokenizers.wordpiece import WordPieceSettings
from reprt.models.presets import PRESETS, preset
from reprt.optimizers import OPTIMIZERS
from reprt.schedules import cosine
from reprt.settings import Place, Positive, Settings, Share, Size, by_name

Rate = Annotated[float, Field(gt=0, le=1)]
Name = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Name, ...], Field(max_length=2, strict=False)]


# Not a `Literal`, because a new family adds presets of its own.
Preset = Annotated[
    str,
    pydantic.AfterValidator(lambda name: preset(name) and name),
    pydantic.WithJsonSchema({"type": "string", "enum": list(PRESETS)}),
]


class TextSettings(Settings):
    """The text."""

    pair: str = "pt_to_en"
    """One of TED-HRLR's 14 pairs, by TFDS's name, or the languages of your own text."""
    source: str = "auto"
    """Where the text comes from: `"auto"`, `"ted"`, `"embedded"`, `"wmt14"` or the path
    of a folder, an archive or a table."""
    train: Names = ()
    """Text of your own instead: two files with one sentence per line, or a table, whose
    name ends with `.tsv`, `.csv`, `.jsonl` or `.parquet`."""
    dev: Names = ()
    """The same for validation; without it `held_out` of the training pairs."""
    test: Names = ()
    """The same for the test."""
    columns: Names = ()
    """Of tables, those of source and target; by default the pair's languages."""
    quoting: Quoting | None = None
    """Quotes in `.tsv` and `.csv`: `"none"` if they are part of sentences, `"double"`
    if they stand around cells and are doubled within, `"backslash"` if a backslash is
    before those within, `"escapes"` if they are part of sentences and a line break is
    written as `\\n`. By default the one way that fits the whole file."""
    max_tokens: Size = 128
    """Longest input of either side, in tokens."""
    train_tokens: Size | None = None
    """Pairs with a longer input are left out of training and validation. The test split
    keeps them, and has results for each range of lengths."""
    held_out: Share = 0.0
    """The share of the training pairs that validate instead of the text's own split;
    of your own files, that of each split without a file, 0.05 by default. A hash of the
    source decides, so a pair stays where it is when others are added."""
    side: Literal["both", "target"] = "both"
    """`"target"` leaves the source out, for a language model."""

    @property
    def own_files(self) -> tuple[str, ...]:
        """The training files of a text of the user's own, or none."""
        if not self.train and is_table(self.source):
            return (self.source,)
        return self.train


class SentencesSettings(Settings):
    """Batches of a number of sentences."""

    name: Literal["sentences"] = "sentences"
    size: Size = 64
    """Sentences a step, over all replicas."""
    by_length: bool = False
    """Whether sentences of similar length share a batch. It is faster, and not as
    published: batches are then not random."""


class TokensSettings(Settings):
    """Batches of a number of tokens, from sentences of similar length."""

    name: Literal["tokens"] = "tokens"
    size: Size = 4096
    """The most tokens of a step on either side, over all replicas. Padding counts: n
    sentences, the longest of which has l tokens, are n · l."""


CLIPPING = ("clipnorm", "global_clipnorm", "clipvalue")


class OptimizerSettings(Settings):
    """What all optimizers have; the other arguments follow from Keras' classes."""

    loss_scaling: Literal["none", "dynamic"] = "none"
    """`"dynamic"` scales the loss, which float16 needs. A gradient that is not finite
    halves the scale and makes no update; 2,000 updates in a row double the scale."""
    clipnorm: Positive | None = None
    """The greatest norm of a weight's gradient."""
    global_clipnorm: Positive | None = None
    """The greatest norm of all gradients as one."""
    clipvalue: Positive | None = None
    """The greatest absolute value of a gradient's numbers."""
    use_ema: bool = False
    """Whether moving averages of the weights replace them now and then."""
    ema_momentum: Share = 0.99
    """The share of a moving average that stays in a step."""
    ema_overwrite_frequency: Size | None = None
    """The steps after which the averages replace the weights."""

    @pydantic.model_validator(mode="after")
    def _clip_in_one_way(self):
        names = [name for name in CLIPPING if getattr(self, name) is not None]
        if len(names) > 1:
            raise ValueError(
                f"Expected one of {', '.join(CLIPPING)} at most. Received: "
                f"{', '.join(names)}."
            )
        return self

    @pydantic.model_validator(mode="after")
    def _averages_are_used(self):
        if self.use_ema != (self.ema_overwrite_frequency is not None):
            raise ValueError(
                "Expected 'use_ema' together with 'ema_overwrite_frequency'. Received: "
                f"{self.use_ema} and {self.ema_overwrite_frequency}."
            )
        return self


class SparseOptimizerSettings(OptimizerSettings):
    """What Adam and AdamW have as well."""

    sparse_gradients: Literal["summed", "squared_apart"] = "summed"
    """How the second moment of an embedding's row counts an id that a batch has several
    times: the `"summed"` gradient is squared, or each occurrence's own
    (`"squared_apart"`) and the squares are summed, as Keras does on TensorFlow."""

    @pydantic.model_validator(mode="after")
    def _agree(self):
        if self.sparse_gradients != "summed" and self.loss_scaling != "none":
            raise ValueError(
                "Expected sparse_gradients = 'summed' with a loss scaling, which looks "
                f"for faults in sums. Received: {self.sparse_gradients!r}."
            )
        return self


# The ranges of Keras' arguments; others have the type of their default.
RANGES: dict[str, Any] = {
    **dict.fromkeys(("beta_1", "beta_2", "rho", "momentum"), Share),
    "epsilon": Positive,
    "weight_decay": Annotated[float, Field(ge=0, le=1)],
    "exclude_layers": Annotated[tuple[str, ...], Field(strict=False)],
}
# `[schedule]`, `loss_scaling` and batches of another size stand for these.
NOT_ASKED = {
    *("self", "kwargs", "name", "learning_rate", "loss_scale_factor"),
    "gradient_accumulation_steps",
}


def _make_settings(name: str, base=OptimizerSettings, **defaults: float) -> Any:
    """Makes the settings' class of one of Keras' optimizers from its signature.

    Args:
        name: one of `OPTIMIZERS`.
        base: its base class.
        **defaults: instead of Keras' own.
    """
    kind = OPTIMIZERS[name]
    fields: dict[str, Any] = {"name": (Literal[name], name)}
    for argument in inspect.signature(kind.__init__).parameters.values():
        if argument.name in NOT_ASKED or argument.name in base.model_fields:
            continue
        default = defaults.get(argument.name, argument.default)
        values = RANGES.get(argument.name, type(default))
        if default is None:
            values = values | None
        description = f"As in `keras.optimizers.{kind.__name__}`."
        field = Field(default=default, description=description)
        fields[argument.name] = (values, field)
    class_name = f"{kind.__name__}Settings"
    return pydantic.create_model(
        class_name, __base__=base, __module__=__name__, **fields
    )


PAPER = {"beta_2": 0.98, "epsilon": 1e-9}
AdamSettings = _make_settings("adam", SparseOptimizerSettings, **PAPER)
# The decay is PyTorch's default.
AdamWSettings = _make_settings(
    "adamw", SparseOptimizerSettings, **PAPER, weight_decay=0.01
)
OPTIMIZER_SETTINGS = (
    AdamSettings,
    AdamWSettings,
    *(
        _make_settings(name)
        for name in OPTIMIZERS
        if name not in ("adam", "adamw")
    ),
)


class InverseSqrtSettings(Settings):
    """Linear warm-up, then decay with the inverse square root of the step."""

    name: Literal["inverse_sqrt"] = "inverse_sqrt"
    warmup_steps: Size = 4000
    """The paper's N_w, the step of the highest rate."""
    dim: Size | None = None
    """The paper's m, which sets the highest rate; by default the embedding's width."""
    peak: Rate | None = None
    """The highest rate, instead of the one that follows from m."""

    @pydantic.model_validator(mode="after")
    def _dim_or_peak(self):
        if self.dim is not None and self.peak is not None:
            raise ValueError(
                "Expected 'dim' or 'peak', for the highest rate follows from either. "
                f"Received both: {self.dim} and {self.peak}."
            )
        return self


class CosineSettings(Settings):
    """Linear warm-up, then half a cosine down to the end of the run."""

    name: Literal["cosine"] = "cosine"
    warmup_steps: Size = 2000
    """The step of the highest rate."""
    peak: Rate = 6e-4
    """The highest rate."""
    floor: Annotated[float, Field(ge=0)] = 6e-5
    """The rate at the end."""
    steps: Size | None = None
    """The step of the end; by default the last of all the run's epochs."""

    @pydantic.model_validator(mode="after")
    def _falls(self):
        # The number of steps is not known yet. Any that is great enough will do.
        steps = self.steps or self.warmup_steps + 1
        cosine(steps, self.warmup_steps, self.peak, self.floor)
        return self


class TrainingSettings(Settings):
    """How long and how exactly a model is trained; the defaults are section 3.1."""

    epochs: Size = 10
    """Passes over the training text."""
    steps: Size | None = None
    """Updates of the weights, instead of `epochs`; they may end within an epoch."""
    hours: Positive = 12.0
    """The most hours of training steps. An epoch that they cut short does not count,
    unless the `best` model is chosen among those of `validate_every`."""
    accumulate: Size = 1
    """Batches of `[batching]` whose gradients make one update: that of a batch so many
    times as large, in the memory of one. Steps count updates."""
    precision: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    """The dtype of matrix products, where the hardware has it. Float16 needs a dynamic
    loss scaling of `[optimizer]`."""
    start_from: Place | None = None
    """The folder of another run, or a `.keras` file in it, whose weights the first step
    starts from. Its vocabularies are this run's: see `from_run` of `[vocabulary]`."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """The seed of the first weights, the dropout and the order of the text."""
    deterministic: bool = True
    """Whether TensorFlow is held to operations that give the same bits each time."""
    checkpoint_minutes: Annotated[float, Field(ge=0)] = 5.0
    """Time between checkpoints within an epoch."""
    average: Annotated[int, Field(ge=0)] = 0
    """How many of the newest kept models make the mean; 0 for the last model only."""
    keep_every: Size | None = None
    """Steps between kept models, where there is an `average`; by default an
    epoch's."""
    best: Literal["loss", "bleu"] | None = None
    """By what the best model is chosen, which is then the trained one: the validation
    loss per token, or the BLEU of `bleu_sentences`. Models compare at each epoch's end,
    or at each row of `validate_every`. None for the last model."""
    patience: Size | None = None
    """How many of these comparisons in a row may bring no better model before training
    ends early. The `best` is then chosen by the loss unless it says otherwise."""
    validate_every: Size | None = None
    """Steps between rows of `steps.csv`, which has losses and the BLEU of
    `bleu_sentences`. None for no such file."""
    bleu_sentences: Annotated[int, Field(ge=0)] = 0
    """How many sentences, the first of the training and of the validation split, are
    translated by greedy search for each row of `validate_every`."""
    tensorboard: bool = False
    """Whether to log for TensorBoard as well."""
    bleu: bool = True
    """Whether prefix loss, and BLEU on the test split, are computed after training."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _patience_is_for_the_best(cls, values):
        if isinstance(values, dict) and values.get("patience"):
            return {**values, "best": values.get("best") or "loss"}
        return values

    @pydantic.model_validator(mode="after")
    def _translated_sentences_are_used(self):
        is_used = self.validate_every or self.best == "bleu"
        if self.bleu_sentences and not is_used:
            raise ValueError(
                "Expected 'bleu_sentences' together with 'validate_every', or with "
                f"'best' = 'bleu'. Received: {self.bleu_sentences}, without them."
            )
        return self


class TranslationSettings(Settings):
    """The cross-entropy of the target's tokens."""

    name: Literal["translation"] = "translation"
    label_smoothing: Share = 0.0
    """The share of each label that all ids get; logged losses are not smoothed."""


class TranslationAndSourceSettings(TranslationSettings):
    """The source's cross-entropy too, as `TranslationAndSource` weighs it."""

    name: Literal["translation_and_source"] = "translation_and_source"  # type: ignore
    alpha: Annotated[float, Field(ge=0, le=1)] = 0.1
    """The weight of the source's loss where its slope changes."""
    turn: Annotated[float, Field(gt=0, lt=1)] = 0.25
    """The share of all steps after which the slope changes."""


class LanguageModelSettings(TranslationSettings):
    """The cross-entropy of the tokens of one side, for a decoder-only model."""

    name: Literal["language_model"] = "language_model"  # type: ignore


BatchingTable = Annotated[
    SentencesSettings | TokensSettings,
    by_name(SentencesSettings, TokensSettings),
]
OptimizerTable = Annotated[
    Union[OPTIMIZER_SETTINGS],  # type: ignore
    by_name(*OPTIMIZER_SETTINGS),
]
ScheduleTable = Annotated[
    InverseSqrtSettings | CosineSettings,
    by_name(InverseSqrtSettings, CosineSettings),
]
ObjectiveTable = Annotated[
    TranslationSettings | TranslationAndSourceSettings | LanguageModelSettings,
    by_name(
        TranslationSettings, TranslationAndSourceSettings, LanguageModelSettings
    ),
]


class RunTables(Settings):
    """What was asked of a run, and what tells it from other runs.

    The tables are those of `RunSettings`, or of a run that was written down once.
    """

    name: str
    preset: str
    model: Any
    text: Any
    training: Any
    vocabulary: Any
    batching: Any
    optimizer: Any
    schedule: Any
    objective: Any

    @property
    def schedule_dim(self) -> int | None:
        """The paper's m, from which the rate follows; None where its peak is given."""
        schedule = self.schedule
        if schedule.name != "inverse_sqrt" or getattr(schedule, "peak", None):
            return None
        return getattr(schedule, "dim", None) or self.model.embedding_dim

    @property
    def identity(self) -> Self:
        """The settings that change a step's numbers; names and places do not."""
        schedule = self.schedule
        if self.schedule_dim is not None:
            schedule = schedule.changed(dim=self.schedule_dim)
        files = dict.fromkeys(FILES, ())
        text = self.text.changed(source="", quoting=None, **files)
        may_change = MAY_CHANGE
        if self.training.best:
            # The best model depends on when and how models compare.
            may_change = MAY_CHANGE - {"validate_every", "bleu_sentences"}
        constant = self.training.model_dump(exclude=may_change)
        training = type(self.training)(**constant)
        update = {"schedule": schedule, "text": text, "training": training}
        return self.model_copy(update={"name": "", **update})


class RunSettings(RunTables):
    """Everything that decides a training. `model` is the preset with its changes."""

    name: str
    """The run's name: MODEL, or MODEL.SCHEDULE.SEED."""
    preset: Preset
    """The model that it is, or departs from."""
    model: Any
    """The architecture, of the settings class of the preset's family."""
    text: TextSettings = TextSettings()
    training: TrainingSettings = TrainingSettings()
    vocabulary: Vocabulary = WordPieceSettings()
    batching: BatchingTable = SentencesSettings()
    optimizer: OptimizerTable = AdamSettings()  # type: ignore
    schedule: ScheduleTable = InverseSqrtSettings()
    objective: ObjectiveTable = TranslationSettings()

    @property
    def batching_of_update(self) -> dict[str, Any]:
        """What a `BatchPlan` takes for the sentences of one update."""
        size = self.batching.size * self.training.accumulate
        return {**dict(self.batching), "size": size}

    @pydantic.field_validator("name")
    @classmethod
    def _names_a_folder(cls, name):
        if not all(
            re.fullmatch(r"[\w-]{1,64}", part) for part in name.split(".")
        ):
            raise ValueError(
                "Expected names of 1 to 64 letters, digits, - and _. Received: "
                f"{name!r}."
            )
        return name

    @pydantic.field_validator("model")
    @classmethod
    def _of_the_preset(cls, model, others):
        if not isinstance(model, dict) or "preset" not in others.data:
            return model
        usual = PRESETS[others.data["preset"]]
        return type(usual).model_validate({**dict(usual), **model})

    @pydantic.model_validator(mode="after")
    def _sentences_fit(self):
        longest, most = self.text.max_tokens, self.model.max_length
        if longest > most:
            raise ValueError(
                "Expected 'max_tokens' in [text] to be at most the model's"
                f" 'max_length', {most}. Received: {longest}."
            )
        size = self.batching.size
        if self.batching.name == "tokens" and size < longest:
            raise ValueError(
                "Expected 'size' in [batching] to be at least the 'max_tokens' in"
                f" [text], {longest}. Received: {size}."
            )
        return self

    @pydantic.model_validator(mode="after")
    def _objective_fits(self):
        objective, side = self.objective.name, self.text.side
        if (objective == "language_model") != (side == "target"):
            raise ValueError(
                "The objective 'language_model' and side = 'target' in [text] go "
                f"together. Received: {objective!r} and {side!r}."
            )
        decoder_only = getattr(self.model, "scores_source", False)
        if objective != "translation" and not decoder_only:
            raise ValueError(
                f"The objective {objective!r} takes a decoder-only model. "
                f"Received: {self.preset!r}."
            )
        return self

    @pydantic.model_validator(mode="after")
    def _language_models_translate_nothing(self):
        sentences = self.training.bleu_sentences
        if sentences and self.text.side == "target":
            raise ValueError(
                "Expected 'bleu_sentences' in [training] only where two languages are "
                f"translated. Received: {sentences}, of a language model."
            )
        return self

    @pydantic.model_validator(mode="after")
    def _one_model_is_chosen(self):
        training = self.training
        if training.best and training.average:
            raise ValueError(
                "Expected 'average' or 'best' in [training], which choose the trained "
                f"model in two ways. Received: {training.average}, {training.best!r}."
            )
        if training.best == "bleu" and not training.bleu_sentences:
            raise ValueError(
                "Expected 'bleu_sentences' of 1 or more, to translate two languages, "
                "where 'best' in [training] is 'bleu'. Received: 0."
            )
        return self

    @pydantic.model_validator(mode="after")
    def _one_table_has_one_vocabulary(self):
        one_table = getattr(self.model, "shared_embedding", False)
        two_sides = self.text.side == "both"
        if one_table and two_sides and not self.vocabulary.joint:
            raise ValueError(
                "Expected name = 'bpe' and shared = true in [vocabulary], as "
                f"shared_embedding needs. Received: name = {self.vocabulary.name!r}."
            )
        return self

    @pydantic.model_validator(mode="after")
    def _optimizer_fits(self):
        optimizer: Any = self.optimizer
        precision, scaling = self.training.precision, optimizer.loss_scaling
        if precision == "mixed_float16" and scaling != "dynamic":
            raise ValueError(
                "Expected 'loss_scaling' in [optimizer] to be 'dynamic' where "
                f"'precision' in [training] is {precision!r}, in which small gradients "
                f"are rounded to 0. Received: {scaling!r}."
            )
        apart = getattr(optimizer, "sparse_gradients", "") == "squared_apart"
        if apart and self.training.accumulate > 1:
            raise ValueError(
                "Expected sparse_gradients = 'summed' in [optimizer] with 'accumulate' "
                "in [training], which adds gradients up. Received: 'squared_apart'."
            )
        # A decoder-only model has no other way.
        if apart and getattr(self.model, "output_tying", "tied") != "none":
            raise ValueError(
                "Expected sparse_gradients = 'summed' in [optimizer] where the "
                "embedding table also makes the logits, so that its gradient is dense. "
                "Received: 'squared_apart'."
            )
        return self


# All tables but the model, which the preset decides.
TABLES = tuple(
    name
    for name in RunSettings.model_fields
    if name not in ("name", "preset", "model")
)
# The keys of [text] that name places, like the source.
FILES = ("train", "dev", "test")
# Settings of the training that may change when a run goes on.
MAY_CHANGE = {
    "hours",
    "checkpoint_minutes",
    "validate_every",
    "bleu_sentences",
    "tensorboard",
    "bleu",
}
