"""Written dates are those of the locale data, mean one day each, and days of a split never mix."""

import sys
from collections import defaultdict
from datetime import date, timedelta

import numpy as np
import pytest

from unrolled.errors import ConfigError
from unrolled.text import dates
from unrolled.text.dates import LOCALES, VARIANTS, generate_dates, patterns, split_dates

pytestmark = pytest.mark.slow

babel_dates = pytest.importorskip("babel.dates")


def year(number):
    days = (date(number + 1, 1, 1) - date(number, 1, 1)).days
    return [date(number, 1, 1) + timedelta(days=n) for n in range(days)]


# ------------------------------------------------------------------ the patterns


@pytest.mark.parametrize("locale", LOCALES)
def test_every_pattern_is_written_as_babel_writes_it(locale):
    ordinals = np.random.default_rng(0).integers(dates.DAYS, size=40)
    days = [dates.FIRST + timedelta(days=int(n)) for n in ordinals]
    for pattern in patterns(locale):
        for day in [*days, dates.FIRST, dates.LAST, date(2000, 2, 29)]:
            assert pattern.write(day) == babel_dates.format_date(day, pattern.source, locale=locale)


@pytest.mark.parametrize("locale", LOCALES)
def test_the_full_and_the_long_form_of_every_locale_are_there(locale):
    day = date(2001, 3, 4)
    written = {pattern.write(day) for pattern in patterns(locale)}
    for form in ("full", "long"):
        assert babel_dates.format_date(day, form, locale=locale) in written


def test_well_known_forms():
    def of(locale):
        return {pattern.write(date(2001, 3, 4)) for pattern in patterns(locale)}

    assert {"Sunday, March 4, 2001", "Mar 4, 2001"} <= of("en_US")
    assert {"Sunday, 4 March 2001", "4 Mar 2001"} <= of("en_GB")
    assert {"Sonntag, 4. März 2001", "04.03.2001", "4.3.2001"} <= of("de")
    assert {"воскресенье, 4 марта 2001\u202fг.", "04.03.2001"} <= of("ru")
    assert {"2001年3月4日日曜日", "2001/03/04"} <= of("ja")


def test_no_string_means_two_days():
    meant = defaultdict(set)
    writers = [pattern.write for locale in LOCALES for pattern in patterns(locale)]
    for day in [*year(2000), *year(2011)]:  # a year has four digits: another cannot be mistaken
        for text in {write(day) for write in writers}:
            for variant in {*VARIANTS}:
                meant[variant(text)].add(day)
    assert not {text: days for text, days in meant.items() if len(days) > 1}
    assert len(meant) > 70_000


def test_nothing_is_written_as_day_month_or_month_day_with_slashes_or_dashes():
    for locale in LOCALES:
        texts = [pattern.write(date(2001, 3, 4)) for pattern in patterns(locale)]
        assert all("2001" in text for text in texts)
        assert not [text for text in texts if text[:2].strip("0") in ("3/", "4/", "3-", "4-")]
        assert not {"04/03/2001", "03/04/2001", "4/3/2001", "3/4/2001", "04-03-2001"} & {*texts}


def test_there_are_many_languages_and_scripts():
    assert len({locale.partition("_")[0] for locale in LOCALES}) >= 20
    text = "".join(source for source, _ in generate_dates(3000, seed=0))
    for letter in "aäжλ日월मسש":
        assert letter in text


# ------------------------------------------------------------------ drawing


def test_a_pair_is_a_written_day_and_its_iso_form():
    written = defaultdict(set)
    for source, iso in generate_dates(500, seed=3, locales=("de", "ja")):
        day = date.fromisoformat(iso)
        texts = {p.write(day) for locale in ("de", "ja") for p in patterns(locale)}
        assert source in {variant(text) for text in texts for variant in VARIANTS}
        written[iso].add(source)
    assert len(written) > 490


def test_days_are_uniform_and_every_locale_and_variant_is_drawn():
    pairs = generate_dates(20_000, seed=5)
    places = np.array([(date.fromisoformat(iso) - dates.FIRST).days for _, iso in pairs])
    counts = np.bincount(places * 10 // dates.DAYS, minlength=10)
    assert np.abs(counts - 2000).max() < 5 * np.sqrt(20_000 * 0.1 * 0.9)
    sources = {source for source, _ in pairs}
    assert any("," in text for text in sources)
    assert any("november" in text for text in sources)
    assert any("November" in text for text in sources)


def test_the_same_seed_gives_the_same_pairs():
    assert generate_dates(100, seed=1) == generate_dates(100, seed=1)
    assert generate_dates(100, seed=1) != generate_dates(100, seed=2)
    assert generate_dates(0, seed=1) == []
    assert split_dates(50, 20, 10, seed=1) == split_dates(50, 20, 10, seed=1)


@pytest.mark.parametrize("counts", [(10_000, 1000, 1000), (10, 10_000, 10), (1, 1, 1), (5, 0, 0)])
def test_no_day_is_in_two_parts_of_a_split(counts):
    parts = split_dates(*counts, seed=4)
    assert tuple(len(part) for part in parts) == counts
    days = [{iso for _, iso in part} for part in parts]
    assert len(days[0] | days[1] | days[2]) == sum(map(len, days))


def test_a_large_split_uses_every_day_of_each_part():
    train, dev, test = split_dates(300_000, 30_000, 30_000, seed=0, locales=("ja",))
    days = [len({iso for _, iso in part}) for part in (train, dev, test)]
    assert dates.DAYS * 0.985 < sum(days) <= dates.DAYS
    assert days[0] == pytest.approx(10 * days[1], rel=0.02)


# ------------------------------------------------------------------ what is refused


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ConfigError, match="count is -1, but must be 0 or more"):
        generate_dates(-1, seed=0)
    with pytest.raises(ConfigError, match="count_dev is -1, but must be 0 or more"):
        split_dates(1, -1, 1, seed=0)
    with pytest.raises(ConfigError, match=r"locale is 'en_UK', but must be one of .*'en_US'\?"):
        generate_dates(1, seed=0, locales=("en_UK",))
    with pytest.raises(ConfigError, match="locales is empty, but must name some of en_US, en_GB"):
        generate_dates(1, seed=0, locales=())


def test_without_babel_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "babel", None)
    dates._patterns.cache_clear()
    with pytest.raises(ConfigError, match=r"Babel, which is not installed.*'unrolled\[demo\]'"):
        generate_dates(1, seed=0)
