import csv
import io
import re

import numpy as np
import pandas as pd
import pyarrow
import pytest
from pyarrow import parquet

from reprt.data.corpora import own
from reprt.data.corpora.find import find
from reprt.data.corpora.languages import column_names, pair_of
from reprt.data.corpora.tables import TABLES, read_table

PAIRS = {f"satz {number} .": f"sentence {number} ." for number in range(200)}
COLUMNS = "de", "en"


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


@pytest.fixture
def read(tmp_path):
    """Returns the pairs of a table with that content."""

    def read(ending, content, columns=COLUMNS, **options):
        path = tmp_path / f"table{ending}"
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)
        rows = read_table(path, columns, **options)
        return [(row.source, row.target) for row in rows]

    return read


def test_a_folder_of_parquet_files_is_a_table(tmp_path):
    folder = tmp_path / "pairs.parquet"
    folder.mkdir()
    write(folder, ".parquet")
    assert column_names(folder) == ["en", "de"]
    assert len(list(read_table(folder, COLUMNS))) == len(PAIRS)


@pytest.mark.parametrize("ending", ["", *TABLES])
def test_every_form_gives_the_same_splits(tmp_path, ending, capsys):
    paths = write(tmp_path, ending, {**PAIRS, "": "a line without a source"})
    corpus = own.load("de_to_en", paths, held_out=0.1)
    assert "Left out 1 of 201 pairs" in capsys.readouterr().err
    pairs = []
    for split in (corpus.train, corpus.dev, corpus.test):
        pairs += zip(split.source, split.target)
    assert dict(pairs) == PAIRS and len(pairs) == len(PAIRS)
    assert 8 < len(corpus.dev) < 32 and 8 < len(corpus.test) < 32
    assert not corpus.official and corpus.target_language == "en"
    assert corpus.origin == " and ".join(paths)
    if ending:  # a table has a name of its own
        expected = own.load("de_to_en", paths)
        assert find(paths[0], "de_to_en").train == expected.train


@pytest.mark.parametrize(
    "names, pair",
    [
        ("corpus.de corpus.en", "de_to_en"),
        ("a.de/train.de.gz b/train.en.gz", "de_to_en"),
        ("de.txt en.txt", "de_to_en"),
        ("de.train en.train", "de_to_en"),
        ("my_pt-BR.txt my-en.txt", "pt-BR_to_en"),
        ("x.de-en.zh-CN x.de-en.en", "zh-CN_to_en"),
        ("corpus.pt_br corpus.en", "pt_br_to_en"),
        ("corpus.en", "en_to_en"),
        ("corpus.txt", "und_to_und"),
    ],
)
def test_names_of_files_tell_the_languages(names, pair):
    assert pair_of(names.split()) == pair


@pytest.mark.parametrize("names", ["a.txt b.txt", "a.en b.en", "a.src a.tgt"])
def test_languages_that_names_do_not_tell_are_asked_for(names):
    with pytest.raises(
        ValueError, match=f"--pair .*{' and '.join(names.split())}"
    ):
        pair_of(names.split())


def test_files_stand_in_the_order_of_the_pair(tmp_path):
    source, target = write(tmp_path, "")
    expected = f"the order of de_to_en. Received: {target} and {source}. Swap"
    with pytest.raises(ValueError, match=expected):
        own.load("de_to_en", [target, source])
    with pytest.raises(ValueError, match=expected):
        own.load("de_to_en", [source, target], dev=[target, source])


