"""Every format is written, and every refusal says why."""

import json
import re
import subprocess
import sys

import pytest

from unrolled.charts.base import SANS
from unrolled.charts.cells import ROW_WIDTH, surprise
from unrolled.charts.loss import loss_curve
from unrolled.charts.page import save, stack
from unrolled.errors import ConfigError, StorageError


@pytest.fixture(scope="module")
def page():
    curve = loss_curve([1, 2], [3, 2], baselines={"unigram": 2.5})
    return stack(curve, surprise(["zebra"], [1.5], title="Surprise of each word"))


def test_a_stack_holds_every_chart_with_its_own_colours(page):
    spec = page.to_dict()
    assert [part["title"] for part in spec["vconcat"]] == [
        "Loss while training",
        "Surprise of each word",
    ]
    assert spec["resolve"]["scale"]["color"] == "independent"
    assert spec["config"]["font"] == SANS


def test_stacking_leaves_the_charts_as_they_were():
    chart = loss_curve([1], [1])
    stack(chart)
    assert chart.to_dict()["config"]["font"] == SANS


def test_png_has_twice_the_size(page, tmp_path):
    save(page, tmp_path / "page.PNG")
    head = (tmp_path / "page.PNG").read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(head[16:20], "big") > 2 * ROW_WIDTH


def test_svg_holds_the_words(page, tmp_path):
    save(page, str(tmp_path / "page.svg"))
    svg = (tmp_path / "page.svg").read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    for words in ("Loss while training", "loss (nats per token)", "unigram 2.50", "zebra"):
        assert f">{words}</text>" in svg


def test_html_carries_its_scripts_and_asks_for_nothing(page, tmp_path):
    save(page, tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "zebra" in html
    assert len(html) > 500_000  # the scripts are inside
    assert not re.findall(r"""(?:@import|import\(|from) *["']https?:""", html)
    page_alone = re.sub(r"(<script[^>]*>).*?(</script>)", r"\1\2", html, flags=re.DOTALL)
    assert not re.findall(r"(?:src|href|url)\s*[=(]", page_alone)


def test_json_is_the_specification(page, tmp_path):
    save(page, tmp_path / "page.json")
    assert json.loads((tmp_path / "page.json").read_text(encoding="utf-8")) == page.to_dict()


def test_an_unknown_extension_is_refused_with_the_list(page, tmp_path):
    allowed = r"must be one of \.html, \.json, \.png, \.svg\."
    with pytest.raises(ConfigError, match=rf"the extension of page\.gif is '\.gif', but {allowed}"):
        save(page, tmp_path / "page.gif")
    with pytest.raises(ConfigError, match=rf"the extension of page is '', but {allowed}"):
        save(page, tmp_path / "page")


def test_a_folder_that_is_not_there_is_named(page, tmp_path):
    with pytest.raises(StorageError, match=r"absent/page\.json: cannot write: No such"):
        save(page, tmp_path / "absent" / "page.json")


def test_importing_charts_imports_no_altair_and_no_torch():
    code = (
        "import sys, unrolled.charts; sys.exit(any(m in sys.modules for m in ('altair', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
