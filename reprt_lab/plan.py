"""What a job has left to do, and what it costs, said before it begins."""

from collections.abc import Sequence
from typing import Any

from tabulate import tabulate

from reprt.analysis.cost import Cost, training_cost
from reprt.data.batching import BatchPlan
from reprt.models.registry import make
from reprt.optimizers import make_optimizer
from reprt.progress import Progress
from reprt.training.checkpoint import newest_step
from reprt_lab.pages.cost import counts
from reprt_lab.work import CorpusRuns

# Operations a second of one core, by the latest of the committed runs.
SPEED = 1e11


def make_plan(work: Sequence[CorpusRuns]) -> str:
    """Returns a table of runs: their state, and the cost of all their epochs."""
    rows = []
    total_steps = 0
    seconds = 0.0
    for part in work:
        text = part.encode(Progress())
        sizes = len(text.source_tokenizer), len(text.target_tokenizer)
        # Trials differ by seeds, and cost the same.
        costs: dict[Any, Cost] = {}
        for run, folder in zip(part.runs, part.folders):
            training = run.training
            batches = BatchPlan(
                text.train.lengths, **run.batching_of_update
            ).steps
            steps = training.steps or training.epochs * batches
            # A schedule that does not fit is an error here, before the training.
            make_optimizer(run.optimizer, run.identity.schedule, steps)
            epochs = steps / batches
            steps_done = newest_step(folder.checkpoints)
            steps_left = max(0, steps - steps_done)
            if folder.holds_another(run, text.corpus):
                state, steps_left = "a run with other settings", 0
            elif folder.is_finished(run):
                state, steps_left = "finished", 0
            elif steps_done:
                state = f"at step {steps_done:,} of {steps:,}"
            else:
                state = "to do"
            key = run.model, epochs
            if key not in costs:
                model = make(run.model, *sizes)
                costs[key] = training_cost(model, text.train, epochs)
            total_steps += steps_left
            seconds += steps_left / steps * costs[key].train_flops / SPEED
            row = {"pair": part.corpus.pair, "run": run.name, "state": state}
            row["steps left"] = f"{steps_left:,}"
            rows.append(row | counts(costs[key]))
    table = tabulate(rows, "keys", "plain", disable_numparse=True)
    return (
        f"{table}\nTogether {total_steps:,} steps: about {seconds / 60:,.1f} minutes "
        f"of training, at {SPEED:.0e} operations a second, as on one core."
    )
