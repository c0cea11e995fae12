"""A recipe's runs on the texts that were found for them."""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

from reprt.data.corpora import embedded
from reprt.data.corpora.corpus import Corpus
from reprt.data.search import TextUnavailable, find
from reprt.files import cache
from reprt.progress import Progress
from reprt.reports.registry import page_named
from reprt.runs.recipe import Recipe
from reprt.runs.run_folder import RunFolder, RunFolderError
from reprt.runs.run_settings import RunSettings


@dataclasses.dataclass(frozen=True)
class CorpusRuns:
    """The runs of a recipe on one text.

    Attributes:
        corpus: the text.
        runs: their settings.
        folder: where their folders are.
    """

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
        recipe: the recipe.
        only: names of the runs; empty for all.
        out: folder of the results; None for one under `runs`.
        progress: where it is said.

    Raises:
        TextUnavailable: if no pair has one.
        ValueError: if the recipe asks for a page that is not there.
    """
    page = page_named(recipe.page, f"the recipe {recipe.name!r}")
    # A page on many texts gathers the folders of all, and of no built-in text.
    many = page.several_texts or len(recipe.pairs) > 1
    source = recipe.text.source
    if source == "embedded" and len(recipe.pairs) > 1:
        raise ValueError(
            "Expected one pair with the embedded corpus, which has one. Received: "
            f"{', '.join(recipe.pairs)}. Choose by --pair."
        )
    if many and source == "auto":
        source = "ted"
    work, missing = [], []
    for pair in recipe.pairs:
        try:
            corpus = find(source, pair)
        except TextUnavailable as error:
            if not recipe.pairs[1:]:
                raise
            missing.append(error)
            # The search for TED tells at length where it looked.
            reason = str(error).splitlines()[0]
            progress.say(f"{pair}: not run, its text is missing. {reason}")
            continue
        progress.say(
            f"Text: {corpus.name}, {len(corpus.train):,} / {len(corpus.dev):,} / "
            f"{len(corpus.test):,} pairs, from {corpus.origin}"
        )
        runs = recipe.runs(corpus.name == embedded.NAME, only, pair)
        folder = out or Path("runs") / recipe.name
        if many or out is None:
            folder /= _slug(corpus)
        work.append(CorpusRuns(corpus, runs, folder))
    if not work:
        raise missing[0]
    return work


def text_of_run(folder: RunFolder, source: str | None = None) -> Corpus:
    """Finds the text that a run was begun on.

    Args:
        folder: the run's folder.
        source: where the text is now; None for where the run found it.

    Raises:
        RunFolderError: if another text is there.
        TextUnavailable: if none is.
    """
    settings, manifest = folder.run().text, folder.manifest()
    corpus = find(source or settings.source, settings.pair)
    if corpus.digest() != manifest["text_sha256"]:
        raise RunFolderError(
            f"Expected the text of the run, {manifest['text']} with sha256 "
            f"{manifest['text_sha256'][:16]}. Received: {corpus.name} from "
            f"{corpus.origin}, with {corpus.digest()[:16]}. Say where it is by --text."
        )
    return corpus


def _slug(corpus: Corpus) -> str:
    """A folder name that tells the text: `ted-hrlr-pt_to_en`, `embedded-corpus`."""
    name = re.sub(r"\(.*", "", corpus.name).strip().lower()
    return re.sub(r"[^a-z0-9_]+", "-", name).strip("-")
