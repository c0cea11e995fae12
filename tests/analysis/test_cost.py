import json
import math
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
import tiny_run
from tiny import TINY
from tiny_run import REPOSITORY
from variants import ALL, FAMILY

from reprt import models
from reprt.analysis.cost import (
    FLOPS,
    PASSES,
    parameters_without_tables,
    scientific,
)
from reprt.decoding.translator import Translator
from reprt.models.presets import preset
from reprt_lab.command import main
from reprt_lab.folder import RunFolder

SIZES = {**TINY, "num_blocks": 2, "value_dim": 3}
VARIANTS = ("repe", "baseline", "decoder-only", *FAMILY)


def products(model, sources, targets):
    """The multiply-adds of all products in the graph of a pair without padding."""
    ids = [tf.TensorSpec((1, length), "int32") for length in (sources, targets)]
    graph = (
        tf.function(model.call).get_concrete_function(ids, training=False).graph
    )
    return sum(map(multiply_adds, graph.get_operations()))


def multiply_adds(operation):
    shapes = [tensor.shape for tensor in operation.inputs]
    if operation.type == "Einsum":
        labels = (
            operation.get_attr("equation").decode().split("->")[0].split(",")
        )
        sizes = {
            name: n for each in map(zip, labels, shapes) for name, n in each
        }
        return math.prod(sizes.values())
    if operation.type in ("MatMul", "BatchMatMulV2"):
        way = "transpose_a" if operation.type == "MatMul" else "adj_x"
        summed = shapes[0][-2 if operation.get_attr(way) else -1]
        return math.prod(operation.outputs[0].shape) * summed
    assert "MatMul" not in operation.type and "Conv" not in operation.type
    return 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_counts_the_products_of_a_graph(variant):
    name, overrides = ALL.get(variant, (variant, {}))
    words = 11 if preset(name, **overrides).shared_embedding else 13
    model = models.build(name, 11, words, **SIZES, **overrides)
    assert model.multiply_adds(7, 5) == products(model, 7, 5)
    each = model.multiply_adds(np.array([7, 0, 3]), np.array([5, 2, 0]))
    assert each.tolist() == [
        model.multiply_adds(*lengths) for lengths in ((7, 5), (0, 2), (3, 0))
    ]


@pytest.fixture
def finished(tmp_path, tmp_path_factory, monkeypatch):
    """A copy of what the command made of a tiny recipe."""
    base = tmp_path_factory.getbasetemp()
    monkeypatch.setenv("REPRT_CACHE", str(tiny_run.cache(base)))
    return shutil.copytree(tiny_run.trained(base), tmp_path / "tiny")


def test_results_page_and_plan_tell_what_a_run_costs(finished, capsys):
    run = finished / "out" / "repe"
    translator, lengths = Translator.load(run), []
    model, place = translator.model, finished / "text" / "datasets" / "pt_to_en"
    for name, side in (("source", "pt"), ("target", "en")):
        sentences = (place / f"{side}.train").read_text("utf-8").splitlines()
        rows = getattr(translator, f"{name}_tokenizer").encode(sentences)
        lengths.append([len(row) for row in rows])
    pairs = [(s, t - 1) for s, t in zip(*lengths, strict=True)]
    assert max(map(max, pairs)) < 128 and len(pairs) == 33  # none is cut
    # Tables of 8 columns, and an output layer of 16 with a bias.
    tables = (
        8 * model.source_vocab_size + (8 + 16 + 1) * model.target_vocab_size
    )
    expected = {
        "parameters": model.count_params(),
        "parameters_without_tables": model.count_params() - tables,
        "train_source_tokens": 2 * sum(s for s, _ in pairs),
        "train_target_tokens": 2 * sum(t for _, t in pairs),
        "train_flops": 2 * 6 * sum(model.multiply_adds(s, t) for s, t in pairs),
    }
    metrics = json.loads((run / "metrics.json").read_text())
    assert {name: metrics[name] for name in expected} == expected
    log = RunFolder(run).log()
    assert (
        sum(row["train_tokens"] for row in log)
        == expected["train_target_tokens"]
    )

    tokens = expected["train_source_tokens"] + expected["train_target_tokens"]
    cells = [f"{expected[name]:,}" for name in list(expected)[:4]]
    cells.append(scientific(6 * expected["parameters_without_tables"] * tokens))
    cells.append(scientific(expected["train_flops"]))
    hours = f"{sum(row['train_seconds'] for row in log) / 3600:.3f}"
    page = re.sub(" +", " ", (finished / "out" / "report.md").read_text())
    assert " | ".join([*cells, hours]) in page
    asked = [*tiny_run.arguments(finished), "--out", str(finished / "other")]
    assert main(["train", *asked, "--plan"]) == 0
    assert " ".join(cells) in re.sub(" +", " ", capsys.readouterr().err)


# The blog's table; which of its numbers are what, docs/cost.md says.
STEPS, PAIRS_A_STEP, EPOCHS, EPOCH_TOKENS = 228_000, 3 * 128, 2.16, 3.1e9
PAIR = EPOCHS * EPOCH_TOKENS / (STEPS * PAIRS_A_STEP)  # tokens, both sides
BASE_STEPS, BASE_BATCH = (
    100_000,
    25_000,
)  # Vaswani et al., tokens of either side


def of_family(name, words, pairs):
    """Our cells of a preset's row, and the model."""
    model = models.build(name, words, words)
    own, tokens = parameters_without_tables(model), pairs * PAIR
    each = model.multiply_adds(PAIR / 2, PAIR / 2)
    cells = [
        f"{own:,}",
        scientific(tokens),
        scientific(FLOPS * PASSES * own * tokens),
    ]
    return [*cells, scientific(FLOPS * PASSES * pairs * each)], model


def test_the_page_has_the_numbers_that_are_counted():
    page = (REPOSITORY / "docs" / "cost.md").read_text("utf-8")
    base, model = of_family(
        "transformer-base", 37_000, BASE_STEPS * 2 * BASE_BATCH / PAIR
    )
    modern, _ = of_family("transformer-modern", 30_000, STEPS * PAIRS_A_STEP)
    single, _ = of_family("decoder-only", 32_000, 1.41 * EPOCH_TOKENS / PAIR)
    head = ["model", "whose", "N", "D", "FLOPs, 6·N·D", "FLOPs, products"]
    rows = [
        ["Transformer base", "blog", "65M", "–", scientific(1.95e18), "–"],
        ["", "ours, `transformer-base`", *base],
        [
            "encoder-decoder",
            "blog",
            "60M",
            *map(scientific, (4.37e9, 1.57e18)),
            "–",
        ],
        ["", "ours, `transformer-modern`", *modern],
        ["decoder-only", "blog", "76.28M", single[1], scientific(2e18), "–"],
        ["", "ours, `decoder-only`", *single],
    ]
    for row in (head, *rows):
        assert re.sub(" +", " ", f"| {' | '.join(row)} |") in page, row
    for number in (f"{model.count_params():,}", f"{PAIR / 2:.1f}"):
        assert number in page, number


@pytest.mark.long
@pytest.mark.parametrize(
    "size, budget", [("tiny", "repe"), ("small", "baseline")]
)
def test_small_presets_have_the_papers_budgets(size, budget):
    def outside_tables(name):
        return parameters_without_tables(models.build(name, 9, 9))

    for name in (
        "transformer",
        "transformer-modern",
        "decoder-only",
        "recurrent",
    ):
        ratio = outside_tables(f"{name}-{size}") / outside_tables(budget)
        assert ratio == pytest.approx(1, abs=0.03), name
