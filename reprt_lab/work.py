"""What a recipe's job has to do: its runs, on the texts that were found for them."""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

from reprt.data.corpora import own
from reprt.data.corpora.corpus import Corpus
from reprt.data.corpora.find import NothingFound, TextUnavailable, find
from reprt.data.corpora.tables import is_table
from reprt.data.encoding import EncodedCorpus, encode
from reprt.files import cache
from reprt.progress import Progress
from reprt.training.settings import RunSettings, TextSettings
from reprt_lab.folder import RunFolder
from reprt_lab.recipe import ON_SEVERAL_TEXTS, Recipe, load_recipe

# Overrides that the fallback, which has a text of its own, does not take.
WHICH_TEXT = ("text.pair", "text.source", "trials.pairs")


@dataclasses.dataclass(frozen=True)
class CorpusRuns:
    """The runs of a recipe, or of its fallback, on one text, and where they are."""

    recipe: Recipe
    corpus: Corpus
    runs: Sequence[RunSettings]
    folder: Path

    @property
    def folders(self) -> list[RunFolder]:
        return [RunFolder(self.folder / run.name) for run in self.runs]

    def encode(self, progress: Progress) -> EncodedCorpus:
        """Encodes the text. Vocabularies are learnt unless they are in the cache."""
        settings, vocabulary = self.runs[0].text, self.runs[0].vocabulary
        text = encode(
            self.corpus,
            vocabulary,
            settings.max_tokens,
            cache(),
            progress.show,
        )
        if settings.side == "target":
            text = text.of_target()
        if settings.train_tokens:
            text = text.trained_to(settings.train_tokens)
        return text


def find_text(settings: TextSettings) -> Corpus:
    """Finds the text that settings name."""
    if settings.own_files:
        return _own_text(settings)
    if settings.dev or settings.test:
        raise ValueError(
            "Expected --train, or a table by --text, with --dev and --test. Received: "
            f"the text {settings.source!r}, which has its own."
        )
    corpus = find(settings.source, settings.pair)
    return corpus.validated_on(settings.held_out)


def _own_text(settings: TextSettings) -> Corpus:
    """Reads a text of the user's own, of which a language model has one side."""
    train, dev, test = settings.own_files, settings.dev, settings.test
    columns: Sequence[str] = settings.columns
    one_side = len(train) == 1 and not is_table(train[0])
    if one_side and settings.side == "target":
        # The same file stands for both sides, and no column is read.
        train, dev, test = 2 * train, 2 * dev, 2 * test
        columns = ("source", "target")
    try:
        corpus = own.load(
            settings.pair,
            train,
            dev,
            test,
            columns,
            settings.held_out or own.HELD_OUT,
            settings.quoting,
        )
    except FileNotFoundError as error:
        raise ValueError(
            f"{error}. A text of your own is given by --train SOURCE TARGET, or by "
            "--text TABLE."
        ) from error
    if one_side:
        corpus = dataclasses.replace(corpus, name=Path(train[0]).name)
    return corpus


def find_work(
    recipe: Recipe,
    only: Sequence[str],
    out: Path | None,
    progress: Progress,
) -> list[CorpusRuns]:
    """Finds the text of each of a recipe's pairs, and says what was found.

    Where TED is wanted, and found for no pair, the recipe's fallback is run, on the
    text and the pair that the fallback names. Where the fallback's own text is named,
    it is run as well: a text has one set of settings and one folder.
    """
    fallback, source = recipe.fallback, recipe.text.source
    if recipe.text.train or source not in ("auto", "embedded"):
        fallback = None
    if fallback is None:
        return _find_work_on_pairs(recipe, only, out, progress)
    if source == "auto":
        try:
            return _find_work_on_pairs(recipe, only, out, progress)
        except NothingFound as error:
            progress.say(
                f"{error}\n\nTHE RECIPE {fallback!r} IS USED INSTEAD. ITS TEXT IS NOT "
                "TED: ITS RESULTS DO NOT REPRODUCE THE PAPER'S. Its text and pair are "
                "used, whatever you asked for; other settings stay as you set them.\n"
            )
    else:
        for pair in recipe.pairs:
            # It refuses all pairs but its own.
            find_text(recipe.text.changed(pair=pair))
    overrides = []
    for override in recipe.overrides:
        if not override.startswith(WHICH_TEXT):
            overrides.append(override)
    other = load_recipe(Path(fallback), overrides)
    if source == "embedded":
        progress.say(f"The recipe {fallback!r} is run, which has this text.")
    return _find_work_on_pairs(other, only, out, progress)


def _find_work_on_pairs(
    recipe: Recipe,
    only: Sequence[str],
    out: Path | None,
    progress: Progress,
) -> list[CorpusRuns]:
    """Finds the texts of those pairs that have one, of which there has to be one."""
    missing: list[TextUnavailable] = []
    work: list[CorpusRuns] = []
    for pair in recipe.pairs:
        try:
            corpus = find_text(recipe.text.changed(pair=pair))
        except TextUnavailable as error:
            missing.append(error)
            if len(recipe.pairs) > 1:
                # The search for TED tells at length where it looked.
                reason = str(error).splitlines()[0]
                progress.say(f"{pair}: not run, its text is missing. {reason}")
            continue
        progress.say(
            f"Text: {corpus.name}, {len(corpus.train):,} / {len(corpus.dev):,} / "
            f"{len(corpus.test):,} pairs ({corpus.origin})"
        )
        if corpus.facts.repeated:
            progress.say(
                f"Of {corpus.facts.test_sources:,} different sources of the test, "
                f"{corpus.facts.repeated:,} are in the training text as well"
            )
        folder = _folder(recipe, corpus, out)
        is_small = recipe.is_small(len(corpus.train))
        if is_small:
            progress.say("Settings: those of [small_text] of the recipe")
        runs = recipe.runs(only, pair, is_small)
        work.append(CorpusRuns(recipe, corpus, runs, folder))
    if not work:
        raise missing[0]
    return work


def _folder(recipe: Recipe, corpus: Corpus, out: Path | None) -> Path:
    # A page on many texts gathers the folders of all.
    on_several_texts = (
        recipe.page_name in ON_SEVERAL_TEXTS or len(recipe.pairs) > 1
    )
    if out and not on_several_texts:
        return out
    # Its name tells the text: `ted-hrlr-pt_to_en`, `embedded-corpus`.
    name = re.sub(r"\(.*", "", corpus.name).strip().lower()
    name = re.sub(r"[^a-z0-9_]+", "-", name).strip("-")
    return (out or Path("runs") / recipe.name) / name
