"""The pages of commands that read logs: what they say, that they stand alone, what they hide."""

import re
import subprocess
import sys
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from tests.report.invented_diagnosis import invented, invented_windows

from analysis.errors import InputError
from analysis.findings.break_even import BreakEven, of_numbers, of_sides
from analysis.findings.comparison import Comparison, compare
from analysis.findings.sides import load_side, of_windows
from analysis.records.seen import Seen
from analysis.records.windows import Flag
from analysis.report.page import breakeven_page, compare_page, diagnose_page, paste
from analysis.report.page.words import engine, number, span
from analysis.report.plots.needed import (
    Needed,
    needed_by_row,
    needed_key,
    needed_over_context,
)
from analysis.report.plots.windows import key, over_context, over_time
from analysis.report.style import RC, new_figure

RANKS = [f"DP{rank} TP{rank}" for rank in range(8)]
DIAGNOSES = {
    "usual": lambda: invented(invented_windows(60)),
    "one window": lambda: invented(invented_windows(1, flagged=0)),
    "three windows without a time": lambda: invented(
        invented_windows(3, flagged=0, clock="none", high=3000)
    ),
    "all flagged": lambda: invented(invented_windows(12, flagged=1.1)),
    "ranks and files": lambda: invented(
        invented_windows(80, sources=RANKS, running=8), invented_windows(30, file="b.log")
    ),
    "no commit": lambda: invented(invented_windows(20, commit=False)),
    "nothing": lambda: invented(),
}
SECRETS = (
    "ann",
    "gpubox3",
    "10.1.2.3",
    "hf_abcdefgh",
    "ann@example.org",
    "my secret plan",
    "example.com",
)
PLANTED = [
    "Nov 30 22:56:19 gpubox3 sglang[42]: loading /home/ann/models/Kimi-K2 on gpubox3",
    "server_args=ServerArgs(model_path='/home/ann/models/Kimi-K2', host='10.1.2.3')",
    "prompt: 'my secret plan', user=ann, ann@example.org",
    "Authorization: Bearer hf_abcdefgh http://ann:pw@gpubox3.example.com:8000/v1",
]


class Outline(HTMLParser):
    """Tags that are open, ids, and addresses that a page would ask for."""

    VOID = ("meta", "img", "link", "br", "hr", "input")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.asked: list[str] = []
        self.alts: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        self.ids += filter(None, [found.get("id")])
        self.asked += [str(found[name]) for name in ("src", "href", "srcset") if name in found]
        if tag == "img":
            self.alts.append(found.get("alt") or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(params=DIAGNOSES, scope="module")
def diagnosed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    diagnosis = DIAGNOSES[request.param]()
    out = tmp_path_factory.mktemp("pages") / "page.html"
    diagnose_page.write(diagnosis, out)
    return diagnosis, out.read_text()


def test_a_page_is_whole_and_asks_for_nothing(diagnosed) -> None:
    _, html = diagnosed
    page = Outline(html)
    assert page.tags.count("h1") == 1
    assert "script" not in page.tags
    assert "link" not in page.tags
    assert sorted(page.ids) == sorted(set(page.ids))
    assert {address[:5] for address in page.asked} <= {"data:", "#main"}
    assert all(len(alt) > 40 for alt in page.alts)
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org)", html)
    assert "nan" not in re.sub(r"base64,[^\"]*", "", html).lower().split()


def test_a_page_says_verdict_counts_and_how_it_was_made(diagnosed) -> None:
    diagnosis, html = diagnosed
    text = re.sub(r"<[^>]+>", " ", html.split("</style>")[1])
    assert diagnosis.verdict in text.replace("\u00a0", " ")
    assert f"windows: {diagnosis.windows_total:,}" in text
    assert "analysis diagnose (speculative-decoding-report" in text
    if diagnosis.summary.windows_flagged:
        assert f"{diagnosis.summary.windows_flagged:,} of" in text
        assert "prefill inside" in text


