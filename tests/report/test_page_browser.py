"""The report in a real browser: nothing asked of the network, no error, everything seen, on a phone and in the dark."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from report_study import ATTACK, MODELS, PER_LEVEL, copied_to, registered_claims, write_json

from compositionality.report.page.build import report
from compositionality.report.page.inputs import ReportSettings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FOUND = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytest.importorskip("playwright", reason="no playwright; run: bash bash/setup.sh --dev")
pytestmark = pytest.mark.skipif(FOUND is None, reason="no browser; apt-get install chromium (bash bash/setup.sh --dev)")
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
MILLISECONDS = 180_000  # that a busy machine may take
WIDTHS = (390, 500, 768, 1280)
FIGURES = 11
LEAST_CONTRAST = 4.5
"""WCAG AA, for text."""
CONTRASTS = """() => {
  const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const svg = e instanceof SVGElement;
    if (svg ? e.tagName !== "text" : ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    if (e.closest("script, noscript, option") || !e.getClientRects().length) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(parse(svg ? style.fill : style.color)), light(behind(svg ? e.closest("div") : e))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push([contrast, e.textContent.trim().slice(0, 40)]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}"""


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=FOUND, args=["--no-sandbox"], timeout=MILLISECONDS)
        yield browser
        browser.close()


class Opened:
    """A page with everything it said and asked for."""

    def __init__(self, browser: "Browser", path: Path, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": DESK, **options})
        self.context.set_default_timeout(MILLISECONDS)
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        if options.get("java_script_enabled", True):
            self.page.wait_for_selector("html[data-drawn]", state="attached")


@pytest.fixture
def opened(browser: "Browser", page: Path) -> Iterator[Any]:
    made: list[Opened] = []

    def open_it(**options: Any) -> Opened:
        made.append(Opened(browser, page, **options))
        return made[-1]

    yield open_it
    for one in made:
        one.context.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_every_figure_is_seen_whole_and_nothing_is_cut(opened: Any, width: int) -> None:
    page = opened(viewport={"width": width, "height": 844}).page
    drawings = page.locator(".drawing")
    assert drawings.count() == FIGURES
    for drawing in drawings.all():
        frame, box = drawing.bounding_box(), drawing.locator("svg").bounding_box()
        assert box["width"] > 250
        assert box["height"] > 150
        assert frame["x"] <= box["x"]
        assert box["x"] + box["width"] <= frame["x"] + frame["width"]
        for text in drawing.locator("text").all()[:3]:
            assert text.bounding_box()["height"] > 5
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#claims .what").first.bounding_box()["width"] > 0.3 * min(width, 960)
    scrolled = "[...document.querySelectorAll('.wide')].filter((one) => one.scrollWidth > one.clientWidth).length"
    assert page.evaluate(scrolled) == 0 < page.locator(".wide").count()


def test_on_a_phone_panels_and_answers_stand_in_one_column(opened: Any) -> None:
    page = opened(viewport=PHONE).page
    lefts = page.evaluate(
        "[...document.querySelectorAll('.answers article')].map((one) => one.getBoundingClientRect().x)"
    )
    assert len(set(lefts)) == 1 < len(lefts)
    panels = (
        "[...document.querySelectorAll('#passk text')].filter((one) => one.textContent.startsWith('held-out'))"
        ".map((one) => Math.round(one.getBoundingClientRect().x))"
    )
    assert len(set(page.evaluate(panels))) == 1
    page.set_viewport_size(DESK)
    page.wait_for_function(f"new Set({panels}).size > 1")


def test_the_first_screen_of_a_desk_has_the_finding_the_problem_and_the_chart(opened: Any) -> None:
    """And everything on the page has a name for who hears it."""
    page = opened().page
    assert page.locator("h1").bounding_box()["y"] < 150
    assert page.locator("#problem .answers article").count() == len(MODELS)
    assert page.locator("#headline-drawing svg").bounding_box()["y"] < DESK["height"]
    named = page.get_by_role("img", name=re.compile(r"\S"))
    assert named.and_(page.locator(".drawing")).count() == page.locator(".drawing").count() == FIGURES
    assert named.and_(page.locator("svg.forest")).count() == page.locator("svg.forest").count() > 0
    cards = page.locator("#sample-list .sample").count()
    assert page.get_by_role("article", name=re.compile(r"level \d+, problem \d+: ")).count() == cards > 0


def test_answers_are_chosen_by_level_model_and_verdict(opened: Any) -> None:
    page = opened().page
    cards = page.locator("#sample-list .sample")
    everything = int(re.findall(r"of (\d+)", page.locator("#sample-count").inner_text())[0])
    assert everything == len(MODELS) * 2 * 3 * PER_LEVEL
    page.locator("select[name=model]").select_option("rl-level2")
    page.locator("select[name=level]").select_option("3")
    page.locator("select[name=reason]").select_option("no_answer")
    of_both = cards.count()
    assert 2 <= of_both <= 6
    for card in cards.all():
        told = card.inner_text()
        assert "RL on level 2" in told
        assert "rl-level2" not in told.partition("Completion")[0]
        assert "level 3" in told
        assert "no answer" in told
    page.locator("select[name=group]").select_option("heldout")
    assert cards.count() == of_both / 2
    for name in ("model", "group", "level", "reason"):
        page.locator(f"select[name={name}]").select_option("")
    before = cards.count()
    page.get_by_role("button", name="Show more").click()
    assert cards.count() > before


def test_p14_p16_nothing_leaves_the_page_and_what_a_model_writes_never_runs(opened: Any, page: Path) -> None:
    one = opened()
    one.page.get_by_role("button", name="Show more").click()
    one.page.wait_for_timeout(200)
    assert one.errors == []
    assert [url for url in one.requests if not url.startswith("data:")] == [page.as_uri()]
    assert ATTACK in one.page.locator("#sample-list pre").nth(1).inner_text()
    assert ATTACK in one.page.locator("#claims").inner_text()
    assert one.page.evaluate("window.attacked") is None
    assert one.page.locator("#sample-list img, #claims img").count() == 0
    # And where it got in all the same, the page's own rules would not let it run.
    one.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.attacked=1\">')")
    one.page.wait_for_timeout(200)
    assert one.page.evaluate("window.attacked") is None


def test_a_figure_and_its_rows_are_saved_from_a_page_that_is_alone(
    browser: "Browser", page: Path, tmp_path: Path
) -> None:
    alone = Opened(browser, Path(shutil.copy(page, tmp_path)))
    for file, start in (("passk.csv", (page.parent / "tables/passk.csv").read_bytes()), ("headline.png", b"\x89PNG")):
        with alone.page.expect_download() as download:
            alone.page.locator(f"[data-save='{file}']").click()
        assert download.value.suggested_filename == file
        assert Path(download.value.path()).read_bytes().startswith(start)
    assert alone.errors == []
    alone.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_the_theme_that_is_asked_for_or_chosen(opened: Any, scheme: str) -> None:
    page = opened(color_scheme=scheme).page
    colours = []
    for _ in range(3):
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.get_by_role("button", name="Switch between light and dark").click()
    dark = [sum(map(int, re.findall(r"\d+", colour)[:3])) < 200 for colour in colours]
    assert dark == [scheme == "dark", scheme != "dark", scheme == "dark"]
    worst = page.evaluate(CONTRASTS)
    assert len(worst) > 100
    assert worst[0][0] >= LEAST_CONTRAST, worst[:5]


def test_the_url_keeps_theme_and_filters_and_a_broken_one_is_ignored(opened: Any, page: Path) -> None:
    one = opened(color_scheme="light")
    shown, usual = one.page, view(one.page)
    shown.get_by_role("button", name="Switch between light and dark").click()
    shown.locator("select[name=model]").select_option("rl-level2")
    shown.locator("select[name=reason]").select_option("no_answer")
    assert shown.url.endswith("?theme=dark&model=rl-level2&reason=no_answer")
    shown.locator("nav a[href='#samples']").click()
    seen = view(shown)
    assert seen[:2] == ("dark", ["rl-level2", "", "", "no_answer"])
    shown.reload()
    assert view(shown) == seen
    shared = opened(color_scheme="light").page
    shared.goto(shown.url)
    assert view(shared) == seen
    shown.locator("select[name=reason]").select_option("")
    assert "reason" not in shown.url
    shown.goto(f"{page.as_uri()}?theme=purple&level=99&model=<script>&reason=&group=%FF&theme=dark&other=1#nothing")
    assert view(shown) == usual
    assert one.errors == []


def test_one_step_back_shows_what_the_url_says(opened: Any) -> None:
    page = opened().page
    page.locator("select[name=model]").select_option("stage1")
    page.locator("nav a[href='#claims']").click()
    page.locator("select[name=model]").select_option("rft")
    page.go_back()
    assert page.url.endswith("?model=stage1")
    assert page.locator("select[name=model]").input_value() == "stage1"
    page.go_back()
    assert page.url == "about:blank"  # no filter has an entry of its own


def view(page: "Page") -> tuple[str, list[str], str]:
    """Theme, filters, and how many completions are shown."""
    theme = page.evaluate("getComputedStyle(document.documentElement).colorScheme")
    filters = [one.input_value() for one in page.locator("#filters select").all()]
    return theme, filters, page.locator("#sample-count").inner_text()


def test_a_click_on_a_dot_shows_its_problem_with_the_answers_of_all_models(opened: Any) -> None:
    one = opened(reduced_motion="reduce")
    page = one.page
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    assert "Click a dot" in page.locator("#dot-problem").inner_text()
    page.locator("#gold_probability-drawing .mark-symbol.role-mark path").first.click(force=True)
    shown = page.locator("#dot-problem")
    assert re.match(r"Level 1, problem \d of seed0: ", shown.locator("h4").first.inner_text())
    assert 0 <= shown.locator("h4").first.bounding_box()["y"] < DESK["height"] - 40
    assert shown.locator("article").count() == len(MODELS)
    for text in shown.locator("article").all_inner_texts():
        assert re.search(r"(right|wrong).*\nP = .*\n", text)
    assert ATTACK in shown.inner_text()
    page.evaluate("document.querySelector('#dot-problem .badge').textContent = 'wrong, but every result handed on'")
    badge, card = (shown.locator(kind).first.bounding_box() for kind in (".badge", "article"))
    assert badge["x"] + badge["width"] < card["x"] + card["width"]
    assert page.evaluate("window.attacked") is None
    assert "?dot=" in page.url
    picked = page.locator("#gold_probability-drawing path[stroke='#1b1e23']").count()
    assert picked == len(MODELS) - 1  # a panel each
    page.reload()
    page.wait_for_selector("html[data-drawn]", state="attached")
    assert page.locator("#dot-problem article").count() == len(MODELS)
    assert one.errors == []


def test_a_problem_of_another_replicate_is_chosen_by_the_keyboard(opened: Any) -> None:
    page = opened().page
    before = page.locator("#gold_probability-drawing .mark-symbol path").first.get_attribute("transform")
    page.locator("#dots select[name=dots-replicate]").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function(
        "(old) => { const dot = document.querySelector('#gold_probability-drawing .mark-symbol path');"
        "return dot && dot.getAttribute('transform') !== old; }",
        arg=before,
    )
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    shown = page.locator("#dot-problem")
    assert "Level 2, problem 8 of seed1: func_" in shown.locator("h4").first.inner_text()
    assert shown.locator("article pre").count() == 0  # texts are those of the first replicate
    assert "The texts of answers are those of seed0 only." in page.locator("#gold_probability").inner_text()
    replicates = page.locator("#dots select[name=dots-replicate]")
    assert replicates.locator("option").all_inner_texts() == ["seed0, with the answers’ texts", "seed1"]
    replicates.select_option("seed0")
    assert page.locator("#dots select[name=dots-level]").input_value() == "2"


def test_the_menus_begin_with_the_replicate_shown_first(
    browser: "Browser", settings: ReportSettings, tmp_path: Path
) -> None:
    made = copied_to(tmp_path / "copy", settings.study.parents[1], settings)
    write_json(made.study / "claims.json", registered_claims(0.4, 0.1), step="claims")
    one = Opened(browser, report(made))
    replicates = one.page.locator("#dots select[name=dots-replicate]")
    assert replicates.input_value() == "seed1"
    assert "The menu begins with seed1" in one.page.locator("#gold_probability").inner_text()
    replicates.select_option("seed0")
    assert one.page.url.endswith("?replicate=seed0")
    replicates.select_option("seed1")
    assert one.page.url.endswith("index.html")
    assert one.errors == []
    one.context.close()


def test_pages_of_other_studies_have_their_figure_on_the_first_screen_at_any_width(
    browser: "Browser", injection: ReportSettings, scaling_study: ReportSettings
) -> None:
    """In the dark too; nothing is said to the console, in a window without room neither."""
    for settings, main in ((injection, "gains"), (scaling_study, "scaling_flops")):
        path = settings.output / "index.html"
        for viewport, scheme in ((DESK, "light"), (PHONE, "dark")):
            one = Opened(browser, path, viewport=viewport, color_scheme=scheme)
            assert one.page.locator(f"#{main}-drawing svg").bounding_box()["y"] < viewport["height"] - 100
            assert one.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
            worst = one.page.evaluate(CONTRASTS)
            assert worst[0][0] >= LEAST_CONTRAST, worst[:5]
            one.page.set_viewport_size({"width": 33, "height": 900})
            one.page.wait_for_timeout(200)
            assert one.errors == []
            assert [url for url in one.requests if not url.startswith("data:")] == [path.as_uri()]
            one.context.close()


def test_a_click_on_a_dot_of_a_study_without_probabilities_shows_who_is_right(
    browser: "Browser", injection: ReportSettings
) -> None:
    one = Opened(browser, injection.output / "index.html", reduced_motion="reduce")
    page, shown = one.page, one.page.locator("#dot-problem")
    page.locator("#answers-drawing .mark-symbol.role-mark path").first.click(force=True)
    assert re.fullmatch(r"Level \d, problem \d of seed0", shown.locator("h4").first.inner_text())
    assert shown.locator("article strong").all_inner_texts() == [
        f"{name}: {stage}" for name in ("vanilla", "BRIDGE") for stage in ("SFT", "SFT, RL")
    ]
    for text in shown.locator("article").all_inner_texts():
        assert re.search(r"[✓✗] (right|wrong)\n", text)
        assert "P =" not in text
    page.reload()
    page.wait_for_selector("html[data-drawn]", state="attached")
    assert shown.locator("article").count() == 4
    assert one.errors == []
    one.context.close()


def test_a_click_on_a_dot_of_a_scaling_law_shows_its_runs(browser: "Browser", scaling_study: ReportSettings) -> None:
    one = Opened(browser, scaling_study.output / "index.html")
    page, shown = one.page, one.page.locator("#point-runs")
    assert shown.locator("h4").inner_text() == "The runs of 10,000 parameters at step 8"
    page.locator("#scaling_flops-drawing .mark-symbol.role-mark path").first.click(force=True)
    assert shown.locator("h4").inner_text() == "The runs of 10,000 parameters at step 1"
    assert shown.locator("tbody td:first-child").all_inner_texts() == ["10000-0", "10000-1"]
    page.locator("#points select[name=points-size]").select_option("1000000")
    assert shown.locator("h4").inner_text() == "The runs of 1,000,000 parameters at step 1"
    assert one.errors == []
    one.context.close()


def test_the_slider_goes_through_the_steps_of_a_run_by_the_keyboard(opened: Any) -> None:
    """The last run that learns a problem is shown first."""
    page = opened(viewport=PHONE, color_scheme="dark").page
    slider, shown = page.locator("#step"), page.locator("#step-shown")
    assert page.locator("#steps-menus select[name=steps-run] option").last.evaluate("option => option.selected")
    assert shown.locator(".sample-head").inner_text().split("\n") == ["step 20 of 20", "✓ right"]
    assert page.locator("#step-strip").inner_text().split() == ["✗", "✗", "✓", "✓", "✓"]
    assert shown.locator(".line-right").count() == 1
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    assert shown.locator(".sample-head").inner_text().split("\n") == ["step 5 of 20", "✗ wrong"]
    assert slider.get_attribute("aria-valuetext") == "step 5 of 20: wrong"
    assert f"step 5 says {ATTACK}" in shown.inner_text()
    page.keyboard.press("Home")
    assert "step 0 of 20" in shown.inner_text()
    page.locator("#steps-menus select[name=steps-problem]").select_option(index=1)
    assert page.locator("#step-strip").inner_text().split() == ["✗"] * 5
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_it_prints(opened: Any, tmp_path: Path) -> None:
    page = opened(color_scheme="dark").page
    page.pdf(path=tmp_path / "page.pdf", format="A4")
    content = (tmp_path / "page.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 40
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_without_javascript_the_tables_are_there_and_the_figures_are_named(opened: Any, page: Path) -> None:
    shown = opened(java_script_enabled=False).page
    for name in shown.locator(".drawing code").all_inner_texts():
        assert (page.parent / name).is_file()
    assert shown.locator(".drawing code").count() == 2 * FIGURES
    assert not shown.locator(".save").first.is_visible()
    assert shown.locator("table").count() >= 5
    assert shown.locator("noscript p").is_visible()
    assert shown.locator(".answers article").count() == len(MODELS)
