"""A recipe's runs on the texts that were found for them."""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

import tomli_w

from reprt.data.corpora import own
from reprt.data.corpora.corpus import Corpus
from reprt.data.corpora.tables import is_table
from reprt.data.encoding import EncodedCorpus, encode
from reprt.data.search import NothingFound, TextUnavailable, find
from reprt.files import cache, write_text
from reprt.progress import Progress
from reprt.training.settings import RunSettings, TextSettings
from reprt.training.workers import is_chief
from reprt_lab.folder import RunFolder
from reprt_lab.pages import ON_SEVERAL_TEXTS, write_page
from reprt_lab.pages.runs import PAGE_SETTINGS
from reprt_lab.recipe import Recipe, load_recipe

# Overrides that the fallback, which has a text of its own, does not take.
WHICH_TEXT = ("text.pair", "text.source", "trials.pairs")


@dataclasses.dataclass(frozen=True)
class CorpusRuns:
    """The runs of a recipe, or of its fallback, on one text, and where they are."""

    recipe: Recipe
    corpus: Corpus
    runs: Sequence[RunSettings]
    folder: Path

    def write_page(self) -> Path:
        """Writes the page on the runs; returns its path, or the folder without one."""
        folder, name = self.folder, self.recipe.page_name
        if not is_chief() or not any(folder.glob("*/config.toml")):
            return folder
        if name in ON_SEVERAL_TEXTS:
            folder = folder.parent
        page = self.recipe.page.changed(name=name)
        write_text(folder / PAGE_SETTINGS, tomli_w.dumps(page.as_table()))
        return write_page(folder)

    def encoded(self, progress: Progress) -> EncodedCorpus:
        """Encodes the text. Vocabularies are learnt unless they are in the cache."""
        text, vocabulary = self.runs[0].text, self.runs[0].vocabulary
        found = encode(
            self.corpus, vocabulary, text.max_tokens, cache(), progress.show
        )
        if text.side == "target":
            found = found.of_target()
        return (
            found.trained_to(text.train_tokens) if text.train_tokens else found
        )


def find_text(text: TextSettings, downloads: bool = True) -> Corpus:
    """Finds the text that settings name."""
    table = (text.source,) if is_table(text.source) else ()
    if train := text.train or table:
        files = train, text.dev, text.test
        held_out = text.held_out or 0.05
        return own.load(text.pair, *files, text.columns, held_out, text.quoting)
    if text.dev or text.test:
        raise ValueError(
            "Expected --train, or a table by --text, with --dev and --test. Received: "
            f"the text {text.source!r}, which has its own."
        )
    corpus = find(text.source, text.pair, downloads)
    return corpus.validated_on(text.held_out)


def find_runs(
    recipe: Recipe, only: Sequence[str], out: Path | None, progress: Progress
) -> list[CorpusRuns]:
    """Finds the text of each of a recipe's pairs, and says what was found.

    Where TED is wanted, and found for no pair, the recipe's fallback is run, on the
    text and the pair that the fallback names. Once it has runs, TED is not looked for
    in the network again. Where the fallback's own text is named, it is run as well: a
    text has one set of settings and one folder.
    """
    instead = unfit = None
    searched = (
        recipe.text.source in ("auto", "embedded") and not recipe.text.train
    )
    if recipe.fallback and searched:
        kept = [
            each for each in recipe.overrides if not each.startswith(WHICH_TEXT)
        ]
        try:
            instead = load_recipe(Path(recipe.fallback), kept)
        except (
            ValueError
        ) as error:  # overrides that only the recipe itself takes
            unfit = error
    if recipe.text.source == "embedded":
        for pair in recipe.pairs:
            find_text(
                recipe.text.changed(pair=pair)
            )  # refuses all pairs but its own
        if unfit:
            raise unfit
        if instead:
            progress.say(
                f"The recipe {recipe.fallback!r} is run, which has this text."
            )
            return find_runs(instead, only, out, progress)
    begun = instead and _begun(instead, out)
    missing: list[TextUnavailable] = []
    work: list[CorpusRuns] = []
    for pair in recipe.pairs:
        try:
            corpus = find_text(
                recipe.text.changed(pair=pair), downloads=not begun
            )
        except TextUnavailable as error:
            missing.append(error)
            if recipe.pairs[1:]:
                # The search for TED tells at length where it looked.
                reason = str(error).splitlines()[0]
                progress.say(f"{pair}: not run, its text is missing. {reason}")
            continue
        progress.say(
            f"Text: {corpus.name}, {len(corpus.train):,} / {len(corpus.dev):,} / "
            f"{len(corpus.test):,} pairs ({corpus.origin})"
        )
        test = {*corpus.test.source}
        if seen := test.intersection(corpus.train.source):
            progress.say(
                f"Of {len(test):,} different sources of the test, {len(seen):,} are in "
                "the training text as well"
            )
        folder = _folder(recipe, corpus, out)
        if folder in [each.folder for each in work]:
            raise ValueError(
                f"Expected one pair, for {corpus.name} is the text of every pair. "
                f"Received: {', '.join(recipe.pairs)}."
            )
        work.append(CorpusRuns(recipe, corpus, recipe.runs(only, pair), folder))
    if work:
        return work
    # A text that the user has named, by REPRT_TED too, is not replaced by another.
    nothing = isinstance(missing[0], NothingFound)
    if unfit and nothing:
        raise NothingFound(
            f"{missing[0]}\n\nNor can the fallback be run: {unfit}"
        )
    if not (instead and nothing):
        raise missing[0]
    if begun:
        progress.say(
            f"The runs in {begun}, of the recipe {recipe.fallback!r}, go on. "
            "--text ted looks for TED-HRLR again."
        )
    else:
        progress.say(
            f"{missing[0]}\n\nTHE RECIPE {recipe.fallback!r} IS USED INSTEAD. ITS TEXT "
            "IS NOT TED: ITS RESULTS DO NOT REPRODUCE THE PAPER'S. Its text and pair "
            "are used, whatever you asked for; other settings stay as you set them.\n"
        )
    return find_runs(instead, only, out, progress)


def _begun(recipe: Recipe, out: Path | None) -> Path | None:
    corpus = find_text(recipe.text)
    folder = _folder(recipe, corpus, out)
    runs = [RunFolder(path.parent) for path in folder.glob("*/manifest.json")]
    return (
        folder
        if any(run.manifest().text == corpus.name for run in runs)
        else None
    )


def _folder(recipe: Recipe, corpus: Corpus, out: Path | None) -> Path:
    # A page on many texts gathers the folders of all.
    if (
        out
        and recipe.page_name not in ON_SEVERAL_TEXTS
        and not recipe.pairs[1:]
    ):
        return out
    # Its name tells the text: `ted-hrlr-pt_to_en`, `embedded-corpus`.
    name = re.sub(r"\(.*", "", corpus.name).strip().lower()
    name = re.sub(r"[^a-z0-9_]+", "-", name).strip("-")
    return (out or Path("runs") / recipe.name) / name
