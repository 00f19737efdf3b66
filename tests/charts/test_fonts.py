import pytest

from unrolled.charts import fonts
from unrolled.charts.fonts import missing_scripts, script


@pytest.fixture
def without(monkeypatch):
    """A machine whose fonts lack some letters."""

    def lacking(*letters):
        fonts._is_drawn.cache_clear()
        none = {*letters, fonts.NOWHERE}
        monkeypatch.setattr(fonts, "_picture", lambda letter: "box" if letter in none else letter)

    yield lacking
    fonts._is_drawn.cache_clear()


def test_scripts_that_no_font_has_are_named_once(without):
    without("ก", "ข", "😀", "東")
    spec = {"data": [{"label": "ab ก é"}, {"label": ["ข😀", "東م"]}], "width": 3}
    assert missing_scripts(spec) == ["Thai", "emoji and other symbols", "CJK"]
    without()
    assert missing_scripts(spec) == []


def test_marks_and_what_has_no_look_are_not_missed(without):
    without("\u0301", "\u200d", "\ufe0f")
    assert missing_scripts(["e\u0301\u200d\ufe0f"]) == []


def test_a_script_is_called_as_unicode_calls_it():
    assert [*map(script, "مअ한Ж東")] == ["Arabic", "Devanagari", "Hangul", "Cyrillic", "CJK"]


def test_a_letter_that_every_font_has_is_drawn():
    assert missing_scripts(["é → ·"]) == []
