"""Wikipedia text as the agreement sets are written: a sentence a line, small letters, words apart.

    python benchmarks/agreement_data.py enwiki_2013_excerpt.txt.xz OUT.txt [--words 6000000]

Articles are taken in their order until so many words stand; titles and headings are left out, and
so are sentences of fewer than 4 or more than 50 words. Every 200th sentence goes to OUT.dev.txt.
"""

import argparse
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from unrolled.text.corpus import read_lines

SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b(?:Mr|Dr|St|vs|No|Jr|Sr|Lt)\.)(?<!\bMrs\.)\s+"
    r"(?=[\"“(]?[A-Z])"
)
WORDS = re.compile(r"n't\b|'(?:s|re|ve|ll|d|m)\b|\w+(?:-\w+)*?(?=n't\b)|\w+(?:-\w+)*|``|''|--|\S")
FEWEST, MOST, EVERY = 4, 50, 200


def sentences(paragraph: str) -> list[str]:
    """Parted where a stop is followed by a capital."""
    return SENTENCE_END.split(paragraph)


def words(sentence: str) -> list[str]:
    """`` and '' for quotes, 's and n't apart, hyphens inside words."""
    text = re.sub(r"[“”\"](?=\w)", " `` ", sentence)
    text = re.sub(r"[“”\"]", " '' ", text).replace("’", "'").replace("–", "--")
    return WORDS.findall(text.lower())


def paragraphs(lines: Iterator[str]) -> Iterator[str]:
    """The lines of articles that are neither mark-up nor title nor heading."""
    after_mark = False
    for line in lines:
        mark = line.startswith(("<doc", "</doc"))
        if not mark and not after_mark and len(line.split()) > FEWEST:
            yield line
        after_mark = mark


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--words", type=int, default=6_000_000)
    options = parser.parse_args()
    parts = chain.from_iterable(map(sentences, paragraphs(read_lines(options.source))))
    total = 0
    with (
        options.out.open("w", encoding="utf-8") as train,
        options.out.with_suffix(".dev.txt").open("w", encoding="utf-8") as dev,
    ):
        for number, sentence in enumerate(map(words, parts)):
            if FEWEST <= len(sentence) <= MOST and sentence[-1] in (".", "?", "!", "''"):
                (train if number % EVERY else dev).write(" ".join(sentence) + "\n")
                total += len(sentence)
            if total >= options.words:
                break
    print(f"{total:,} words")


if __name__ == "__main__":
    main()
