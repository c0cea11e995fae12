"""Live runs put into the few files of a frozen experiment, with their pages."""

from pathlib import Path

from reprt.files import is_unfinished, read_text, write_text
from reprt.reports.files import NOTES
from reprt.reports.frozen import is_frozen, write_frozen
from reprt.reports.registry import PAGES, page_on
from reprt.reports.runs import SELECTION, own_runs, read_texts
from reprt.runs.records import RunFolderError
from reprt.runs.run_settings import INDIFFERENT, differing, flat


def freeze(folder: Path, out: Path | None = None) -> tuple[Path, list[str]]:
    """Writes a frozen experiment: its runs, the notes on them and their pages.

    The pages are those that the folder has, or else its report, or of several texts
    their families. Runs that have not finished are frozen as far as they are. Of
    translations, those of the embedded corpus alone are kept.

    Args:
        folder: a folder with run folders, or with a folder of them for each text.
        out: the folder of the experiment; None for FOLDER-frozen beside it.

    Returns:
        The path of the experiment, and the names of the runs that have not finished.

    Raises:
        RunFolderError: if there is no run, if `out` holds other files or runs, or more
            of a run.
    """
    whole = folder.resolve()
    out = out or whole.with_name(f"{whole.name}-frozen")
    texts = read_texts(folder)
    runs = [run for text in texts for run in text]
    if out.resolve() == whole and (folder / SELECTION).exists():
        raise RunFolderError(
            f"Expected another --out than {out}, whose {SELECTION} takes runs of other "
            "folders: they would be there twice."
        )
    others = out.exists() and not all(map(is_unfinished, out.iterdir()))
    if others and not is_frozen(out):
        raise RunFolderError(
            f"Expected {out} to be empty or a frozen experiment. Received a folder "
            "with other files. Choose another --out."
        )
    lost = [
        run.name
        for run in own_runs(out)
        if not any(_holds(other, run) for other in runs)
    ]
    if lost:
        raise RunFolderError(
            f"Expected {out} to hold none but the runs of {folder}. Received a frozen "
            f"experiment with {', '.join(lost)}, which {folder} does not have, or not "
            "finished. Choose another --out."
        )
    written = [page for page in PAGES if (folder / f"{page}.md").exists()]
    write_frozen(runs, out, written[0] if written else None)
    if (folder / NOTES).exists() and folder != out:
        write_text(out / NOTES, read_text(folder / NOTES))
    usual = page_on("families" if texts[1:] else "report", out)
    for page in [PAGES[each] for each in written] or [usual]:
        page.write(out)
    return out, [run.name for run in runs if run.metrics is None]


def _holds(run, frozen) -> bool:
    """Whether a run is the frozen one, and at least as far."""
    settings = flat(run.settings), flat(frozen.settings)
    same = not differing(*settings, INDIFFERENT)
    further = run.metrics is not None or frozen.metrics is None
    return same and run.text_hashes == frozen.text_hashes and further
