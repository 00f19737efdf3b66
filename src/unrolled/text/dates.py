"""Dates as people write them, with the day they mean: "Sonntag, 4. März 2001", "2001-03-04".

Patterns and names are those of the Unicode locale data (CLDR), by way of Babel. Kept is what means
one day only, whoever reads it: the year has four digits, and a month in figures stands in a date
that begins with its year or is parted by dots, which is day, month, year in every locale here
(02/03/2001 is March in London and February in New York).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import ConfigError, not_one_of

if TYPE_CHECKING:
    from babel import Locale

LOCALES = (
    *("en_US", "en_GB", "de", "nl", "sv", "da", "nb"),
    *("fr", "es", "it", "pt", "ro", "ca"),
    *("pl", "cs", "sk", "ru", "uk", "bg"),
    *("fi", "et", "hu", "tr", "el", "id", "vi"),
    *("ja", "zh", "ko", "hi", "ar", "he"),
)
FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)
DAYS = (LAST - FIRST).days + 1
FORMATS = ("full", "long", "medium", "short")
SKELETONS = ("yMMMMEEEEd", "yMMMMd", "yMMMEd", "yMMMd", "yMd")
FIELD = re.compile(r"%\((\w+)\)s")
READABLE = {"y", "M", "MM", "MMM", "MMMM", "d", "dd", "E", "EEE", "EEEE", "ccc", "cccc"}
PLAIN = str.maketrans({",": None, "،": None, "\u202f": " ", "\xa0": " "})  # as a keyboard has it
VARIANTS: tuple[Callable[[str], str], ...] = (
    str,
    str,  # twice as often as each of the others
    str.lower,
    lambda text: text.translate(PLAIN),
)

Pairs = list[tuple[str, str]]


class Pattern(NamedTuple):
    """A way to write a date, ready to be filled in."""

    source: str  # as the locale data has it: "d. MMMM y"
    template: str  # "%s. %s %s"
    parts: tuple[tuple[str, tuple[str, ...]], ...]  # kind of each field, and all it can say

    def write(self, day: date) -> str:
        """The day in this pattern."""
        place = {"y": day.year - FIRST.year, "M": day.month - 1, "d": day.day - 1}
        place["E"] = day.weekday()
        return self.template % tuple(words[place[kind]] for kind, words in self.parts)


def generate_dates(count: int, *, seed: int, locales: Sequence[str] = LOCALES) -> Pairs:
    """Pairs of a written date and its ISO form; days are uniform in 1900 to 2099."""
    _check_counts(count=count)
    random = np.random.default_rng(seed)
    return _written(random, random.integers(DAYS, size=count), locales)


def split_dates(
    count_train: int,
    count_dev: int,
    count_test: int,
    *,
    seed: int,
    locales: Sequence[str] = LOCALES,
) -> tuple[Pairs, Pairs, Pairs]:
    """Training, dev and test pairs; no day of one part occurs in another, however it is written.

    Each part has its share of all days and draws from it.
    """
    _check_counts(count_train=count_train, count_dev=count_dev, count_test=count_test)
    random = np.random.default_rng(seed)
    counts = np.array([count_train, count_dev, count_test])
    days = np.array_split(random.permutation(DAYS), _cuts(counts))
    train, dev, test = (
        _written(random, random.choice(part, size=count) if count else part[:0], locales)
        for part, count in zip(days, counts.tolist(), strict=True)
    )
    return train, dev, test


def patterns(locale: str) -> tuple[Pattern, ...]:
    """Every way to write a date in this locale that means one day only."""
    if locale not in LOCALES:
        raise not_one_of("locale", locale, LOCALES)
    return _patterns(locale)


# ------------------------------------------------------------------ drawing


def _written(random: np.random.Generator, days: NDArray[np.int64], locales: Sequence[str]) -> Pairs:
    if not locales:
        raise ConfigError(f"locales is empty, but must name some of {', '.join(LOCALES)}.")
    ways = [patterns(locale) for locale in locales]
    where = random.integers(len(ways), size=len(days)).tolist()
    how = random.random(len(days)).tolist()
    variants = random.integers(len(VARIANTS), size=len(days)).tolist()
    first, pairs = FIRST.toordinal(), []
    for place, locale, share, variant in zip(days.tolist(), where, how, variants, strict=True):
        day = date.fromordinal(first + place)
        pattern = ways[locale][int(share * len(ways[locale]))]
        pairs.append((VARIANTS[variant](pattern.write(day)), day.isoformat()))
    return pairs


def _cuts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the days are parted: in proportion, and no part that is used goes without a day."""
    sizes = np.maximum(counts * DAYS // max(int(counts.sum()), 1), counts > 0)
    sizes[sizes.argmax()] += DAYS - sizes.sum()
    return np.cumsum(sizes)[:2]


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < 0:
            raise ConfigError(f"{name} is {count}, but must be 0 or more.")


# ------------------------------------------------------------------ the locale data


@cache
def _patterns(locale: str) -> tuple[Pattern, ...]:
    known = _locale(locale)
    different = dict.fromkeys(_sources(known))  # in order
    return tuple(_compiled(source, known) for source in different if _means_one_day(source))


def _locale(name: str) -> "Locale":
    try:
        from babel import Locale
    except ImportError as error:
        raise ConfigError(
            "written dates need the package Babel, which is not installed. "
            "Install it: pip install 'unrolled[demo]'"
        ) from error
    return Locale.parse(name)


def _sources(locale: "Locale") -> Iterator[str]:
    for name in FORMATS:
        yield locale.date_formats[name].pattern
    for name in SKELETONS:
        if name in locale.datetime_skeletons:
            yield locale.datetime_skeletons[name].pattern


def _fields(source: str) -> tuple[str, list[str]]:
    """The template of a pattern, and its fields."""
    from babel.dates import parse_pattern

    named = str(parse_pattern(source).format)
    return FIELD.sub("%s", named), FIELD.findall(named)


def _means_one_day(source: str) -> bool:
    template, fields = _fields(source)
    if not {*fields} <= READABLE:
        return False
    in_figures = not any(field in ("MMM", "MMMM") for field in fields)
    parted_by_dots = re.fullmatch(r"%s\. ?%s\. ?%s\.?", template) is not None
    return not in_figures or fields[0] == "y" or parted_by_dots


def _compiled(source: str, locale: "Locale") -> Pattern:
    template, fields = _fields(source)
    parts = tuple((_kind(field), _words(field, locale)) for field in fields)
    return Pattern(source, template, parts)


def _kind(field: str) -> str:
    return "E" if field[0] == "c" else field[0]


def _words(field: str, locale: "Locale") -> tuple[str, ...]:
    """All that a field can say, in order."""
    from babel.dates import format_date

    days = {
        "y": [date(year, 1, 1) for year in range(FIRST.year, LAST.year + 1)],
        "M": [date(2001, month, 1) for month in range(1, 13)],
        "d": [date(2001, 1, day) for day in range(1, 32)],
        "E": [date(2001, 1, day) for day in range(1, 8)],  # the first is a Monday
    }
    return tuple(format_date(day, field, locale=locale) for day in days[_kind(field)])
