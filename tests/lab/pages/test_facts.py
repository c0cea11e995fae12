"""Every number of prose is that of a frozen experiment."""

import functools
import json
import re

import facts
import pytest


@functools.cache
def current_facts():
    return facts.compute_facts()


@pytest.mark.parametrize("page", facts.PAGES, ids=lambda page: page.name)
def test_no_number_of_a_page_is_stale(page):
    text = page.read_text("utf-8")
    assert facts.renewed(text, current_facts(), current_facts()) == text


def test_the_file_of_facts_has_those_of_the_runs_and_pages_use_all():
    assert json.loads(facts.FACTS.read_text("utf-8")) == current_facts()
    names = set()
    for page in facts.PAGES:
        for comment in facts.COMMENT.findall(page.read_text("utf-8")):
            names.update(comment.split(","))
    assert names == current_facts().keys()


def test_tables_of_runs_have_kept_their_marks():
    marks = []
    for page in facts.PAGES:
        marks += re.findall(r"<!-- (\w+) -->\n\n\|", page.read_text("utf-8"))
    assert set(marks) == facts.ROWS.keys()


def test_a_number_is_renewed_and_a_sentence_may_be_another():
    old_facts, new_facts = {"gap": ["0.61", "1 ± 2"]}, {"gap": ["0.7", "3 ± 4"]}
    text = "- It is 10.61, 0.61 and 1\n  ± 2.<!--facts:gap-->\n- 0.61\n"
    expected = "- It is 10.61, 0.7 and 3 ± 4.<!--facts:gap-->\n- 0.61\n"
    assert facts.renewed(text, old_facts, new_facts) == expected
    assert facts.renewed(text, old_facts, old_facts) == text
    wrong_text = "1 ± 2, then 0.61<!--facts:gap-->"
    with pytest.raises(ValueError, match="Expected 1 ± 2, of the fact gap"):
        facts.renewed(wrong_text, old_facts, new_facts)
    with pytest.raises(ValueError, match="No fact is called 'gone'"):
        facts.renewed("0.61<!--facts:gone-->", old_facts, new_facts)
