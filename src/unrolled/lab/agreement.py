"""`unrolled lab agreement MODEL FILE`: minimal pairs, by any language model.

    the writer of the books is …        the writer of the books are …

A pair is right where the model finds the first likelier than the second, both read as a whole.
FILE holds a pair a line:

    good<TAB>bad                                two columns
    template<TAB>case<TAB>good<TAB>bad          four or more (Marvin & Linzen 2018)
    NAME.text with NAME.gold beside it          sentences, and for each the place of the verb, its
                                                right and its wrong form and the number of
                                                attractors (Linzen et al. 2016), or the longer rows
                                                of Gulordava et al. 2018
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unrolled.errors import ConfigError, DataError
from unrolled.evaluate.bootstrap import ratio
from unrolled.evaluate.shown import columns
from unrolled.tasks.shared.language_model import LanguageModel
from unrolled.text.corpus import read_lines

AT_ONCE = 512  # pairs scored together


class Pair(NamedTuple):
    """Two sentences, of which the first is right."""

    good: str
    bad: str
    template: str
    attractors: int | None


class Share(NamedTuple):
    """Right pairs among pairs, with a 95 % interval."""

    group: str
    pairs: int
    right: float
    low: float
    high: float


# ------------------------------------------------------------------ reading


def read_pairs(path: Path | str, *, encoding: str = "utf-8") -> Iterator[Pair]:
    """The pairs of a file in one of the three forms."""
    path = Path(path)
    if path.suffix == ".text":
        yield from _gold_pairs(path, encoding)
        return
    for number, line in enumerate(read_lines(path, encoding=encoding), 1):
        if not line.strip():
            continue
        parts = line.split("\t")
        if len(parts) == 2:
            yield Pair(parts[0], parts[1], "", None)
        elif len(parts) >= 4:
            yield Pair(parts[2], parts[-1], parts[0], None)
        else:
            raise DataError(
                path,
                f"the line has {len(parts)} columns, but a pair is good<TAB>bad, or "
                "template<TAB>case<TAB>good<TAB>bad.",
                line=number,
            )


def _gold_pairs(path: Path, encoding: str) -> Iterator[Pair]:
    gold = path.with_suffix(".gold")
    golds = read_lines(gold, encoding=encoding)
    for number, line in enumerate(read_lines(path, encoding=encoding), 1):
        row = next(golds, None)
        if row is None:
            problem = f"ends here, but {path.name} goes on. They must be of one length."
            raise DataError(gold, problem, line=number)
        yield _replaced(line, row.split("\t"), gold, number)
    if next(golds, None) is not None:
        raise DataError(gold, f"goes on, but {path.name} ends. They must be of one length.")


def _replaced(line: str, row: Sequence[str], gold: Path, number: int) -> Pair:
    """The sentence with the right and with the wrong form of its verb."""
    words = line.removesuffix("<eos>").split()
    try:
        if len(row) >= 8:
            place, right, wrong, template, attractors = int(row[3]), row[6], row[7], row[0], None
        else:
            place, right, wrong, template = int(row[0]), row[1], row[2], ""
            attractors = int(row[3])
        words[place] = right
        good = " ".join(words)
        words[place] = wrong
    except (ValueError, IndexError) as error:
        raise DataError(
            gold,
            "must hold the verb's place in its sentence, its right and its wrong form, and the "
            "number of attractors, with tabs between.",
            line=number,
        ) from error
    return Pair(good, " ".join(words), template, attractors)


# ------------------------------------------------------------------ judging


@dataclass(frozen=True)
class Agreement:
    """The share of right pairs over all, by template and by number of attractors."""

    shares: Sequence[Share]

    def text(self) -> str:
        """A line a group."""
        head = ["pairs", "number", "right", "95 % interval"]
        rows = [
            [s.group, f"{s.pairs:,}", f"{s.right:.1%}", f"{s.low:.1%} – {s.high:.1%}"]
            for s in self.shares
        ]
        return columns([head, *rows])

    def as_json(self) -> list[dict[str, Any]]:
        """An object a group."""
        return [share._asdict() for share in self.shares]

    def chart(self) -> Any:
        """A bar a group with its interval; half is chance."""
        from unrolled.charts import share_bars

        names, right, low, high = zip(
            *((s.group, s.right, s.low, s.high) for s in self.shares), strict=True
        )
        return share_bars(
            names, right, low, high, chance=0.5, x_title="right pairs", title="Minimal pairs"
        )


def judged(
    model: Any, pairs: Iterable[Pair], tell: Any = lambda _: None, *, known: bool = False
) -> Agreement:
    """Score both sentences of every pair; with `known` only of those whose forms the model knows.

    Between two forms that it does not know a model cannot choose, and a form it knows loses to one
    that it does not: “unknown” is a frequent word.
    """
    if not isinstance(model, LanguageModel):
        raise ConfigError(
            f"the model is of task {model.settings.task!r}, but pairs are judged by a language "
            "model: lm, window or ngram."
        )
    waiting = (pair for pair in pairs if not known or forms_known(model, pair))
    kept, right = list[Pair](), list[bool]()
    while block := list(islice(waiting, AT_ONCE)):
        good, bad = (
            [score.log_probability for score in model.score(texts)]
            for texts in ([pair.good for pair in block], [pair.bad for pair in block])
        )
        right += [a > b for a, b in zip(good, bad, strict=True)]
        kept += block
        tell(f"agreement: {len(kept):,} pairs")
    if not kept:
        lacks = "no pairs whose forms the model knows" if known else "no pairs"
        raise ConfigError(f"the file holds {lacks}.")
    return Agreement(list(_shares(kept, np.array(right, dtype=np.float64))))


def forms_known(model: LanguageModel, pair: Pair) -> bool:
    """Whether all tokens that only one of the sentences has are in the vocabulary."""
    good, bad = ({*model.encoder.split(text)} for text in (pair.good, pair.bad))
    return all(token in model.encoder.vocabulary for token in good ^ bad)


def _shares(pairs: Sequence[Pair], right: Any) -> Iterator[Share]:
    yield _share("all", right)
    templates = np.array([pair.template for pair in pairs])
    for template in dict.fromkeys(templates.tolist()):
        if template:
            yield _share(template, right[templates == template])
    attractors = np.array([-1 if pair.attractors is None else pair.attractors for pair in pairs])
    for number in sorted({*attractors.tolist()} - {-1}):
        yield _share(f"{number} attractors", right[attractors == number])


def _share(group: str, right: Any) -> Share:
    found = ratio(right, np.ones(len(right), dtype=np.int64))
    return Share(group, len(right), *found)
