"""The paper's Table 1, with ours beside it."""

from reprt.data.corpora.ted import PAIRS
from reprt_lab import paper
from reprt_lab.pages.frame import (
    FORCED,
    PREFIX,
    Group,
    cells,
    corpus,
    departures,
    epochs,
    gap,
    group_by_settings,
    group_of_paper,
    groups_table,
    label,
    mean,
    parameters,
    scores_of,
    seeds,
)
from reprt_lab.pages.tables import markdown

COLUMNS = {
    "epochs": epochs,
    "training loss": mean("train_loss", 2),
    "training − paper": gap("train_loss", 2),
    "validation loss": mean("val_loss", 2),
    "validation − paper": gap("val_loss", 2),
    "seconds an epoch": mean("seconds_an_epoch", 0),
}
BEYOND = {
    "text": corpus,
    "model": label,
    "what departs from this package's defaults": departures,
    "seeds": seeds,
    "validation loss, teacher-forced": mean(FORCED, 3),
    "validation loss, prefix": mean(PREFIX, 3),
    **scores_of("table1"),
    "parameters": parameters,
    "target tokens a second": mean("tokens_per_second", 0),
    "seconds an epoch": mean("seconds_an_epoch", 1),
}


def page_values(texts, settings, out):
    groups: list[Group] = []
    for runs in texts:
        groups += group_by_settings(run for run in runs if run.finished)
    pairs = [*PAIRS, *(group.run.pair for group in groups)]
    rows: list[dict[str, str]] = []
    for pair in dict.fromkeys(pairs):
        for model, name in paper.LABELS.items():
            head = {
                "pair": pair,
                "model": name,
            }
            paper_group = group_of_paper(pair, model)
            if paper_group is not None:
                sizes = _sizes(PAIRS[pair].train, PAIRS[pair].dev)
                numbers = cells(paper_group, COLUMNS)
                rows.append(
                    {
                        **head,
                        "whose": "paper",
                        **sizes,
                        **numbers,
                    }
                )
            for group in groups:
                if (group.run.pair, group.run.model) == (pair, model):
                    rows.append(_row(head, group, paper_group))
    return {
        "table": markdown(rows, 3),
        "beyond": groups_table(groups, BEYOND),
    }


def _row(head, group: Group, paper_group: Group | None) -> dict[str, str]:
    """The row of our runs, compared with the paper's where the text is its own."""
    manifest = group.run.manifest
    label_cell = ", ".join(["ours", *group.run.departures])
    row = head | {"whose": label_cell}
    if manifest.official_text:
        return row | cells(group, COLUMNS, paper_group)
    row["whose"] += f", on {corpus(group)}: not comparable"
    pairs = manifest.sentence_pairs
    return row | _sizes(pairs["train"], pairs["dev"]) | cells(group, COLUMNS)


def _sizes(train, dev) -> dict[str, str]:
    return {
        "train": f"{train:,}",
        "dev": f"{dev:,}",
    }