def test_names_of_json_may_have_hyphens(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('\n{"pt-BR": "sim", "en": "yes"}\n')
    assert pair_of([str(path)]) == "pt-BR_to_en"


@pytest.mark.parametrize("ending", TABLES)
def test_columns_tell_the_languages(tmp_path, ending):
    paths = write(tmp_path, ending)
    # In the order of the table.
    assert pair_of(paths) == "en_to_de"
    assert pair_of(paths, ["de", "en"]) == "de_to_en"
    with pytest.raises(ValueError, match="text.. with German, English|--pair"):
        pair_of(paths, ["German", "English"])


def test_a_pair_stays_in_its_split_when_others_are_added(tmp_path):
    half = dict([*PAIRS.items()][::2])
    twins = {f" {source.upper()}": target for source, target in PAIRS.items()}
    paths = write(tmp_path, ".csv", PAIRS | twins)
    corpus = own.load("de_to_en", paths, held_out=0.1)
    dev = {sentence.lower().strip() for sentence in corpus.dev.source}
    # Case and spaces tell no pairs apart.
    assert dev.isdisjoint(corpus.train.source)
    paths = write(tmp_path, ".csv", half)
    small_corpus = own.load("de_to_en", paths, held_out=0.1)
    paths = write(tmp_path, ".csv")
    large_corpus = own.load("de_to_en", paths, held_out=0.1)
    for split in ("train", "dev", "test"):
        sources = {*getattr(large_corpus, split).source}
        assert {*getattr(small_corpus, split).source} == sources & {*half}


def test_files_of_splits_are_not_split(tmp_path):
    train = write(tmp_path, "")
    corpus = own.load("de_to_en", train, dev=train, columns=["x", "y"])
    assert len(corpus.dev) == len(PAIRS) == len(corpus.train) + len(corpus.test)


SENTENCES = {
    "plain": ["ein Haus", "zwei Häuser"],
    "breaks": ["ein\nHaus", "nur eins"],
    "tabs and commas": ["ein\tHaus", "eins, zwei; drei | vier"],
    "bare CR": ["ein\rHaus", "nur\teins"],
    "bare CR and commas": [
        "ein\rHaus",
        "eins, zwei\nund drei",
        "er sagte \tso",
    ],
    "quotes": ['er sagte "ja, ja"\tund\nging', '"ganz"', 'ein " allein'],
    "backslashes": [r"C:\neu", r"\alpha, x"],
    "spaces": [" vorn", "hinten "],
}


@pytest.mark.parametrize("sentences", SENTENCES.values(), ids=SENTENCES)
@pytest.mark.parametrize(
    "ending, delimiter", [(".tsv", "\t"), (".csv", ","), (".csv", ";")]
)
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_what_csv_writers_wrote_is_read(
    read, sentences, ending, delimiter, quoting, line_end
):
    rows = [COLUMNS, *zip(sentences, sentences)]
    options = {
        "delimiter": delimiter,
        "quoting": quoting,
        "lineterminator": line_end,
    }
    csv_file = io.StringIO(newline="")
    pandas_file = io.StringIO(newline="")
    csv.writer(csv_file, **options).writerows(rows)
    table = pd.DataFrame(rows[1:], columns=COLUMNS)
    options["sep"] = options.pop("delimiter")
    table.to_csv(pandas_file, index=False, **options)
    for file in (csv_file, pandas_file):
        assert read(ending, file.getvalue()) == rows[1:]
        assert read(ending, f"\ufeff{file.getvalue()}\n") == rows[1:]


QUOTED_PAIR = '"Hallo", sagte er.', '"Hello," he said.'
WRITERS = {
    # A text whose quotes are its own, as Tatoeba, OPUS and WMT have it.
    "plain .tsv": (
        ".tsv",
        f"de\ten\n{QUOTED_PAIR[0]}\t{QUOTED_PAIR[1]}\n",
        [QUOTED_PAIR],
    ),
    "plain .tsv, CR LF": (".tsv", 'de\ten\r\n"a" b\tc\r\n', [('"a" b', "c")]),
    "an open quote": (
        ".tsv",
        'de\ten\n"a\tb\nc\td\n',
        [('"a', "b"), ("c", "d")],
    ),
    "plain .tsv, bare CR": (".tsv", 'de\ten\n"a"\rb\tc\n', [('"a"\rb', "c")]),
    "Spark": (
        ".csv",
        'de,en\n"er: \\"ja\\"","a, b"\nC:\\neu,x\n',
        [('er: "ja"', "a, b"), (r"C:\neu", "x")],
    ),
    "MySQL": (
        ".csv",
        '"de","en"\n"er: \\"ja\\"","a\\\nb"\n"C:\\\\neu",\\N\n',
        [('er: "ja"', "a\nb"), (r"C:\neu", "")],
    ),
    "MySQL, .tsv": (".tsv", "de\ten\na\\\nb\tc\\\td\n", [("a\nb", "c\td")]),
    "escaped, not quoted": (".csv", "de,en\na\\, b,c\n", [("a, b", "c")]),
    "old Mac": (".csv", 'de,en\ra,b\r"c, d",e\r', [("a", "b"), ("c, d", "e")]),
    "CR CR LF": (".csv", 'de,en\r\r\n"a",b\r\r\n', [("a", "b")]),
    "spaces": (".csv", 'de, en\n"a", "b, c"\n', [("a", "b, c")]),
    "another delimiter": (".tsv", "de;en\na;b\n", [("a", "b")]),
    "NUL": (".csv", 'de,en\n"a\0",b\n', [("a\0", "b")]),
    "a long cell": (
        ".csv",
        f'de,en\n"{"a" * 200_000}",b\n',
        [("a" * 200_000, "b")],
    ),
    "blank lines": (".csv", "de,en\n\na,b\n \n,\n", [("a", "b")]),
    "a number": (".jsonl", '{"de": 1984, "en": "a"}\n', [("1984", "a")]),
    "null": (
        ".jsonl",
        '\ufeff{"de": "a", "en": null}\n{}\n',
        [("a", ""), ("", "")],
    ),
    "a pair": (
        ".jsonl",
        '{"de": "\\ud83d\\ude00", "en": "a"}\n',
        [("😀", "a")],
    ),
}


@pytest.mark.parametrize(
    "ending, content, pairs", WRITERS.values(), ids=WRITERS
)
def test_what_other_writers_wrote_is_read(read, ending, content, pairs):
    assert read(ending, content) == pairs


def parquet_of(*columns):
    file = io.BytesIO()
    names = ["de", "en", "de"][: len(columns)]
    parquet.write_table(pyarrow.table([*columns], names=names), file)
    return file.getvalue()


AMBIGUITY = "line 2, which may be .*text.quoting"
MISTAKES = {
    "too many cells": (
        ".csv",
        "de,en\na,b\na,b,c\n",
        "head, 2. Received: 3 in line 3",
    ),
    "too few cells": (
        ".tsv",
        "de\ten\na\tb\na\n",
        "head, 2. Received: 1 in line 3",
    ),
    "after breaks": (
        ".csv",
        'de,en\n"a\nb",c\nd\n',
        "head, 2. Received: 1 in line 4",
    ),
    "CR between rows": (
        ".csv",
        "de,en\na,b\rc,d\n",
        "head, 2. Received: 3 in line 2",
    ),
    "open": (
        ".csv",
        'de,en\na,b\nc,"d\n',
        "begins in line 3. Say .*text.quoting",
    ),
    "after a quote": (
        ".csv",
        'de,en\n"a" b,c\n',
        "begins in line 2. Say .*quoting",
    ),
    "quotes around": (".tsv", 'de\ten\n"a"\t"b"\n', AMBIGUITY),
    "doubled": (".tsv", 'de\ten\n"a ""b"""\tc\n', AMBIGUITY),
    "escaped": (".csv", 'de,en\na \\"b\\",c\n', AMBIGUITY),
    "NULL": (".csv", "de,en\na,\\N\n", AMBIGUITY),
    "PostgreSQL": (".tsv", "de\ten\na\\nb\tc\\td\n", AMBIGUITY),
    "over lines": (".csv", 'de,en\n"a,b\nc",d\n', AMBIGUITY),
    "twice": (
        ".csv",
        "de,en,de\na,b,c\n",
        "each once. .* in line 1, de 2 times",
    ),
    "twice, .tsv": (
        ".tsv",
        "de\ten\ten\na\tb\tc\n",
        "in line 1, en 2 times. Name",
    ),
    "no head": (
        ".tsv",
        "a\tb\n",
        "each once. Received: a, b in line 1, without de",
    ),
    "nothing": (".csv", "", "in line 1, without de"),
    "UTF-16": (".csv", "de,en\na,b\n".encode("utf-16"), "byte 0xff in line 1"),
    "Latin-1": (
        ".csv",
        "de,en\nü,b\n".encode("latin-1"),
        "byte 0xfc in line 2",
    ),
    "no object": (
        ".jsonl",
        '{"de": "a", "en": "b"}\n[1]\n',
        r"\[1\] in line 2",
    ),
    "a string": (
        ".jsonl",
        '\n"de"\n',
        "an object in each line .*'de' in line 2",
    ),
    "half an object": (
        ".jsonl",
        '\n{"de": "a", "en":\n',
        "as a table: line 2: ",
    ),
    "deep": (".jsonl", "[" * 200_000, "as a table: line 1: "),
    "half a pair": (
        ".jsonl",
        '{"de": "\\ud83d", "en": "b"}\n',
        "ud83d' in line 1",
    ),
    "twice, .jsonl": (
        ".jsonl",
        '{"de": "a", "en": "b", "de": 3}\n',
        "line 1: .*twice",
    ),
    "a list": (".jsonl", '{"de": ["a", "b"], "en": "c"}\n', "'b'. in line 1"),
    "bytes": (
        ".parquet",
        parquet_of([b"a"], ["b"]),
        "sentences .* b'a' in row 1",
    ),
    "twice, .parquet": (
        ".parquet",
        parquet_of(["a"], ["b"], ["c"]),
        "de 2 times",
    ),
    "no UTF-8, .parquet": (
        ".parquet",
        parquet_of(pyarrow.array([b"\xff"]).view("string"), ["b"]),
        "cannot be read as a table: .*0xff",
    ),
    "half a file": (
        ".parquet",
        parquet_of(["a"], ["b"])[:99],
        "read as a table: ",
    ),
}


@pytest.mark.parametrize(
    "ending, content, message", MISTAKES.values(), ids=MISTAKES
)
def test_what_is_not_clear_is_one_line_with_its_place(
    read, ending, content, message
):
    with pytest.raises(ValueError, match=message) as error:
        read(ending, content)
    assert f"table{ending}" in str(error.value) and "\n" not in str(error.value)


def test_quoting_says_how_cells_are_quoted(read, tmp_path):
    content = 'de\ten\n"a"\t"b ""\\\\"\n'
    for quoting, pair in {
        "none": ('"a"', '"b ""\\\\"'),
        "double": ("a", 'b "\\\\'),
        "backslash": ("a", 'b "\\'),
    }.items():
        assert read(".tsv", content, quoting=quoting) == [pair]
        path = str(tmp_path / "table.tsv")
        corpus = own.load("de_to_en", *[[path]] * 3, quoting=quoting)
        assert list(corpus.train.source) == [pair[0]]


def test_escapes_are_read_as_postgresql_and_mysql_wrote_them(read):
    content = 'de\ten\n"a\\nb\\t\\\\n\t\\N\n'
    assert read(".tsv", content, quoting="escapes") == [('"a\nb\t\\n', "")]
    with pytest.raises(ValueError, match="before 'x' in line 2. Say"):
        read(".tsv", "de\ten\na\\x\tb\n", quoting="escapes")


@pytest.mark.parametrize("seed", range(20))
def test_a_table_is_read_as_it_was_meant_or_not_at_all(read, seed):
    generator = np.random.default_rng(seed)
    signs = ["a", "b", '"', "\\", ",", "\t", "\n", "\r", " ", "'"]
    cells = ["".join(generator.choice(signs, 6)) for _ in range(8)]
    # Spaces at the ends of a line are no part of a sentence to any reader.
    rows = [
        (f"x{source}x", f"x{target}x")
        for source, target in zip(cells[::2], cells[1::2])
    ]
    dialects = [
        {"quoting": csv.QUOTE_MINIMAL},
        {"quoting": csv.QUOTE_ALL},
        {
            "quoting": csv.QUOTE_MINIMAL,
            "doublequote": False,
            "escapechar": "\\",
        },
        {"quoting": csv.QUOTE_ALL, "doublequote": False, "escapechar": "\\"},
    ]
    for dialect in dialects:
        for ending, delimiter in ((".tsv", "\t"), (".csv", ",")):
            file = io.StringIO(newline="")
            writer = csv.writer(file, delimiter=delimiter, **dialect)
            writer.writerows([COLUMNS, *rows])
            try:
                pairs = read(ending, file.getvalue())
            except ValueError as error:
                assert "text.quoting" in str(error)
                continue
            expected = [
                tuple(re.sub("\r+\n", "\n", side) for side in row)
                for row in rows
            ]
            assert pairs == expected


def test_columns_are_two_and_tables_are_one(tmp_path):
    jsonl = str(tmp_path / "b.jsonl")
    with pytest.raises(
        ValueError, match="table whose name .* Received: .*b.jsonl and"
    ):
        own.load("de_to_en", [jsonl] * 2)
    for columns in (["de"], ["de", "de"]):
        with pytest.raises(ValueError, match="two 'columns', .* Received: de"):
            own.load("de_to_en", [jsonl], columns=columns)


@pytest.mark.parametrize(
    "ending, pair, count, message",
    [
        (
            ".csv",
            "fr_to_en",
            9,
            "columns fr and en.* Received: en, de in .*without fr",
        ),
        (
            ".jsonl",
            "de_to_en",
            1,
            "1, none of which falls to .*by --dev and --test",
        ),
        (
            ".zip",
            "de_to_en",
            9,
            "two files, one sentence per line, or a table whose",
        ),
    ],
)
def test_a_mistake_is_told(tmp_path, ending, pair, count, message):
    paths = write(tmp_path, ending, dict([*PAIRS.items()][:count]))
    with pytest.raises(ValueError, match=message):
        own.load(pair, paths)
