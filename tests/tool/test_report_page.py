"""The report's page in a browser without a screen: it draws every section, complains of nothing, and runs no name."""

import pathlib
import re
import shutil
import subprocess

import pytest
from generator import causes, rank_files
from lib import evil, faults, jobs, tool
from lib.tool import tprof

SECTIONS = ["findings", "step", "heat", "late", "timeline", "buckets", "ops", "hist", "comms", "unseen"]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium in PATH (apt-get install chromium)")


def slow(folder: pathlib.Path) -> None:
    rank_files.write(causes.case("fsdp", 8, "slow_gpu", 1, 4), folder, 1)


def without_steps(folder: pathlib.Path) -> None:
    """A short job without device times: most sections have nothing to draw."""
    tool.generate(folder, 2, 3)


JOBS = {
    "slow": slow,
    "many": jobs.healthy(400, 40, 1).write,
    "hung": faults.plant_elsewhere(jobs.healthy(24, 200, 1), 8, 0, 20)[0].write,
    "without_steps": without_steps,
    "evil": evil.write,
}


def shown(page: pathlib.Path, *options: str) -> tuple[str, str]:
    """Returns the page after its scripts ran, and what the browser had to say."""
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={page}.profile"]
    command += ["--enable-logging=stderr", "--v=0", *options, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    return done.stdout, done.stderr


@pytest.fixture(scope="module", params=JOBS)
def page(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    JOBS[request.param](folder / "job")
    done = tprof("report", folder / "job", "-o", folder / "r.html")
    assert done.returncode in (0, 1), done.stderr
    return request.param, *shown(folder / "r.html")


def body_of(dom: str, section: str) -> str:
    return re.search(rf'<section id="{section}">(.*?)</section>', dom, re.DOTALL)[1]


def test_every_section_is_drawn_or_says_why_not(page):
    job, dom, said = page
    assert 'data-drawn="yes"' in dom
    assert [line for line in said.splitlines() if "CONSOLE" in line] == []
    for section in SECTIONS:
        inner = body_of(dom, section)
        assert re.search(r'<canvas|<table|class="none"|class="finding', inner), (job, section)
        assert "could not be drawn" not in inner
        for undrawn in re.findall(r'<p class="none">(.*?)</p>', inner):
            assert len(undrawn) > 20 and "undefined" not in undrawn and "NaN" not in undrawn
    assert not re.search(r"NaN|undefined|\[object", re.sub(r"<script.*?</script>", "", dom, flags=re.DOTALL))
    if job == "slow":
        first = re.search(r"<tbody><tr><td[^>]*>(\d+)<", body_of(dom, "late"))
        assert int(first[1]) == causes.case("fsdp", 8, "slow_gpu", 1, 4).truth.ranks[0]


def test_the_headline_is_said_once_and_scales_are_round(page):
    job, dom, _ = page
    text = re.sub(r"<script.*?</script>", "", dom, flags=re.DOTALL)
    headline = re.search(r'<p id="verdict"[^>]*>([^<]*?)\.?<', text)[1]
    assert text.lower().count(headline.lower()) == 1, job
    shown = re.findall(r"<span><i[^>]*></i>([\d.]+) [num]?s</span>", body_of(dom, "heat"))
    if job == "slow":  # where all ranks are alike there is one colour
        assert len(shown) > 1 and all(len(ns.replace(".", "").strip("0")) <= 2 for ns in shown), shown


def test_canvases_can_be_reached_by_keys_and_have_a_name(page):
    job, dom, _ = page
    canvases = re.findall(r"<canvas[^>]*>", dom)
    assert canvases or job == "without_steps"
    for canvas in canvases:
        assert re.search(r'aria-label="[^"]{5,}"', canvas)
        assert 'class="own"' not in canvas or 'tabindex="0"' in canvas


def test_names_do_not_run(page):
    job, dom, _ = page
    assert "<title>owned" not in dom
    assert "<img" not in dom
    scripts = re.sub(r'<script type="application/json".*?</script>', "", dom, flags=re.DOTALL)
    assert scripts.count("<script") == 2
    if job == "evil":
        assert "&lt;/script&gt;&lt;script&gt;document.title" in dom


WALK = """
for (const canvas of document.querySelectorAll("canvas.own")) {
  canvas.focus();
  for (const key of ["ArrowRight", "ArrowDown"]) canvas.dispatchEvent(new KeyboardEvent("keydown", { key }));
  canvas.insertAdjacentElement("afterend", Object.assign(document.createElement("output"),
    { textContent: document.getElementById("tip").textContent }));
}
const title = [...document.querySelectorAll("#ops th button")].find((button) => button.textContent === "calls");
title.click();
title.click();
"""


def test_keys_walk_over_cells_and_titles_sort(tmp_path):
    slow(tmp_path / "job")
    tprof("report", tmp_path / "job", "-o", tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    nonce = re.search(r'<script nonce="(\w+)"', text)[1]
    (tmp_path / "r.html").write_text(text.replace("</body>", f'<script nonce="{nonce}">{WALK}</script></body>'))
    dom, said = shown(tmp_path / "r.html")
    assert "CONSOLE" not in said
    told = {s: re.findall(r"<output>(.*?)</output>", body_of(dom, s), re.DOTALL)[0] for s in ("heat", "timeline", "comms")}
    assert told["heat"].startswith("rank 1, step 1")
    assert told["timeline"].startswith("rank 1")
    assert "communicator 1 of 1" in told["comms"]
    ops = body_of(dom, "ops")
    at = re.findall(r"<th[^>]*><button[^>]*>([^<]*)<", ops).index("calls")
    rows = [re.findall(r"<td[^>]*>([^<]*)<", row) for row in re.findall(r"<tr>(<td.*?)</tr>", ops)]
    calls = [int(row[at].replace(",", "")) for row in rows]
    assert len(calls) == 4 and calls == sorted(calls)
