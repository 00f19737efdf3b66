import pytest

from unrolled.config.data import TaggedWords
from unrolled.errors import ConfigError, DataError
from unrolled.text.conll import check_scheme, read_tagged, token_sentences, write_columns

CONLLU = """\
# newdoc id = 1
# text = Don't go .
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\tMood=Imp\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
2.1\tyou\tyou\tPRON\tPRP\t_\t_\t_\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_

# text = New York
1\tNew York\tNew York\tPROPN\tNNP\tNumber=Sing\t0\troot\t_\t_

"""
COLUMNS = """\
-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O


# NN I-NP O
"""


def read(text: str, **options: str):
    return read_tagged(text.split("\n"), source="in.txt", **options)


def pairs(sentences) -> list[list[tuple[str, str]]]:
    return [list(zip(s.words, s.tags, strict=True)) for s in sentences]


def test_conllu_without_multiword_tokens_and_empty_nodes():
    sentences = read(CONLLU)
    assert pairs(sentences) == [
        [("Do", "AUX"), ("n't", "PART"), ("go", "VERB")],
        [("New York", "PROPN")],
    ]
    assert [sentence.lines for sentence in sentences] == [[4, 5, 7], [10]]


@pytest.mark.parametrize(
    ("column", "tags"), [("xpos", ["VB", "RB", "VB"]), ("feats", ["Mood=Imp", "_", "_"])]
)
def test_other_columns_of_conllu(column, tags):
    assert read(CONLLU, column=column)[0].tags == tags


def test_columns_with_first_word_and_last_tag():
    sentences = read(COLUMNS)
    assert pairs(sentences) == [[("EU", "I-ORG"), ("rejects", "O")], [("#", "O")]]
    assert sentences[1].lines == [7]


def test_tabs_let_words_and_tags_have_spaces():
    assert pairs(read("New York\tgeo political\nis\tO\n")) == [
        [("New York", "geo political"), ("is", "O")]
    ]


def test_windows_line_ends_and_no_last_line_end():
    assert pairs(read("a X\nb Y")) == [[("a", "X"), ("b", "Y")]]


def test_a_sentence_of_ten_thousand_words():
    sentences = read("".join(f"w{i} T{i % 3}\n" for i in range(10_000)))
    assert (len(sentences), len(sentences[0].words)) == (1, 10_000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a NN O\nb O\n",
            r"in\.txt, line 2: 'b O' has 2 columns, but must have 3 columns with white space",
        ),
        ("a\n", r"in\.txt, line 1: 'a' has 1 column, but must have 2 columns"),
        ("a\tX\nb\tgeo\tpol\n", r"in\.txt, line 2: .* has 3 columns, .* 2 columns with tabs"),
        ("a big label\nb X\n", r"line 2: .*Words or tags with spaces in them need tabs"),
        ("a\tX\nb\t \n", r"in\.txt, line 2: .* has an empty word or tag"),
        ("", r"in\.txt: holds no tagged sentence"),
        ("\n \n\n", r"in\.txt: holds no tagged sentence"),
        ("-DOCSTART- O\n", r"in\.txt: holds no tagged sentence"),
        (
            CONLLU.replace("3\tgo\tgo\t", "3\tgo\t"),
            r"in\.txt, line 7: has 9 columns, but a line of CoNLL-U has 10 with tabs",
        ),
        (
            CONLLU.replace("3\tgo\t", "4\tgo\t"),
            r"in\.txt, line 7: has the id '4', but 3 is the next one.*A blank line",
        ),
        (
            CONLLU.replace("AUX", "_")
            .replace("PART", "_")
            .replace("VERB", "_")
            .replace("PROPN", "_"),
            r"in\.txt: has _ in column upos of every word.* one of upos, xpos, feats",
        ),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(text, message):
    with pytest.raises(DataError, match=message):
        read(text)


def test_a_name_that_ends_in_conllu_means_it():
    with pytest.raises(DataError, match="line 1: has 2 columns, but a line of CoNLL-U has 10"):
        read_tagged(["a\tX"], source="train.conllu.xz")


