"""The hand-in's page in a browser without a window: desktop, phone, light and dark, filtered, printed."""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "reports/examples/handin-2026.html"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
# What a person would look for, asked of the page by a script at its end.
QUESTIONS = """<script>
const said = {}, root = document.documentElement, colours = () => {
  const style = getComputedStyle(document.body);
  return [style.color, style.backgroundColor];
};
said.width = root.scrollWidth; said.window = innerWidth; said.height = root.scrollHeight;
said.tables = document.querySelectorAll('section.table').length;
const wide = Array.from(document.querySelectorAll('div.wide')).find((box) => box.scrollWidth > box.clientWidth + 40);
if (wide) {
  wide.scrollLeft = wide.scrollWidth;
  const first = wide.querySelector('tbody td');
  said.stays = Math.abs(first.getBoundingClientRect().left - wide.getBoundingClientRect().left) < 4;
}
said.first = colours();
document.querySelector('#tools button').click();
said.second = colours();
document.querySelector('#tools button').click();
const filter = document.querySelector('#tools input');
filter.value = 'cpu10m overlap';
filter.dispatchEvent(new Event('input'));
const seen = (element) => element.offsetParent !== null;
said.rows = Array.from(document.querySelectorAll('tbody tr')).filter(seen).map((row) => row.textContent);
said.headings = Array.from(document.querySelectorAll('main h2')).filter(seen).map((heading) => heading.id);
said.links = Array.from(document.querySelectorAll('nav li > a')).filter(seen).length;
parent.postMessage(JSON.stringify(said), '*');
</script>"""

# In a frame: a window cannot be as narrow as a phone's.
FRAME = """<!doctype html><body><script>addEventListener('message', (event) => { document.body.dataset.said = event.data; });</script>
<iframe src="page.html" style="border: 0; width: WIDTHpx; height: 900px"></iframe></body>"""


def brightness(colour):
    red, green, blue = (float(one) / 255 for one in re.findall(r"[\d.]+", colour)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@unittest.skipUnless(BROWSER and PAGE.exists(), "no Chromium is installed")
class Page(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="syslab-page-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.page = self.folder / "page.html"
        self.page.write_text(PAGE.read_text(encoding="utf-8").replace("</body>", QUESTIONS + "</body>"), encoding="utf-8")

    def browser(self, *arguments, page):
        return subprocess.run([BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/profile",
                               *arguments, page.as_uri()], check=True, capture_output=True, text=True, timeout=90).stdout

    def said(self, width):
        frame = self.folder / "frame.html"
        frame.write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
        dom = self.browser("--window-size=1500,1000", "--virtual-time-budget=5000", "--dump-dom", page=frame)
        found = re.search(r'<body[^>]* data-said="([^"]*)"', dom)
        assert found is not None, dom
        return json.loads(found.group(1).replace("&quot;", '"').replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))

    def test_on_a_desktop_and_a_phone(self):
        for width in (1400, 390):
            with self.subTest(width=width):
                said = self.said(width)
                self.assertEqual(said["window"], width)
                self.assertLessEqual(said["width"], width, "nothing reaches beyond the window")
                self.assertLess(said["height"], 40 * 1000)
                self.assertGreater(said["tables"], 10)
                self.assertIn(said.get("stays", True), (True,), "the first column stays in sight")
                # Dark on light and light on dark, whichever the system begins with.
                for text, ground in (said["first"], said["second"]):
                    self.assertGreater(abs(brightness(text) - brightness(ground)), 0.6)
                self.assertNotEqual(brightness(said["first"][1]) > 0.5, brightness(said["second"][1]) > 0.5)
                # Filtered: rows with all words, and no section without one.
                self.assertTrue(said["rows"])
                for row in said["rows"]:
                    self.assertTrue("cpu10m" in row and "overlap" in row, row)
                self.assertLess(len(said["headings"]), 4)
                self.assertIn("ddp_overlap_individual_parameters", said["headings"])
                self.assertEqual(said["links"], len(said["headings"]))

    def test_printed_it_is_as_long_as_a_person_reads(self):
        printed = self.folder / "page.pdf"
        self.browser(f"--print-to-pdf={printed}", "--no-pdf-header-footer", page=PAGE)
        pages = len(re.findall(rb"/Type\s*/Page[^s]", printed.read_bytes()))
        self.assertGreater(pages, 5)
        self.assertLessEqual(pages, 24)


if __name__ == "__main__":
    unittest.main()
