"""What a job has left to do, and what it costs, said before it begins."""

import functools
from collections.abc import Sequence

from tabulate import tabulate

from reprt.analysis.cost import Cost, training_cost
from reprt.data.batching import BatchPlan
from reprt.models.registry import make
from reprt.progress import Progress
from reprt_lab.folder import RunFolder
from reprt_lab.pages.cost import counts
from reprt_lab.texts import CorpusRuns

USUAL = 5e10  # operations a second of two cores, by the tables of the committed pages


def make_plan(texts: Sequence[CorpusRuns]) -> str:
    """Returns a table of runs: their state, and the cost of all their epochs."""
    rows, together, seconds = [], 0, 0.0
    for work in texts:
        text = work.encoded(Progress())

        @functools.cache  # trials differ by seeds, and cost the same
        def cost(model, epochs, text=text) -> Cost:
            sizes = len(text.source_tokenizer), len(text.target_tokenizer)
            return training_cost(make(model, *sizes), text.train, epochs)

        for run in work.runs:
            files, training = RunFolder(work.folder / run.name), run.training
            done, finished = len(files.log()), files.metrics() is not None
            plan = BatchPlan(text.train.lengths, **dict(run.batching))
            steps = training.steps or training.epochs * plan.steps
            another = files.holds_another(run, text.corpus)
            left = (
                0 if finished or another else max(0, steps - done * plan.steps)
            )
            together += left
            costs = cost(run.model, steps / plan.steps)
            seconds += left / steps * costs.train_flops / USUAL
            of = "" if training.steps else f" of {training.epochs}"
            state = f"{done}{of} epochs" if done else "to do"
            state = "finished" if finished else state
            if another:
                state = "a run with other settings"
            head = {"pair": work.corpus.pair, "run": run.name, "state": state}
            rows.append({**head, "steps left": f"{left:,}", **counts(costs)})
    table = tabulate(rows, "keys", "plain", disable_numparse=True)
    return (
        f"{table}\nTogether {together:,} steps: about {seconds / 60:,.1f} minutes of "
        f"training, at {USUAL:.0e} operations a second, as on two cores."
    )