def test_the_numbers_stand_with_intervals_named_for_what_they_are() -> None:
    found = invented(invented_windows(60))
    page = diagnose_page.page_of(found)
    medians, fit = page.numbers
    assert medians.head[2] == "95 % confidence interval of the median"
    assert fit.head[2] == "95 % confidence interval (Student's t)"
    speed = found.summary.tok_per_s
    assert medians.rows[0][1:] == (
        f"{speed.median:.0f} tok/s",
        f"{speed.low:.0f} to {speed.high:.0f}",
    )
    assert fit.rows[0] == ("intercept: the step without context", "20.1 ms", "19.6 to 20.6")
    assert [picture.id for picture in (page.lead, *page.pictures)] == [
        "split",
        "over-time",
        "over-context",
    ]


def test_too_few_windows_have_no_interval_and_the_page_says_so() -> None:
    medians = diagnose_page.page_of(invented(invented_windows(3, flagged=0))).numbers[0]
    assert (
        medians.caption == "Medians over 3 windows without a flag; too few of them for an interval"
    )
    assert {row[2] for row in medians.rows} == {"–"}


def test_a_page_says_by_which_way_an_interval_was_made() -> None:
    found = invented(invented_windows(60))
    way = replace(found.summary.commit, kind="order statistics")
    found = replace(found, summary=replace(found.summary, commit=way))
    assert diagnose_page.page_of(found).numbers[0].caption.endswith("intervals by order statistics")
    assert paste.for_diagnosis(found).endswith("interval of the median, by order statistics.")


def test_an_engine_is_named_once() -> None:
    found = invented(invented_windows(6))
    assert engine(found) == "SGLang (0.5.6 or newer)"
    assert engine(replace(found, version_hint="SGLang 0.5.6 or newer")) == "SGLang 0.5.6 or newer"


def test_planted_secrets_do_not_reach_the_page(tmp_path: Path) -> None:
    seen = Seen(lines=9, unparsed=5, malformed=1, examples=PLANTED, malformed_examples=PLANTED[:1])
    found = invented(
        invented_windows(20, file="/home/ann/gpubox3.example.com.log"),
        invented_windows(20, file="/home/ann/b.log", sources=("ann@example.org", "10.1.2.3")),
        seen=seen,
        verdict="On gpubox3.example.com it is slow.",
        details=("Read /home/ann/x/server.log from 10.1.2.3.",),
        version_hint="0.5.6, from /home/ann/site-packages/sglang",
    )
    out = tmp_path / "page.html"
    diagnose_page.write(found, out)
    body = out.read_text().split("</style>")[1]
    pictures = [b64decode(found).decode() for found in re.findall(r'base64,([^"]*)', body)]
    assert len(pictures) == 3
    body = re.sub(r'base64,[^"]*', "", body) + "".join(pictures)
    for secret in SECRETS:
        assert not re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", body), secret
    for kept in ("Kimi-K2", "server.log", "&lt;host&gt;", "&lt;prompt&gt;", "&lt;secret&gt;"):
        assert kept in body
    diagnose_page.write(found, out, redact=False)
    shown = out.read_text()
    assert "my secret plan" in shown
    assert "Nothing was taken out" in shown
    assert "/home/ann/gpubox3" not in shown  # a file is named without its folder all the same


def comparison(after_step: float = 1.0) -> Comparison:
    before = invented_windows(60, file="/home/ann/before.log")
    after = invented_windows(50)
    after.step_ms[:] *= after_step
    after.tok_per_s[:] /= after_step
    note = ("some windows carry a flag",)
    return compare(
        of_windows("ann/before.log", [before], note), of_windows("ann/after.log", [after])
    )


PLAIN = """context_tokens,step_ms
1000,12.1
1000,12.2
8000,13
8000,13.3
64000,19.1
64000,19.4
"""
SPECULATING = """series,context_tokens,step_ms,commit_length,block
eagle,1000,20.1,3.3,8
eagle,1000,20.4,3.4,8
eagle,8000,24,2.9,8
eagle,8000,24.6,3,8
eagle,64000,55.1,2.5,8
eagle,64000,54.4,2.4,8
"""


def break_even(folder: Path) -> BreakEven:
    plain, spec = folder / "plain.csv", folder / "spec.csv"
    plain.write_text(PLAIN)
    spec.write_text(SPECULATING)
    return of_sides(load_side(str(plain)), load_side(str(spec)))


