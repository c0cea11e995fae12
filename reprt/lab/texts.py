"""A recipe's runs on the texts that were found for them."""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

from reprt.data.corpora.corpus import Corpus
from reprt.data.search import NothingFound, TextUnavailable, find
from reprt.files import cache
from reprt.lab.folder import RunFolder
from reprt.lab.pages import PAGES
from reprt.lab.recipe import Recipe, load_recipe
from reprt.lab.records import RunFolderError
from reprt.progress import Progress
from reprt.training.settings import RunSettings

# Overrides that the fallback, which has a text of its own, does not take.
WHICH_TEXT = ("text.pair", "text.source", "trials.pairs")


@dataclasses.dataclass(frozen=True)
class CorpusRuns:
    """The runs of a recipe on one text.

    Attributes:
        recipe: the recipe, or its fallback.
        corpus: the text.
        runs: their settings.
        folder: where their folders are.
    """

    recipe: Recipe
    corpus: Corpus
    runs: Sequence[RunSettings]
    folder: Path

    def encoded(self, progress: Progress):
        """Returns the text's ids as an `EncodedCorpus`.

        Its vocabularies are learnt unless they are in the cache.
        """
        # Imported here, so that mistakes are reported before TensorFlow loads.
        from reprt.data.encoding import encode

        settings = self.runs[0].vocabulary, self.runs[0].text.max_tokens
        return encode(self.corpus, *settings, cache(), progress.show)


def find_runs(
    recipe: Recipe, only: Sequence[str], out: Path | None, progress: Progress
) -> list[CorpusRuns]:
    """Finds the text of each of a recipe's pairs, and says what was found.

    Args:
        recipe: the recipe. Where TED is wanted, and found for no pair, its fallback is
            run, on the text and the pair that this one names.
        only: names of the runs; empty for all.
        out: folder of the results; None for one under `runs`.
        progress: where it is said.

    Raises:
        TextUnavailable: if no pair has one.
        ValueError: if pairs share one.
    """
    # A page on many texts gathers the folders of all.
    many = PAGES[recipe.page_name].several_texts or len(recipe.pairs) > 1
    source, work, missing = recipe.text.source, [], []
    for pair in recipe.pairs:
        try:
            corpus = find("ted" if source == "auto" else source, pair)
        except TextUnavailable as error:
            missing.append(error)
            if recipe.pairs[1:]:
                # The search for TED tells at length where it looked.
                reason = str(error).splitlines()[0]
                progress.say(f"{pair}: not run, its text is missing. {reason}")
            continue
        progress.say(
            f"Text: {corpus.name}, {len(corpus.train):,} / {len(corpus.dev):,} / "
            f"{len(corpus.test):,} pairs, from {corpus.origin}"
        )
        folder = out or Path("runs") / recipe.name
        if many or out is None:
            folder /= _slug(corpus)
        if folder in [each.folder for each in work]:
            raise ValueError(
                f"Expected one pair, for {corpus.name} is the text of every pair. "
                f"Received: {', '.join(recipe.pairs)}."
            )
        work.append(CorpusRuns(recipe, corpus, recipe.runs(only, pair), folder))
    if work:
        return work
    # A text that the user has named, by REPRT_TED too, is not replaced by another.
    nothing = isinstance(missing[0], NothingFound) and source == "auto"
    if not (recipe.fallback and nothing):
        raise missing[0]
    progress.say(
        f"{missing[0]}\n\nTHE RECIPE {recipe.fallback!r} IS USED INSTEAD. ITS TEXT IS "
        "NOT TED: ITS RESULTS DO NOT REPRODUCE THE PAPER'S.\nText and pair are those of "
        "this recipe, whatever was asked for; other settings hold as they were set.\n"
    )
    kept = [each for each in recipe.overrides if not each.startswith(WHICH_TEXT)]
    instead = load_recipe(Path(recipe.fallback), kept)
    instead = instead.changed(name=recipe.name)  # of the results' folder
    return find_runs(instead, only, out, progress)


def text_of_run(folder: RunFolder, source: str | None = None) -> Corpus:
    """Finds the text that a run was begun on.

    Args:
        folder: the run's folder.
        source: where the text is now; None for where the run found it.

    Raises:
        RunFolderError: if another text is there.
        TextUnavailable: if none is.
    """
    settings, manifest = folder.settings().text, folder.manifest()
    corpus = find(source or settings.source, settings.pair)
    if corpus.digest() != manifest.text_sha256:
        raise RunFolderError(
            f"Expected the text of the run, {manifest.text} with sha256 "
            f"{manifest.text_sha256[:16]}. Received: {corpus.name} from "
            f"{corpus.origin}, with {corpus.digest()[:16]}. Say where it is by --text."
        )
    return corpus


def _slug(corpus: Corpus) -> str:
    """A folder name that tells the text: `ted-hrlr-pt_to_en`, `embedded-corpus`."""
    name = re.sub(r"\(.*", "", corpus.name).strip().lower()
    return re.sub(r"[^a-z0-9_]+", "-", name).strip("-")
