import pandas as pd
import pytest

from reprt.data.corpora import own
from reprt.data.search import find

PAIRS = {f"satz {number} .": f"sentence {number} ." for number in range(200)}


def write(folder, ending, pairs=PAIRS):
    """The paths of a text in one of the forms that `load` takes."""
    table = pd.DataFrame({"en": [*pairs.values()], "de": [*pairs]})
    path = folder / f"text{ending}"
    if not ending:
        for language in table:
            (folder / language).write_text("\n".join(table[language]) + "\n")
        return [str(folder / "de"), str(folder / "en")]
    if ending == ".jsonl":
        table.to_json(path, lines=True, orient="records")
    elif ending == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if ending == ".tsv" else ",")
    return [str(path)]


@pytest.mark.parametrize("ending", ["", *own.TABLES])
def test_every_form_gives_the_same_splits(tmp_path, ending):
    paths = write(tmp_path, ending, {**PAIRS, "": "a line without a source"})
    corpus = own.load("de_to_en", paths, held_out=0.1)
    splits = corpus.train, corpus.dev, corpus.test
    found = [pair for split in splits for pair in zip(split.source, split.target)]
    assert dict(found) == PAIRS and len(found) == len(PAIRS)
    assert 8 < len(corpus.dev) < 32 and 8 < len(corpus.test) < 32
    assert not corpus.official and corpus.target_language == "en"
    assert corpus.origin == " and ".join(paths)
    if ending:  # a table has a name of its own
        assert find(paths[0], "de_to_en").train == own.load("de_to_en", paths).train


def test_a_pair_stays_in_its_split_when_others_are_added(tmp_path):
    few = dict([*PAIRS.items()][::2])
    twins = {f" {source.upper()}": target for source, target in PAIRS.items()}
    both = own.load("de_to_en", write(tmp_path, ".csv", PAIRS | twins), held_out=0.1)
    there = [{one.lower().strip() for one in both.dev.source}, {*both.train.source}]
    assert there[0].isdisjoint(there[1])  # case and spaces tell no pairs apart
    before = own.load("de_to_en", write(tmp_path, ".csv", few), held_out=0.1)
    after = own.load("de_to_en", write(tmp_path, ".csv"), held_out=0.1)
    for split in ("train", "dev", "test"):
        there = {*getattr(after, split).source}
        assert {*getattr(before, split).source} == there & {*few}


def test_files_of_splits_are_not_split(tmp_path):
    train = write(tmp_path, "")
    corpus = own.load("de_to_en", train, dev=train, columns=["x", "y"])
    assert len(corpus.dev) == len(PAIRS) == len(corpus.train) + len(corpus.test)


def test_cells_are_told_from_the_head_and_numbers_are_words(tmp_path):
    tsv, jsonl = tmp_path / "a.tsv", tmp_path / "b.jsonl"
    tsv.write_text("de\ten\n" + "satz\tsentence\tCC-BY\n" * 99)
    with pytest.raises(ValueError, match="as many cells as its head, 2. Received more"):
        own.load("de_to_en", [str(tsv)])
    jsonl.write_text('{"de": 1984, "en": "a year"}\n' * 2 + '{"de": null, "en": "a"}\n')
    assert own.load("de_to_en", *[[str(jsonl)]] * 3).train.source == ["1984"] * 2
    with pytest.raises(ValueError, match="table whose name .* Received: .*b.jsonl and"):
        own.load("de_to_en", [str(jsonl)] * 2)
    for columns in (["de"], ["de", "de"]):
        with pytest.raises(ValueError, match="two 'columns', .* Received: de"):
            own.load("de_to_en", [str(jsonl)], columns=columns)
    jsonl.write_text('\ufeff{"de": ["ein", "Haus"], "en": "a house"}\n')
    with pytest.raises(ValueError, match="sentences in .*b.jsonl. Received: .'ein',"):
        own.load("de_to_en", [str(jsonl)])
    jsonl.write_text('\n{"de": "ein Haus", "en":\n')
    with pytest.raises(ValueError, match="b.jsonl cannot be read as a table: line 2: "):
        find(str(jsonl), "fr_to_en", columns=["de", "en"])


def test_signs_within_cells_stay_and_what_damages_pairs_is_told(tmp_path, capsys):
    tsv, csv = tmp_path / "a.TSV", tmp_path / "b.csv"
    tsv.write_bytes('\ufeffde\ten\r\n"ein"\rSatz\ta "b"\r\n'.encode())
    found = own.load("de_to_en", *[[str(tsv)]] * 3).train
    assert (found.source, found.target) == (['"ein"\rSatz'], ['a "b"'])
    tsv.write_text('de\ten\n"ein ""Satz"""\ta\n')
    with pytest.raises(ValueError, match="no quotes around cells. Received: .*ein"):
        own.load("de_to_en", [str(tsv)])
    csv.write_text('de,en\n"eins,one\nzwei"",two\ndrei",three\n')
    own.load("de_to_en", *[[str(csv)]] * 3)
    assert "1 cells go over several lines" in capsys.readouterr().err


@pytest.mark.parametrize(
    "ending, pair, count, message",
    [
        (".csv", "fr_to_en", 9, "columns fr and en. Received: en, de, without fr"),
        (".jsonl", "de_to_en", 1, "1, none of which falls to .*by --dev and --test"),
        (".zip", "de_to_en", 9, "two files, one sentence per line, or a table whose"),
    ],
)
def test_a_mistake_is_told(tmp_path, ending, pair, count, message):
    paths = write(tmp_path, ending, dict([*PAIRS.items()][:count]))
    with pytest.raises(ValueError, match=message):
        own.load(pair, paths)