def test_a_comparison_shows_each_factor_with_its_interval(tmp_path: Path) -> None:
    found = comparison(1.3)
    out = tmp_path / "page.html"
    compare_page.write(found, out)
    html = out.read_text().replace("\u00a0", " ")
    Outline(html)
    assert found.sentence in html
    assert "ann/" not in html
    assert "before.log" in html
    ratios, sides = compare_page.page_of(found).numbers
    assert [row[0] for row in ratios.rows] == [
        "throughput per stream",
        "commit",
        "step, before / after",
    ]
    assert ratios.rows[2][1].startswith("× 0.7")
    assert " to " in ratios.rows[2][2]
    assert sides.rows[0] == ("values compared", "49", "32")
    text = paste.for_comparison(found)
    assert text.startswith(f"**{found.sentence}**")
    assert "step, before / after: × 0.7" in text


def test_a_comparison_that_cannot_be_split_says_so(tmp_path: Path) -> None:
    for name, rows in (("a", "100\n101\n99"), ("b", "130\n131\n128")):
        (tmp_path / f"{name}.csv").write_text(f"tok_per_s\n{rows}\n")
    found = compare(*(load_side(str(tmp_path / f"{name}.csv")) for name in "ab"))
    compare_page.write(found, tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    Outline(html)
    assert "cannot be split" in html
    assert len(compare_page.page_of(found).numbers[0].rows) == 1


def test_break_even_shows_what_is_needed_committed_and_possible(tmp_path: Path) -> None:
    found = break_even(tmp_path)
    out = tmp_path / "page.html"
    breakeven_page.write(found, out)
    html = out.read_text().replace("\u00a0", " ")
    Outline(html)
    assert found.sentence in html
    numbers, steps = breakeven_page.page_of(found).numbers
    assert [row[0] for row in numbers.rows] == [
        "eagle, context 1,000",
        "eagle, context 8,000",
        "eagle, context 64,000",
    ]
    assert [row[6] for row in numbers.rows] == ["pays", "pays", "does not pay"]
    assert numbers.rows[0][1].startswith("1.67 (1.")
    assert steps.rows[0][1:3] == ("12.1 ms", "20.2 ms")
    text = paste.for_break_even(found)
    assert "- eagle, context 64,000: break-even 2.84 (" in text
    assert "Plain: plain.csv (table, 6 rows)" in html


@pytest.mark.parametrize(("commit", "block"), [(2.5, 4), (None, 64), (None, None), (1.2, 2)])
def test_break_even_of_bare_figures(
    tmp_path: Path, commit: float | None, block: int | None
) -> None:
    found = of_numbers(20.0, 34.0, commit, block)
    breakeven_page.write(found, tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    Outline(html)
    assert "1.70" in html
    assert "Of the figures as given: no interval." in html


def test_markup_in_a_log_stays_text(tmp_path: Path) -> None:
    seen = Seen(lines=1, unparsed=1, examples=["<script>alert(1)</script><img src=x>"])
    out = tmp_path / "page.html"
    diagnose_page.write(invented(invented_windows(5), seen=seen), out, redact=False)
    assert "script" not in Outline(out.read_text()).tags


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    found = invented(invented_windows(5))
    with pytest.raises(InputError, match="no such folder"):
        diagnose_page.write(found, tmp_path / "none" / "page.html")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="can be written"):
        diagnose_page.write(found, tmp_path / "folder")
    out = tmp_path / "page.html"
    diagnose_page.write(found, out)
    first = out.read_bytes()
    diagnose_page.write(found, out)
    assert out.read_bytes() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "page.html"]


def test_the_paragraph_to_paste_carries_what_a_reader_needs() -> None:
    text = paste.for_diagnosis(invented(invented_windows(60)))
    assert text.startswith("**133 tok/s, because")
    for needed in (
        "throughput: median 133 tok/s [",
        "step = 20.1 ms + 0.301 µs per token of context (95 % CI 19.6 to 20.6 ms",
        "windows: 49 of 60 count, left out: prefill inside 11",
        "SGLang",
        "0.5.6 or newer",
        "from server.log",
    ):
        assert needed in text


