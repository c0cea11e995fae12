"""What pages say in words holds in the runs; `docs/facts.py` has their numbers."""

import facts
import pytest
from facts import (
    CANDIDATES,
    EQUAL_SIZE,
    FIRST_RIVALS,
    FULL_SIZE,
    OURS,
    PAIRS,
    POSITIONS_TEXTS,
    RIVALS,
    SMALL_TEXTS,
    TIED,
    WITHOUT,
    ahead,
    best,
    by_model,
    contestant,
    leads,
    measured,
    wins,
)

from reprt.models.presets import preset
from reprt_lab.pages.controls import difference_and_p_value, holm
from reprt_lab.pages.frame import BLEU, LOSS, PREFIX


@pytest.mark.parametrize("text", list(facts.ABLATIONS)[:3])
def test_repe_as_published_loses_under_both_readings(text):
    groups = facts.groups(facts.ABLATIONS[text])
    for label in ("RePE as published", "RePE as published, padding counted"):
        gaps = groups[label, 128].differences(groups["baseline", 128], PREFIX)
        assert len(gaps) and (gaps > 0.4).all()


def test_the_losses_beside_the_papers_are_far_from_them():
    for group in facts.nearest_az().values():
        for loss in ("train_loss", "val_loss"):
            gap = group.mean(loss) - group.reference.mean(loss)
            assert abs(gap) > 10 * group.table[loss].std()


def test_az_to_en_hardly_tells_models_apart():
    for group in facts.groups("leak").values():
        assert group.run.log[-1]["step"] == 930
        assert group.run.settings.schedule.warmup_steps == 4000
        assert group.table[BLEU].max() < 2


def test_on_the_longer_text_models_have_two_seeds():
    groups = facts.groups(facts.ABLATIONS["longer text"])
    for label in (
        "baseline",
        "RePE, prefix statistics",
        "RePE without TokenNorm",
        "RePE as published",
        "RePE as published, padding counted",
    ):
        assert len(groups[label, 128].table) == 2


def test_the_nearest_readings_are_those_that_are_named():
    distances = facts.readings()

    def nearest(model):
        return min(
            (reading for reading in distances if reading[0] == model),
            key=distances.get,
        )

    assert nearest("baseline") == ("baseline", "schedule.dim = 64")
    assert nearest("repe") == (
        "repe",
        "model.attention_bias = False",
        f"model.dropout_places = {facts.PLACES}",
        "model.layer_norm_epsilon = 1e-06",
        "model.layer_norm_gains = False",
        facts.PADDED,
    )
    assert min(map(float, facts.largest_distances())) > 0.05


def test_the_papers_claims_are_those_of_its_table():
    pairs, times = facts.ten_epochs(), facts.papers_times()
    assert "pt_to_en" in pairs and len(pairs) == 7
    assert len(pairs & facts.lower_pairs()) == 6
    assert min(times, key=times.get) == "ru_to_en"
    assert max(times, key=times.get) == "ru_to_pt"


def test_the_page_of_texts_names_them_as_the_runs_do():
    page = (facts.REPOSITORY / "docs" / "texts.md").read_text("utf-8")
    for pair in PAIRS:
        hashes = {
            run.manifest.text_sha256 for run in measured("contest_2", pair)
        }
        assert len(hashes) == 1 and f"`{hashes.pop()}`" in page


def test_the_preset_is_the_model_of_the_contest():
    settings = preset("repe-causal")
    dropouts = dict.fromkeys(["dropout", "dropout_places"])
    for pair in PAIRS:
        model = contestant(OURS, pair).run.settings.model
        assert {*model.dropout_places} == {*settings.dropout_places}
        assert model.model_dump() | dropouts == settings.model_dump() | dropouts


@pytest.mark.parametrize("pair", PAIRS)
def test_the_best_rival_is_the_tied_baseline(pair):
    losses = {rival: contestant(rival, pair).mean(LOSS) for rival in RIVALS}
    assert min(losses, key=losses.get) == "tied baseline"
    sizes = [contestant(row, pair).mean("parameters") for row in EQUAL_SIZE]
    assert max(sizes) <= 1.02 * min(sizes)


@pytest.mark.parametrize("pair", PAIRS)
def test_causal_repe_wins_the_small_texts(pair):
    for row in CANDIDATES:
        lead = leads(pair, row)
        assert wins(lead) == (pair in SMALL_TEXTS)
        for differences in lead:
            assert len(differences) and (differences > 0).all()
    for rival in TIED:
        if contestant(rival, pair):
            assert wins(leads(pair, rival=rival)) == (pair in SMALL_TEXTS)


