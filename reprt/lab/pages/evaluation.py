"""What `reprt evaluate` found, as a page."""

from collections.abc import Mapping
from typing import Any

from reprt.lab.pages.tables import markdown, plain


def evaluation_table(result: Mapping[str, Any]) -> str:
    """Returns what `reprt evaluate` found as a table."""
    search, seconds, scores = result["search"], result["seconds"], result["scores"]
    forced, prefix = result["teacher_forced"], result["prefix"]
    how = "greedy search"
    if search["beam_size"] > 1:
        how = (
            f"beam search, {search['beam_size']} hypotheses, length penalty "
            f"{search['length_penalty']}"
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
    for number, score in enumerate(scores):
        time = "" if number else f"{seconds['translation']:.1f}"
        name = f"{score['metric']}, {score['form']}"
        rows.append([f"{name}, {how}", f"{score['value']:.2f}", time])
    signatures = [
        f"- {score['metric']}, {score['form']}: `{score['signature']}`"
        for score in scores
    ]
    return "\n".join(
        [
            f"{result['run']} on the {result['split']} split of the "
            f"{plain(result['text'])}: {result['sentences']:,} sentences, "
            f"{forced['tokens']:,} tokens.",
            "",
            markdown(["measure", "value", "seconds"], rows),
            "",
            *signatures,
        ]
    )