def test_ten_thousand_bins_make_a_page_of_less_than_two_megabytes(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    diagnose_page.write(invented(invented_windows(10_000), binned=True), out)
    assert out.stat().st_size < 2e6


@pytest.mark.parametrize("name", DIAGNOSES)
def test_no_label_leaves_the_picture_and_no_tick_meets_another(name: str) -> None:
    found = DIAGNOSES[name]()
    if not found.windows:
        return
    with mpl.rc_context(RC):
        figure = new_figure(5.6, 5)
        axes = figure.subplots(2, 1)
        over_time(axes[0], found.windows, "tok_per_s", "throughput (tok/s)", 100.0)
        over_context(axes[1], found.windows)
        key(figure, found.windows, ["tok_per_s", "step_ms"])
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        renderer = canvas.get_renderer()
        inside = figure.bbox
        for axis in axes:
            ticks = [t.get_window_extent(renderer) for t in axis.get_xticklabels() if t.get_text()]
            assert not any(a.overlaps(b) for a, b in pairwise(ticks))
            for text in (*axis.texts, axis.xaxis.label, axis.yaxis.label):
                box = text.get_window_extent(renderer)
                assert box.x0 >= inside.x0 - 1, text
                assert box.x1 <= inside.x1 + 1, text
        for legend in figure.legends:
            box = legend.get_window_extent(renderer)
            assert box.x0 >= inside.x0 - 1
            assert box.x1 <= inside.x1 + 1


@pytest.mark.parametrize("over_context", [True, False])
def test_long_names_stay_inside_the_picture(over_context: bool) -> None:
    none, some = np.full(3, np.nan), np.array([1.5, 2.0, 2.5])
    series = [
        Needed(name, 1024 * 4.0 ** np.arange(3), some, none, none, some + 1, np.full(3, 8.0))
        for name in ("a drafter with a name that is too long " * 3, "ngram", "eagle, 8 running")
    ]
    with mpl.rc_context(RC):
        figure = new_figure(5.6, 3.6)
        draw = needed_over_context if over_context else needed_by_row
        draw(figure.subplots(), series)
        needed_key(figure, series, over_context)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        for part in (*figure.legends, *figure.axes[0].get_yticklabels()):
            box = part.get_window_extent(canvas.get_renderer())
            assert box.x0 >= -1
            assert box.x1 <= figure.bbox.x1 + 1
        assert figure.axes[0].bbox.width > 0.3 * figure.bbox.width


def test_flagged_windows_are_hollow_and_those_beyond_the_axis_stand_at_its_edge() -> None:
    batch = invented_windows(10, flagged=0)
    batch.flags[3], batch.used[3], batch.tok_per_s[3] = int(Flag.IDLE), 0, 1e6
    axis = over_time(new_figure().subplots(), [batch], "tok_per_s", "throughput (tok/s)")
    hollow, full, edge = axis.lines
    assert (len(hollow.get_xdata()), len(full.get_xdata()), len(edge.get_xdata())) == (1, 9, 1)
    assert hollow.get_markerfacecolor() == "white"
    assert axis.get_ylim()[1] < 2 * np.max(full.get_ydata()) > edge.get_ydata()[0]


@pytest.mark.parametrize(
    ("value", "like", "text"),
    [
        (0.301, None, "0.301"),
        (24.0, None, "24"),
        (7.999999999999998, 8.0, "8"),
        (24.04, None, "24.0"),
        (23.0, 24.04, "23.0"),
        (1234.5, None, "1,234"),
        (-0.5, None, "−0.500"),
        (float("nan"), None, "–"),
        (None, None, "–"),
        (0.0, None, "0.00"),
    ],
)
def test_numbers(value: float | None, like: float | None, text: str) -> None:
    assert number(value, like) == text


def test_an_interval_has_the_decimals_of_its_value() -> None:
    assert span((2.9, 3.1), 3.05) == "2.90 to 3.10"
    assert span(None, 3.05) == "–"
    assert span((1.0, None), 3.05) == "–"


NEEDLESS = ("pandas", "seaborn", "IPython", "nbformat", "nbconvert", "papermill", "ipykernel")


@pytest.mark.parametrize("module", ["diagnose_page", "compare_page", "breakeven_page", "paste"])
def test_the_pages_need_no_jupyter_and_no_pandas(module: str) -> None:
    code = (
        "import sys\n"
        f"import analysis.report.page.{module}\n"
        f"print(sorted(set({NEEDLESS!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
