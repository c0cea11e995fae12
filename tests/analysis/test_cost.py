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
    function = tf.function(model.call)
    graph = function.get_concrete_function(ids, training=False).graph
    return sum(map(multiply_adds, graph.get_operations()))


def multiply_adds(operation):
    shapes = [tensor.shape for tensor in operation.inputs]
    if operation.type == "Einsum":
        equation = operation.get_attr("equation").decode()
        operands = equation.split("->")[0].split(",")
        sizes = {}
        for axes, shape in zip(operands, shapes):
            sizes.update(zip(axes, shape))
        return math.prod(sizes.values())
    if operation.type in ("MatMul", "BatchMatMulV2"):
        attribute = "transpose_a" if operation.type == "MatMul" else "adj_x"
        is_transposed = operation.get_attr(attribute)
        inner_size = shapes[0][-2 if is_transposed else -1]
        return math.prod(operation.outputs[0].shape) * inner_size
    assert "MatMul" not in operation.type and "Conv" not in operation.type
    return 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_counts_the_products_of_a_graph(variant):
    name, overrides = ALL.get(variant, (variant, {}))
    words = 11 if preset(name, **overrides).shared_embedding else 13
    model = models.build(name, 11, words, **SIZES, **overrides)
    assert model.multiply_adds(7, 5) == products(model, 7, 5)
    counts = model.multiply_adds(np.array([7, 0, 3]), np.array([5, 2, 0]))
    assert counts.tolist() == [
        model.multiply_adds(*lengths) for lengths in ((7, 5), (0, 2), (3, 0))
    ]


@pytest.fixture
def folder(tmp_path, tmp_path_factory, monkeypatch):
    """A copy of what the command made of a tiny recipe."""
    base = tmp_path_factory.getbasetemp()
    monkeypatch.setenv("REPRT_CACHE", str(tiny_run.cache(base)))
    return shutil.copytree(tiny_run.trained_experiment(base), tmp_path / "tiny")


def test_results_page_and_plan_tell_what_a_run_costs(folder, capsys):
    run = folder / "out" / "repe"
    translator = Translator.load(run)
    model = translator.model
    text = folder / "text" / "datasets" / "pt_to_en"
    lengths = []
    for name, side in (("source", "pt"), ("target", "en")):
        sentences = (text / f"{side}.train").read_text("utf-8").splitlines()
        rows = getattr(translator, f"{name}_tokenizer").encode(sentences)
        lengths.append([len(row) for row in rows])
    pairs = [(s, t - 1) for s, t in zip(*lengths, strict=True)]
    # No sentence is cut.
    assert max(map(max, pairs)) < 128 and len(pairs) == 33
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
    target_tokens = sum(row["train_tokens"] for row in log)
    assert target_tokens == expected["train_target_tokens"]

    tokens = expected["train_source_tokens"] + expected["train_target_tokens"]
    cells = [f"{expected[name]:,}" for name in list(expected)[:4]]
    cells.append(scientific(6 * expected["parameters_without_tables"] * tokens))
    cells.append(scientific(expected["train_flops"]))
    hours = f"{sum(row['train_seconds'] for row in log) / 3600:.3f}"
    page = re.sub(" +", " ", (folder / "out" / "report.md").read_text())
    assert " | ".join([*cells, hours]) in page
    arguments = [*tiny_run.arguments(folder), "--out", str(folder / "other")]
    assert main(["train", *arguments, "--plan"]) == 0
    assert " ".join(cells) in re.sub(" +", " ", capsys.readouterr().err)


# The blog's table; which of its numbers are what, docs/cost.md says.
STEPS, PAIRS_A_STEP, EPOCHS, EPOCH_TOKENS = 228_000, 3 * 128, 2.16, 3.1e9
# Tokens of both sides.
TOKENS_A_PAIR = EPOCHS * EPOCH_TOKENS / (STEPS * PAIRS_A_STEP)
# Of Vaswani et al.; a batch is counted in tokens of either side.
BASE_STEPS, BASE_BATCH = 100_000, 25_000


def cells_and_model(name, words, pairs):
    """Our cells of a preset's row, and the model."""
    model = models.build(name, words, words)
    parameters = parameters_without_tables(model)
    tokens = pairs * TOKENS_A_PAIR
    products_a_pair = model.multiply_adds(TOKENS_A_PAIR / 2, TOKENS_A_PAIR / 2)
    cells = [
        f"{parameters:,}",
        scientific(tokens),
        scientific(FLOPS * PASSES * parameters * tokens),
        scientific(FLOPS * PASSES * pairs * products_a_pair),
    ]
    return cells, model


def test_the_page_has_the_numbers_that_are_counted():
    page = (REPOSITORY / "docs" / "cost.md").read_text("utf-8")
    base_pairs = BASE_STEPS * 2 * BASE_BATCH / TOKENS_A_PAIR
    base, model = cells_and_model("transformer-base", 37_000, base_pairs)
    modern, _ = cells_and_model(
        "transformer-modern", 30_000, STEPS * PAIRS_A_STEP
    )
    decoder_pairs = 1.41 * EPOCH_TOKENS / TOKENS_A_PAIR
    decoder_only, _ = cells_and_model("decoder-only", 32_000, decoder_pairs)
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
        [
            "decoder-only",
            "blog",
            "76.28M",
            decoder_only[1],
            scientific(2e18),
            "–",
        ],
        ["", "ours, `decoder-only`", *decoder_only],
    ]
    for row in (head, *rows):
        assert re.sub(" +", " ", f"| {' | '.join(row)} |") in page, row
    for number in (f"{model.count_params():,}", f"{TOKENS_A_PAIR / 2:.1f}"):
        assert number in page, number


@pytest.mark.long
@pytest.mark.parametrize(
    "size, budget", [("tiny", "repe"), ("small", "baseline")]
)
def test_small_presets_have_the_papers_budgets(size, budget):
    def parameters(name):
        return parameters_without_tables(models.build(name, 9, 9))

    for name in (
        "transformer",
        "transformer-modern",
        "decoder-only",
        "recurrent",
    ):
        ratio = parameters(f"{name}-{size}") / parameters(budget)
        assert ratio == pytest.approx(1, abs=0.03), name
