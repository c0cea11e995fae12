"""What `reprt evaluate` found, as a page."""

from collections.abc import Mapping
from typing import Any

from reprt.lab.pages.escaping import code, in_markdown
from reprt.lab.pages.tables import markdown


def evaluation_table(result: Mapping[str, Any]) -> str:
    """Returns what `reprt evaluate` found as a table."""
    search, seconds = result["search"], result["seconds"]
    forced, prefix = result["teacher_forced"], result["prefix"]
    how = (
        "greedy search"
        if search["beam_size"] == 1
        else (
            f"beam search, {search['beam_size']} hypotheses, length penalty "
            f"{search['length_penalty']}"
        )
    )
    if search["dtype"] != "float32":
        how += f", {search['dtype']}"
    rows = [
        [
            "teacher-forced loss, nats per token",
            f"{forced['per_token']:.4f}",
            f"{seconds['teacher_forced']:.1f}",
        ],
        ["the same as Keras reports it", f"{forced['mean_of_batches']:.4f}", ""],
        [
            "prefix loss, nats per token: given only the tokens before",
            f"{prefix['per_token']:.4f}",
            f"{seconds['prefix']:.1f}",
        ],
        [
            "prefix − teacher-forced: what looking ahead is worth",
            f"{prefix['per_token'] - forced['per_token']:+.4f}",
            "",
        ],
    ]
    for number, score in enumerate(result["scores"]):
        time = f"{seconds['translation']:.1f}" if number == 0 else ""
        label = f"{score['metric']}, {score['form']}, {how}"
        rows.append([label, f"{score['value']:.2f}", time])
    signatures = [
        f"- {score['metric']}, {score['form']}: {code(score['signature'])}"
        for score in result["scores"]
    ]
    return "\n".join(
        [
            f"{result['run']} on the {result['split']} split of the "
            f"{in_markdown(result['text'])}: "
            f"{result['sentences']:,} sentences, {forced['tokens']:,} tokens.",
            "",
            *markdown(["measure", "value", "seconds"], "lrr", rows),
            "",
            *signatures,
        ]
    )