@pytest.mark.parametrize("pair", PAIRS)
def test_causal_repe_beats_the_full_size_models(pair):
    for row in CANDIDATES:
        for full_size in FULL_SIZE:
            assert wins(leads(pair, row, full_size))


def test_without_value_dropout_it_does_not_beat_a_dropout_of_one_tenth():
    for pair in SMALL_TEXTS:
        assert not wins(leads(pair, WITHOUT, "tied baseline, dropout 0.1"))


def test_the_chosen_dropouts_suit_no_rival_on_gl_to_en():
    groups = by_model("contest_1", "gl_to_en")
    for rival, name in zip(RIVALS, FIRST_RIVALS):
        loss = contestant(rival, "gl_to_en").mean(LOSS)
        assert loss > groups[name].mean(LOSS)


METHODS = {
    f"{method}-{value}"
    for method in facts.METHODS[3:]
    for value in ("tokens", "states")
}


@pytest.mark.parametrize("text", POSITIONS_TEXTS)
def test_no_position_method_wins_against_causal_repe(text):
    groups = by_model("positions", text)
    reference = groups["concat-tokens"]
    for group in groups.values():
        assert group is reference or not wins(ahead(group, reference))


def methods_behind(text, is_behind):
    """The methods that causal RePE leads on a text, by a test of its leads."""
    groups = by_model("positions", text)
    reference = groups.pop("concat-tokens")
    behind = set()
    for method, group in groups.items():
        if is_behind(ahead(reference, group)):
            behind.add(method)
    return behind


def interval_is_above_zero(lead):
    _, p_value = difference_and_p_value(lead, 3)
    return lead.mean() > 0 and p_value < 0.05


def test_causal_repe_leads_the_methods_that_are_named():
    behind_by_rule, behind_in_loss = [], []
    for text in POSITIONS_TEXTS[:3]:
        behind_by_rule.append(methods_behind(text, wins))
        behind_in_loss.append(
            methods_behind(text, lambda leads: interval_is_above_zero(leads[0]))
        )
    eight = METHODS - {"add-tokens", "relative-tokens"}
    eight |= {"rival", "concat-8"}
    assert set.intersection(*behind_by_rule) == eight
    in_loss = {"relative-tokens", "concat-32", "concat-16"}
    assert set.intersection(*behind_in_loss) == eight | in_loss
    for text in SMALL_TEXTS:
        reference = by_model("positions", text)["concat-tokens"]
        assert wins(ahead(reference, by_model("contest_2", text)["cut-1"]))


def test_the_narrower_positions_are_the_higher_the_loss():
    for text in POSITIONS_TEXTS[:3]:
        groups = by_model("positions", text)
        assert len(groups) == 18
        losses = [
            groups[f"concat-{width}"].mean(LOSS)
            for width in ("tokens", 32, 16, 8)
        ]
        assert losses == sorted(losses)


def test_tokens_as_values_raise_the_bleu_of_three_methods_on_az_to_en():
    gains = facts.values_gains("az_to_en")
    for method in ("concat", "rotary", "add"):
        assert 0.9 < gains[method][1] < 1.4
    methods = [method for method in facts.METHODS if gains[method][0] < 0]
    assert methods == ["untied", "relative", "alibi", "none"]


def test_positions_with_states_have_a_lower_loss_on_az_to_en_alone():
    for method in ("rotary", "untied"):
        for text in ("embedded", "gl_to_en"):
            groups = by_model("positions", text)
            lead = ahead(groups[f"{method}-states"], groups["concat-tokens"])
            assert all(part.mean() < 0 for part in lead)


def test_rotary_positions_with_tokens_have_a_lower_loss_on_one_text():
    for text in POSITIONS_TEXTS[:3]:
        groups = by_model("positions", text)
        loss, bleu = ahead(groups["rotary-tokens"], groups["concat-tokens"])
        assert interval_is_above_zero(loss) == (text == "gl_to_en")
        assert not interval_is_above_zero(bleu)


def test_the_longer_text_has_the_best_methods_elsewhere():
    ranks = {}
    for text in POSITIONS_TEXTS[:3]:
        groups = by_model("positions", text)
        order = sorted(groups, key=lambda model: groups[model].mean(LOSS))
        for rank, model in enumerate(order):
            ranks[model] = ranks.get(model, 0) + rank
    del ranks["concat-tokens"], ranks["rival"]
    longer_groups = by_model("positions", "pt_to_en")
    best_models = sorted(ranks, key=ranks.get)[:4]
    assert longer_groups.keys() == {"concat-tokens", "rival", *best_models}
    assert {len(group.table) for group in longer_groups.values()} == {2}
    assert not wins(
        ahead(longer_groups["concat-tokens"], longer_groups["rival"])
    )


