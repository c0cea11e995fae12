"""What a job has left to do, and what it costs, said before it begins."""

from collections.abc import Sequence

from reprt.analysis.cost import Cost, power, training_cost
from reprt.data.batch_plan import BatchPlan
from reprt.lab.folder import RunFolder
from reprt.lab.texts import CorpusRuns
from reprt.progress import Progress

HEAD = (
    "pair | run | state | steps left | parameters | without tables | source tokens | "
    "target tokens | FLOPs, 6·N·D | FLOPs, products"
).split(" | ")


def make_plan(texts: Sequence[CorpusRuns]) -> str:
    """Returns a table of runs: their state, and the cost of all their epochs.

    Args:
        texts: the runs on each text. Its vocabularies are learnt unless they are in
            the cache.
    """
    from reprt.models.registry import make

    progress, rows, together = Progress(), [HEAD], 0
    for work in texts:
        text = work.encoded(progress)
        sizes = len(text.source_tokenizer), len(text.target_tokenizer)
        costs: dict[tuple, Cost] = {}  # trials differ by seeds, and cost the same
        for run in work.runs:
            files, training = RunFolder(work.folder / run.name), run.training
            done, finished = len(files.log()), files.metrics() is not None
            plan = BatchPlan(text.train.lengths, **dict(run.batching))
            steps = training.steps or training.epochs * plan.steps
            left = 0 if finished else max(0, steps - done * plan.steps)
            together += left
            key = run.model, steps / plan.steps
            if key not in costs:
                model = make(run.model, *sizes)
                costs[key] = training_cost(model, text.train, steps / plan.steps)
            of = "" if training.steps else f" of {training.epochs}"
            begun = f"{done}{of} epochs" if done else "to do"
            state = "finished" if finished else begun
            row = work.corpus.pair, run.name, state, f"{left:,}", *_cells(costs[key])
            rows.append([*row])
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, f"Together {together:,} steps."])


def _cells(cost: Cost) -> list[str]:
    counted = (
        cost.parameters,
        cost.parameters_without_tables,
        cost.train_source_tokens,
        cost.train_target_tokens,
    )
    flops = power(cost.flops_by_parameters), power(cost.train_flops)
    return [*(f"{number:,}" for number in counted), *flops]