@pytest.mark.parametrize(
    ("text", "scheme", "message"),
    [
        ("a O\nb I-X\n", "iob2", r"in\.txt, line 2: I-X after O breaks the scheme IOB2"),
        ("a I-X\n", "iob2", r"line 1: I-X after the beginning of the sentence breaks"),
        (
            "a O\n\nb B-X\n\n",
            "iobes",
            r"line 3: the end of the sentence after B-X breaks the scheme IOBES.*tokens\.scheme",
        ),
    ],
)
def test_broken_spans_are_named_with_file_and_line(text, scheme, message):
    with pytest.raises(DataError, match=message):
        check_scheme(read(text), scheme, source="in.txt")


def test_words_one_a_line_as_they_come():
    lines = iter(["The", "rat NN x", "", "", "New York\tX", "ate"])
    sentences = token_sentences(lines)
    assert next(sentences)[0] == ["The", "rat"]
    assert next(lines) == ""  # no line is read ahead of need
    assert [words for words, _ in sentences] == [["New York", "ate"]]


def test_words_of_conllu_are_its_words():
    found = [words for words, _ in token_sentences(CONLLU.split("\n"))]
    assert found == [["Do", "n't", "go"], ["New York"]]


def test_what_is_written_can_be_read():
    sentences = read(CONLLU)
    text = "".join(write_columns(sentence.words, sentence.tags) for sentence in sentences)
    assert text == "Do\tAUX\nn't\tPART\ngo\tVERB\n\nNew York\tPROPN\n\n"
    assert pairs(read(text)) == pairs(sentences)


def test_a_share_of_sentences_may_break_a_scheme():
    sentences = read("a B-X\n\nb I-X\n\nc B-X\n\nd O\n")
    assert check_scheme(sentences, "iob2", source="in.txt", most=0.25) == 1
    with pytest.raises(DataError, match=r"in\.txt, line 3: I-X after the beginning"):
        check_scheme(sentences, "iob2", source="in.txt", most=0.2)


# ------------------------------------------------------------------ columns that are named or found

INDEXED = "1 The DT x\n2 rat NN y\n\n1 It PRP z\n"


def test_a_column_that_counts_the_words_is_noticed():
    first, second = read(INDEXED)
    assert (first.words, first.tags) == (["The", "rat"], ["x", "y"])
    assert (second.words, second.tags) == (["It"], ["z"])
    numbers = read("1 CD\n2 CD\n\n7 CD\n")  # the words themselves
    assert numbers[0].words == ["1", "2"]


def test_columns_are_named_by_their_numbers_and_those_of_conllu_by_their_names():
    first, _ = read(INDEXED, data=TaggedWords(word_column=2, tag_column="3"))
    assert (first.words, first.tags) == (["The", "rat"], ["DT", "NN"])
    first, _ = read(CONLLU, data=TaggedWords(word_column="lemma", tag_column="deprel"))
    assert len(first.tags) == 3
    with pytest.raises(ConfigError, match=r"data\.tag_column is '9', but must be a number from 1"):
        read(INDEXED, data=TaggedWords(tag_column=9))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\tgo\tgo\t\t_\t_\t0\troot\t_\t_\n", "line 1: .* has an empty word or tag"),
        ("1\t\tgo\tX\t_\t_\t0\troot\t_\t_\n", "line 1: .* has an empty word or tag"),
        ("1 go go X _ _ 0 root _ _\n", "line 1: has 1 column, .* Here spaces stand for tabs"),
        ("# text = go\n1 go X\n", "line 2: has 1 column, but a line of CoNLL-U has 10"),
        ("# x\n1-2\tgo\n1\tgo\tX\n", "line 2: has 2 columns, but a line of CoNLL-U has 10"),
    ],
)
def test_broken_conllu_is_refused_by_train_and_predict_alike(text, message):
    with pytest.raises(DataError, match=message):
        read(text)
    if "empty word or tag" not in message or "\t\tgo" in text:
        with pytest.raises(DataError, match=message):
            list(token_sentences(text.split("\n"), source="in.txt"))