def test_longer_sentences_than_in_training():
    middle_losses, last_losses = {}, {}
    for model, (_, middle, last) in facts.losses_by_length().items():
        middle_losses[model] = middle.prefix_loss_per_token
        last_losses[model] = last.prefix_loss_per_token
    assert min(middle_losses, key=middle_losses.get) == "rotary-tokens"
    for method in ("alibi", "relative"):
        for value in ("tokens", "states"):
            distance = (
                middle_losses[f"{method}-{value}"]
                - middle_losses["concat-tokens"]
            )
            assert abs(distance) < 0.08
    models = sorted(last_losses, key=last_losses.get)[:2]
    assert models == ["relative-states", "alibi-states"]


def test_rotary_and_untied_positions_take_the_same_time():
    steps = facts.positions_steps()
    for method, other_method in (
        ("rotary", "untied"),
        ("alibi", "relative"),
        ("add", "none"),
    ):
        assert steps[f"{method}-tokens"] == steps[f"{other_method}-tokens"]


def test_the_table_of_positions_has_every_model():
    page = facts.REPOSITORY / "docs" / "positions.md"
    text = page.read_text("utf-8")
    for label in best("positions", "az_to_en"):
        assert f"| {label} |" in text


def decided(model, other, pair="be_to_en"):
    """By how much a model is ahead in loss, by an interval without 0, or 0."""
    models = by_model("statistics", pair)
    losses, _ = ahead(models[model], models[other])
    _, p_value = difference_and_p_value(losses, 3)
    return losses.mean() if p_value < 0.05 else 0


def test_who_is_ahead_on_the_text_that_no_choice_had_seen():
    rivals = ("cut-1", "cut-2", "narrow-2", "modern-2", "rotary-states")
    for rival in rivals:
        assert decided("concat-tokens", rival) > 0
    for rival in ("untied-states", "rotary-tokens"):
        assert decided("concat-tokens", rival) == 0
    run = by_model("statistics", "be_to_en")["concat-tokens"].run
    assert run.log[-1]["step"] < 2400


def test_rotary_positions_with_tokens_have_a_lower_mean_loss_on_real_texts():
    for pair in ("az_to_en", "gl_to_en", "be_to_en", "pt_to_en"):
        group = by_model("statistics", pair)["rotary-tokens"]
        losses, _ = ahead(group, facts.candidate(pair))
        assert losses.mean() > 0
        assert float(facts.corrected_p_value("rotary-tokens", pair)) > 0.05


def test_rotary_positions_with_states_are_ahead_on_one_text_of_three():
    assert decided("rotary-states", "concat-tokens", "az_to_en") > 0
    for pair in ("gl_to_en", "be_to_en"):
        assert decided("concat-tokens", "rotary-states", pair) > 0


def test_on_the_longer_text_models_with_states_have_a_higher_bleu():
    models = by_model("statistics", "pt_to_en")
    for name in ("rotary-states", "untied-states"):
        losses, bleus = ahead(models[name], facts.candidate("pt_to_en"))
        assert difference_and_p_value(losses, 3)[1] > 0.05
        assert bleus.mean() > 0
        assert difference_and_p_value(bleus, 1)[1] < 0.05


def test_with_tied_outputs_rotary_positions_with_tokens_are_ahead():
    p_values = []
    for pair in ("az_to_en", "gl_to_en", "pt_to_en"):
        models = by_model("controls", pair)
        losses, _ = ahead(models["rotary-tokens"], models["tied"])
        assert losses.mean() > 0
        p_values.append(difference_and_p_value(losses, 3)[1])
    assert max(holm(p_values)) < 0.05


def test_dropout_on_every_output_decides_nothing_on_the_longer_text():
    models = by_model("controls", "pt_to_en")
    for name, other in (
        ("rotary-states-output", "rotary-states"),
        ("cut-output", "cut-1"),
        ("narrow-output", "narrow-1"),
        ("rotary-states-output", "values-1"),
    ):
        losses, _ = ahead(models[name], models[other])
        assert len(losses) == 2
        assert difference_and_p_value(losses, 3)[1] > 0.05


def test_at_the_rules_rate_rotary_positions_with_tokens_win_the_longer_text():
    group = by_model("statistics", "pt_to_en")["rotary-tokens"]
    lead = ahead(group, facts.candidate("pt_to_en"))
    assert len(lead[0]) == 2 and wins(lead)
    for differences in lead:
        assert difference_and_p_value(differences, 3)[1] > 0.05
