"""`unrolled vectors …`: ask, judge and convert word vectors, of a model folder or of any file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.app.options import Encoding, Json, Out
from unrolled.app.output import note, print_json, print_shown
from unrolled.app.progress import busy
from unrolled.errors import not_one_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unrolled.tasks.shared.word_vectors import Near, WordVectors

ABOUT = "Ask word vectors for neighbours and analogies; judge and convert them."
Vectors = Annotated[
    Path,
    typer.Argument(help="A folder of `train embed`, or a vector file.", show_default=False),
]
Top = Annotated[int, typer.Option(min=1, max=100_000, help="How many words to list.")]
Limit = Annotated[
    int | None, typer.Option(min=1, help="Read the first so many words alone: the most frequent.")
]
Inputs = Annotated[
    bool, typer.Option("--include-inputs", help="Let the words that are given be answers too.")
]
Seed = Annotated[int, typer.Option(min=0, help="Where chance begins.")]
Word = Annotated[str, typer.Argument(show_default=False)]
Method = Annotated[
    str, typer.Option(help="add (3CosAdd), raw (lengths kept) or multiply (3CosMul).")
]


def vectors_application() -> typer.Typer:
    """A command a question."""
    app = typer.Typer(name="vectors", help=ABOUT, no_args_is_help=True)
    app.command("neighbours")(neighbours)
    app.command("analogy")(analogy)
    app.command("odd-one-out")(odd_one_out)
    app.command("evaluate")(evaluate)
    app.command("map")(map_)
    app.command("debias")(debias)
    app.command("convert")(convert)
    app.command("examples")(examples)
    return app


def neighbours(
    vectors: Vectors,
    words: Annotated[list[str], typer.Argument(help="One word, or several for their mean.")],
    top: Top = 10,
    measure: Annotated[str, typer.Option(help="cosine or euclidean.")] = "cosine",
    include_inputs: Inputs = False,
    limit: Limit = None,
    encoding: Encoding = "utf-8",
    json: Json = False,
) -> None:
    """List the nearest words."""
    table = load(vectors, limit, encoding)
    text = " ".join(words)
    found = table.neighbours(text, top, measure=measure, include_inputs=include_inputs)
    show(found, {"words": words, "measure": measure}, json=json)


def analogy(
    vectors: Vectors,
    a: Word,
    b: Word,
    c: Word,
    top: Top = 5,
    method: Method = "add",
    include_inputs: Inputs = False,
    limit: Limit = None,
    encoding: Encoding = "utf-8",
    json: Json = False,
) -> None:
    """What is to C as B is to A: `analogy VECTORS man king woman`."""
    table = load(vectors, limit, encoding)
    found = table.analogy(a, b, c, top, method=method, include_inputs=include_inputs)
    show(found, {"a": a, "b": b, "c": c, "method": method}, json=json)


def odd_one_out(
    vectors: Vectors,
    words: Annotated[list[str], typer.Argument(help="Two words or more.", show_default=False)],
    limit: Limit = None,
    encoding: Encoding = "utf-8",
    json: Json = False,
) -> None:
    """Which word is least like the others: all of them, the oddest first."""
    show(load(vectors, limit, encoding).odd_one_out(words), {"words": words}, json=json)


def evaluate(
    vectors: Vectors,
    files: Annotated[list[Path], typer.Argument(help="Analogies, or pairs with their likeness.")],
    method: Method = "add",
    space: Annotated[
        str, typer.Option(help="original, pca-K (K dimensions) or t-sne (two).")
    ] = "original",
    seed: Seed = 1,
    limit: Limit = None,
    encoding: Encoding = "utf-8",
    json: Json = False,
) -> None:
    """Judge vectors by analogies (a b c d a line) and by pairs of words with a number."""
    from unrolled.tasks.embed.maps import projected
    from unrolled.tasks.embed.questions import Questions, judge

    table = load(vectors, limit, encoding)
    with busy(f"asking {vectors}"):
        table = projected(table, space, seed=seed)
        rows = [row for file in files for row in judge(table, file, method=method)]
    print_shown(Questions(rows), title=f"{vectors}: {len(table):,} words", out=None, json=json)


def map_(
    vectors: Vectors,
    words: Annotated[list[str] | None, typer.Argument(help="Words; none: the first.")] = None,
    top: Annotated[int, typer.Option(min=3, max=5000, help="How many of the first.")] = 200,
    method: Annotated[str, typer.Option(help="t-sne or pca.")] = "t-sne",
    seed: Seed = 1,
    limit: Limit = None,
    encoding: Encoding = "utf-8",
    out: Out = None,
    json: Json = False,
) -> None:
    """Draw words in the plane, and tell how many of their neighbours it keeps."""
    from unrolled.tasks.embed.maps import map_words

    table = load(vectors, limit, encoding)
    with busy(f"drawing {vectors}"):
        found = map_words(table, words or list(table.words[:top]), method=method, seed=seed)
    print_shown(found, title="", out=out, json=json)


def debias(
    vectors: Vectors,
    out: Annotated[Path, typer.Argument(help="The file to write.", show_default=False)],
    pairs: Annotated[Path, typer.Option(help="Two words a line, such as she he.")],
    keep: Annotated[Path | None, typer.Option(help="Words to leave as they are.")] = None,
    weat: Annotated[Path | None, typer.Option(help="Four lines of words: X, Y, A, B.")] = None,
    limit: Limit = None,
    encoding: Encoding = "utf-8",
    json: Json = False,
) -> None:
    """Take the direction in which pairs differ out of all other words; lengths become 1."""
    from unrolled.store.files import write_file
    from unrolled.tasks.embed.debias import debias_words
    from unrolled.text.vector_writer import WRITERS

    table = load(vectors, limit, encoding)
    with busy(f"debiasing {vectors}"):
        made, shown = debias_words(table, pairs, keep=keep, weat_file=weat)
        write_file(out, WRITERS["text"](made))
    print_shown(shown, title="", out=None, json=json)
    note(f"Written: {out}, {len(made):,} words of {made.width} numbers.")


def convert(
    vectors: Vectors,
    out: Annotated[Path, typer.Argument(help="The file to write.", show_default=False)],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="text (word2vec, fastText .vec), binary (word2vec), glove or fasttext (.bin).",
        ),
    ] = "text",
    limit: Limit = None,
    encoding: Encoding = "utf-8",
) -> None:
    """Write vectors as other tools read them."""
    from unrolled.store.files import write_file
    from unrolled.text.vector_writer import WRITERS

    if form not in WRITERS:
        raise not_one_of("--format", form, WRITERS)
    table = load(vectors, limit, encoding)
    with busy(f"writing {out}"):
        write_file(out, WRITERS[form](table))
    note(f"Written: {out}, {len(table):,} words of {table.width} numbers.")


def examples(
    text: Annotated[str, typer.Argument(help="A text file, or - for standard input.")],
    window: Annotated[int, typer.Option(min=1, max=100, help="Words on either side.")] = 2,
    negatives: Annotated[int, typer.Option(min=1, max=100, help="Drawn for every word.")] = 5,
    objective: Annotated[str, typer.Option(help="skip-gram or cbow.")] = "skip-gram",
    top: Annotated[int, typer.Option(min=1, max=1000, help="How many words of the text.")] = 20,
    seed: Seed = 1,
    out: Out = None,
    json: Json = False,
) -> None:
    """Show what the first words of a text are learned from: windows, and words drawn against them.

    Windows are laid and words drawn as `train embed` does it, but no frequent word is skipped.
    """
    from unrolled.tasks.embed.examples import Windows, examples_of

    windows = Windows(objective, window, negatives, seed)
    print_shown(examples_of(text, windows, most=top), title="", out=out, json=json)


def load(path: Path, limit: int | None, encoding: str) -> "WordVectors":
    """The vectors of a folder or a file."""
    from unrolled.tasks.shared.word_vectors import WordVectors

    with busy(f"reading {path}"):
        return WordVectors.load(path, limit=limit, encoding=encoding)


def show(found: "Sequence[Near]", asked: dict[str, Any], *, json: bool) -> None:
    """Words with their similarity, a line each."""
    from unrolled.evaluate.shown import columns, visible

    if json:
        print_json({**asked, "found": [near._asdict() for near in found]})
    elif found:
        print(columns([[visible(near.word), f"{near.similarity:.4f}"] for near in found]))
    else:
        note("There is no other word.")
