"""Texts that come with a model are drawn in a page or picture; none of them is ever obeyed."""

import json
import re
from xml.etree import ElementTree

import pytest
from browser import rendered

from unrolled.charts import confusion, save, stack, surprise, token_shares
from unrolled.charts.page import POLICY, in_script

RUN = "document.documentElement.id='ow'+'ned'"  # seen as "owned" only where it has run
HOSTILE = [
    f"c</script><script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f"<!--<script>{RUN}",
    f'"-{RUN}-"',
    "\\u003c/script\\u003e",
    f"]]></text><script>{RUN}</script>",
    f"javascript:{RUN}",
    "\u2028\u2029\u0085",
    "\x1b]0;owned?\x07\x1b[31m\x9b31m\x7f",
    "\x00\x01\ud800\ufffe",
    "</style><style>*{display:none}",
    "datum['x']\"+constructor.constructor('RUN')()",
]
SCRIPT = re.compile(r"<script[^>]*>(.*?)</script\s*>", re.DOTALL | re.IGNORECASE)


@pytest.fixture(scope="module")
def chart():
    cells = surprise(HOSTILE, [1.0] * len(HOSTILE), title=HOSTILE[0])
    shares = token_shares(HOSTILE, [0.5] * len(HOSTILE), name=HOSTILE[1], title=HOSTILE[2])
    table = confusion(HOSTILE[:3], [[5, 1, 2], [0, 4, 1], [1, 1, 3]])
    return stack(cells, shares, table)


@pytest.fixture(scope="module")
def page(chart, tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "</script><b>.html".replace("/", "\u2215")
    save(chart, path)
    return path


def test_a_page_holds_its_own_two_scripts_and_no_letter_ends_them(page):
    html = page.read_text(encoding="utf-8")
    data, script = SCRIPT.findall(html)
    assert not set("<>&\u2028\u2029\x1b") & set(data)
    assert html.lower().count("<script") == html.lower().count("</script") == 2
    assert RUN in data  # it is there, as data
    assert RUN not in script


def test_the_policy_names_one_script_and_neither_eval_nor_any_place(page):
    (policy,) = re.findall(
        'http-equiv="Content-Security-Policy" content="([^"]*)"', page.read_text()
    )
    assert re.fullmatch(POLICY.replace("{digest}", "[A-Za-z0-9+/]{43}="), policy)
    assert "eval" not in policy
    assert "http" not in policy


def test_json_in_a_script_reads_back():
    assert json.loads(in_script(HOSTILE)) == HOSTILE


def test_svg_is_well_formed_and_holds_text_alone(chart, tmp_path):
    save(chart, tmp_path / "x.svg")
    tree = ElementTree.parse(tmp_path / "x.svg")
    kinds = {element.tag.split("}")[1] for element in tree.iter()}
    assert not kinds & {"script", "foreignObject", "a", "image", "use", "style", "animate", "set"}
    names = {name for element in tree.iter() for name in element.attrib}
    assert not [name for name in names if name.startswith("on") or "href" in name]
    assert RUN[:20] in "".join(tree.getroot().itertext())


@pytest.mark.parametrize("ending", ["png", "json"])
def test_controls_are_drawn_not_sent(chart, tmp_path, ending):
    save(chart, tmp_path / f"x.{ending}")
    content = (tmp_path / f"x.{ending}").read_bytes()
    assert content
    assert ending == "png" or b"\\u001b" not in content


@pytest.mark.trains
def test_a_browser_draws_the_page_and_runs_nothing_else(page, chart):
    seen = rendered(page)
    assert 'class="marks"' in seen  # drawn, without eval
    assert "owned" not in seen.replace("owned?", "")
    save(chart, page.with_suffix(".svg"))
    assert "owned" not in rendered(page.with_suffix(".svg")).replace("owned?", "")


@pytest.mark.trains
def test_the_policy_stops_a_script_that_slips_in(page):
    html = page.read_text(encoding="utf-8")
    inserted = html.replace("</body>", f"<script>{RUN}</script></body>")
    page.with_name("slipped.html").write_text(inserted, encoding="utf-8")
    assert "owned" not in rendered(page.with_name("slipped.html")).replace("owned?", "")
    without = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", inserted)
    page.with_name("open.html").write_text(without, encoding="utf-8")
    assert 'id="owned"' in rendered(page.with_name("open.html"))
