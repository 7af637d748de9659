"""Each lesson in JupyterLab, as a reader sees it; pictures of all pages are kept to look at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
import pytest
from playwright.sync_api import Browser, Page, Response, expect

from utils import claims, run

COPY = run.ROOT / "build" / "browser" / "copy" / "notebooks"
PICTURES = run.ROOT / "build" / "browser"
HEIGHT = 1500
"""Of the window in pixels; a lesson takes about a dozen of these."""
PATIENCE = 60_000
LONGEST_RUN = 900_000
"""Milliseconds to wait for a change of the page, and for a lesson."""
expect.set_options(timeout=PATIENCE)
SCROLL = "s => {s.scrollTop += s.clientHeight - 40; return s.scrollTop}"
BROKEN = "image => image.complete && image.naturalWidth === 0"
LEFT_MATHS = re.compile(r"\$[^$\n]+\$|\\\(|\\\[|\\(?:frac|sum|mathrm)\b")


def is_saved(response: Response) -> bool:
    """Whether the server has answered that it wrote a notebook; it writes settings as well."""
    return response.request.method == "PUT" and "/api/contents/" in response.url


class Lab:
    """JupyterLab with one lesson open.

    Parameters
    ----------
    page : Page
        An empty page of the browser.
    address : str
        The address that ``make lab`` has printed, and ``reset``, so that no other lesson is open.
    lesson : Path
        The notebook; its copy is opened.
    """

    def __init__(self, page: Page, address: str, lesson: Path) -> None:
        self.page = page
        self.path = COPY / lesson.name
        self.hosts: set[str] = set()
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        page.locator(".jp-DirListing-item", has_text=lesson.name).dblclick()
        self.notebook = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
        expect(self.notebook.locator(".jp-Cell")).to_have_count(len(self.read().cells))
        self.wait_until_idle()

    def read(self) -> nbformat.NotebookNode:
        """Read the notebook as last saved."""
        return nbformat.read(self.path, as_version=4)

    def choose(self, menu: str, item: str) -> None:
        self.page.get_by_role("menuitem", name=menu, exact=True).click()
        self.page.get_by_role("menuitem", name=item, exact=True).click()

    def wait_until_idle(self) -> None:
        idle = self.notebook.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")
        expect(idle).to_be_visible()

    def run_all(self, *, restart: bool = False) -> nbformat.NotebookNode:
        """Run all cells, wait for the last, save, and return the notebook."""
        if restart:
            self.choose("Kernel", "Restart Kernel and Run All Cells…")
            self.page.get_by_role("button", name="Confirm Kernel Restart").click()
        else:
            self.choose("Run", "Run All Cells")
        waiting = self.notebook.locator(".jp-InputPrompt", has_text="[*]")
        expect(waiting).not_to_have_count(0)
        expect(waiting).to_have_count(0, timeout=LONGEST_RUN)
        self.wait_until_idle()
        with self.page.expect_response(is_saved):
            self.page.keyboard.press("Control+s")
        return self.read()

    def photograph(self, name: str) -> int:
        """Take pictures from the top of the lesson to its end; return how many."""
        scroller = self.notebook.locator(".jp-WindowedPanel-outer")
        taken, last, place = 0, -1, scroller.evaluate("s => s.scrollTop = 0")
        while place != last:
            last = place
            taken += 1
            self.page.wait_for_timeout(400)
            self.page.screenshot(path=PICTURES / f"{name}-{taken:02d}.png")
            place = scroller.evaluate(SCROLL)
        return taken


@pytest.fixture(scope="module")
def lab(chromium: Browser, address: str, lesson: Path) -> Iterator[Lab]:
    page = chromium.new_page(viewport={"width": 1280, "height": HEIGHT})
    yield Lab(page, f"{address}&reset", lesson)
    page.close()


def check_run(notebook: nbformat.NotebookNode) -> None:
    """Check that every cell ran in order, without an error or a warning, and all claims hold."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"] == []
    assert [claim.name for claim in claims.read(notebook) if claim.holds is False] == []


def test_all_cells_run(lab: Lab) -> None:
    check_run(lab.run_all())


@pytest.mark.parametrize("width", [1280, 800])
def test_page_is_whole(lab: Lab, width: int) -> None:
    lab.page.set_viewport_size({"width": width, "height": HEIGHT})
    if width == 800:
        lab.page.keyboard.press("Control+b")  # the list of files would take a third of the page
    assert lab.photograph(f"{lab.path.stem}-{width}") > 3
    images = lab.notebook.locator("img")
    assert images.count() and not any(image.evaluate(BROKEN) for image in images.all())
    expect(lab.notebook.locator(".jp-MarkdownCell:not(.jp-mod-rendered)")).to_have_count(0)
    texts = lab.notebook.locator(".jp-RenderedMarkdown").all_text_contents()
    assert texts and [text for text in texts if LEFT_MATHS.search(text)] == []
    expect(lab.notebook.locator(".MathJax_Error, mjx-merror")).to_have_count(0)


def test_claims_are_shown_as_a_table(lab: Lab) -> None:
    table = lab.notebook.locator("table", has_text=f"The claims of lesson {lab.path.stem}")
    table.scroll_into_view_if_needed()
    expect(table).to_be_visible()
    expect(table.locator("tbody tr")).to_have_count(len(claims.read(lab.read())))


def test_hints_unfold(lab: Lab) -> None:
    hints = lab.notebook.locator("details")
    assert hints.count() >= 3
    for hint in hints.all():
        hint.scroll_into_view_if_needed()
        text = hint.locator("> :not(summary)").first
        expect(text).to_be_hidden()
        hint.locator("summary").click()
        expect(text).to_be_visible()


@pytest.mark.parametrize("time", ["once", "twice"])
def test_kernel_restarts_and_all_cells_run(lab: Lab, time: str) -> None:
    check_run(lab.run_all(restart=True))


def test_nothing_comes_from_elsewhere(lab: Lab) -> None:
    assert lab.hosts - {""} == {urlsplit(lab.page.url).netloc}
