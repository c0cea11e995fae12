"""Learns candidates from the training text of a run, and keeps them in its folder."""

from pathlib import Path

from reprt.data.tokenizers.base import evenly
from reprt.jobs.corpus_runs import text_of_run
from reprt.progress import Progress
from reprt.runs.run_folder import RunFolder


def learn_candidates(path: Path, source: str | None = None) -> Path:
    """Writes `candidates.json` into a run's folder.

    Args:
        path: the run's folder.
        source: where its text is now; None for where the run found it.

    Returns:
        The path of the file.

    Raises:
        RunFolderError: if the run has no model, or the text is not the run's.
    """
    from reprt.decoding.candidates import MOST_PAIRS, PAIRS_AT_A_TIME, Candidates
    from reprt.decoding.translator import Translator

    folder, progress = RunFolder(path), Progress()
    translator = Translator.load(path)
    source_side, target_side = translator.source_tokenizer, translator.target_tokenizer
    train = text_of_run(folder, source).train
    chosen = list(evenly(range(len(train)), MOST_PAIRS))

    def pairs():
        for start in range(0, len(chosen), PAIRS_AT_A_TIME):
            few = chosen[start : start + PAIRS_AT_A_TIME]
            yield from zip(
                source_side.encode([train.source[index] for index in few]),
                target_side.encode([train.target[index] for index in few]),
                strict=True,
            )
            progress.show(f"counted {start + len(few):,}/{len(chosen):,} pairs")

    found = Candidates.learn(pairs(), len(source_side), len(target_side))
    return found.write(path)
