#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The HTML pages that `--out` writes: read by a parser and compared with the JSON.

    report_cli.py FOLDER_OF_PROGRAMS
"""

import base64
import html
import html.parser
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve()
TEXT = ("It is a truth universally acknowledged, that a tested program may be trusted. " * 40).encode()
HOSTILE = "<img src=x onerror='window.bad=1'>&amp;\"<script>window.bad=1"  # a name of a file, and of a tensor
CHECK = ["coordinate_check", "--head-dim", "8", "--seq", "16", "--batch", "4", "--steps", "2", "--sizes",
         "16,32,64,128", "--quiet"]
SWEEP = ["learning_rate_transfer", "--text", HOSTILE, "--head-dim", "4", "--depth", "1", "--seq", "8", "--batch", "2",
         "--steps", "20", "--seeds", "2", "--sizes", "8,16", "--quiet"]
EXPERTS = ["coordinate_check", "--axis", "experts", "--sizes", "4,8,16,32", "--width", "32", "--head-dim", "8", "--depth", "1",
           "--steps", "2", "--seq", "16", "--batch", "4", "--set", "mssp=true", "--gates", "sigmoid",
           "--set", "experts_per_token=experts/2", "--set", "expert_ff=32", "--quiet"]
NO_TRANSFER = ["learning_rate_transfer", "--rule", "standard", "--sizes", "16,64", "--head-dim", "8", "--depth", "1", "--steps", "5",
               "--seeds", "4", "--activation", "relu", "--rotary", "--seq", "16", "--batch", "4", "--set", "biases=false", "--quiet"]
# Of each page: the command, and what it may end with.
PAGES = {
    "pass": ([*CHECK], 0),
    "fail": ([*CHECK, "--fault", "missing:output-multiplier"], 1),
    "inconclusive": ([*CHECK, "--seeds", "1"], 3),
    "judged": ([*CHECK, "--judge", HOSTILE + ".csv"], 3),
    "sweep": ([*SWEEP], None),
    "experts": ([*EXPERTS], 0),
    "no transfer": ([*NO_TRANSFER], 1),
}
ENVIRONMENT = {**os.environ, "OMP_WAIT_POLICY": "passive"}
VOID = {"meta", "img"}


class Page(html.parser.HTMLParser):
    """Sections of tables by their headings; complains about whatever is not balanced."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.wrong, self.links, self.handlers = [], [], [], [], []
        self.texts, self.tables, self.heading = [], {}, ""
        self.feed(text)
        self.close()
        self.wrong += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [value for name, value in attributes.items() if name in ("src", "href", "srcset", "action")]
        self.handlers += [name for name in attributes if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "h2":
            self.heading = ""
        if tag == "table":
            self.tables[self.heading] = []
        if tag == "tr":
            self.tables[self.heading].append([])
        if tag in ("td", "th"):
            self.tables[self.heading][-1].append(["", attributes.get("title", "")])

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data):
        if not self.open or self.open[-1] in ("style", "script"):
            return
        self.texts.append(data)
        if self.open[-1] == "h2":
            self.heading += data
        if self.open[-1] in ("td", "th"):
            self.tables[self.heading][-1][-1][0] += data

    def rows(self, heading):
        """The rows of a table, by the names of its columns: text and title of each cell."""
        header, *rows = self.tables[heading]
        return [dict(zip((text for text, _ in header), row, strict=True)) for row in rows]

    def text(self):
        return " ".join(self.texts)


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", text)]


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        (cls.folder / HOSTILE).write_bytes(TEXT)
        records = "size,seed,step,signal,name,sum_abs,sum_squares,count\n"
        for size in (16, 32, 64, 128):
            records += f"{size},1,0,value,logits,1,1,1\n"
            records += f'{size},1,0,value,"{HOSTILE.replace(chr(34), chr(34) * 2)}",1,1,1\n'
        (cls.folder / (HOSTILE + ".csv")).write_text(records, encoding="utf-8")
        cls.page, cls.json = {}, {}
        for name, (command, code) in PAGES.items():
            done = cls.run_program(*command, "--out", name)
            if done.returncode not in ((0, 1, 3) if code is None else (code,)):
                raise AssertionError(f"{name}: {done.stdout}{done.stderr}")
            stem = cls.folder / name / command[0]
            cls.json[name] = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
            cls.page[name] = stem.with_suffix(".html").read_text(encoding="utf-8")
        cls.parsed = {name: Page(text) for name, text in cls.page.items()}

    @classmethod
    def run_program(cls, program, *arguments, **environment):
        return subprocess.run([PROGRAMS / program, *arguments], capture_output=True, text=True, cwd=cls.folder,
                              timeout=100, check=False, env={**ENVIRONMENT, **environment})

    def test_pages_are_well_formed_and_need_no_other_file(self):
        for name, page in self.parsed.items():
            with self.subTest(page=name):
                self.assertTrue(self.page[name].startswith("<!DOCTYPE html>\n<html lang=\"en\">"))
                self.assertEqual(page.wrong, [])
                self.assertEqual(len(page.ids), len(set(page.ids)))
                self.assertEqual([link[:30] for link in page.links if not link.startswith("data:image/svg+xml;")], [])
                self.assertNotRegex(self.page[name], r"url\(|@import|https?://")

    def test_the_verdict_comes_first_with_its_reason(self):
        reasons = {"pass": "Every slope agrees", "fail": "output multiplier missing", "judged": "Missing: ",
                   "sweep": self.json["sweep"]["reason"][1:]}
        for name, page in self.parsed.items():
            with self.subTest(page=name):
                verdict = self.json[name]["verdict"]
                text = page.text()
                self.assertLess(text.index(verdict.upper()), 400)
                self.assertIn(f'<div class="verdict {verdict}">', self.page[name])
                self.assertLess(text.index(reasons.get(name, "")), 800)
        self.assertIn("The mistake named above is the most likely cause", self.parsed["fail"].text())

    def same_number(self, cell, value):
        """All digits on demand, and four of them in sight."""
        text, exact = cell
        if value is None or value == "zero":
            self.assertEqual(text, "zero" if value else "–")
            return
        values = value if isinstance(value, list) else [value]
        values = values[:1] if values[0] == values[-1] else values
        self.assertEqual(numbers(exact), values)
        self.assertEqual(numbers(text), [float(f"{number:.4g}") for number in values])

    def test_all_quantities_are_there(self):
        for name in ("pass", "fail", "inconclusive", "judged"):
            quantities = self.json[name]["quantities"]
            rows = self.parsed[name].rows("All rows")
            self.assertEqual(len(rows), len(quantities))
            for row, quantity in zip(rows, quantities):
                for key in ("signal", "name", "regime", "reason"):
                    self.assertEqual(row[key][0], quantity[key] or "–")
                self.assertEqual(row["verdict"][0], quantity["verdict"] or "not judged")
                for key in ("step", "slope", "error", "expected", "deviation"):
                    self.same_number(row[key], quantity[key])
                for point in quantity["points"]:
                    text, exact = row[f"log rms at {point['size']}"]
                    self.assertEqual(numbers(exact), [point["mean_log_rms"], point["deviation"], point["runs"]])
                    self.assertEqual(numbers(text), [float(f"{point[k]:.4g}") for k in ("mean_log_rms", "deviation")])

    def test_rows_that_fail_stand_apart(self):
        for name in ("pass", "fail"):
            failed = [q for q in self.json[name]["quantities"] if q["verdict"] == "fail"]
            if not failed:
                self.assertNotIn("Rows that fail", self.parsed[name].tables)
                continue
            rows = self.parsed[name].rows("Rows that fail")
            self.assertEqual([(r["signal"][0], r["name"][0], r["step"][0]) for r in rows],
                             [(q["signal"], q["name"], str(q["step"])) for q in failed])

    def test_the_map_of_slopes_has_the_numbers_of_the_json(self):
        """A cell for each slope that is judged; frames are failures."""
        tag = "{http://www.w3.org/2000/svg}"
        for name in ("pass", "fail", "inconclusive", "judged"):
            with self.subTest(page=name):
                file = (self.folder / name / "coordinate_check_slopes.svg").read_text(encoding="utf-8")
                self.assertIn(base64.b64encode(file.encode()).decode(), self.page[name])
                shown = {}
                for rect in xml.fromstring(file).iter(tag + "rect"):
                    found = re.match(r"(\w+) of (.*) at step (\d+): .*: (\w+)$", rect.findtext(tag + "title") or "")
                    if found:
                        self.assertEqual("k" in rect.get("class").split(), found[4] == "fail")
                        shown[found[1], found[2], int(found[3])] = found[4]
                judged = {(q["signal"], q["name"], q["step"]): q["verdict"] for q in self.json[name]["quantities"]}
                self.assertEqual(shown, {key: verdict for key, verdict in judged.items() if verdict is not None})

    def test_all_runs_of_a_sweep_are_there(self):
        report, page = self.json["sweep"], self.parsed["sweep"]
        for heading, rows in (("All runs", report["runs"]), ("All sizes", report["sizes"])):
            shown = page.rows(heading)
            self.assertEqual(len(shown), len(rows))
            for cells, row in zip(shown, rows):
                for key, value in row.items():
                    if isinstance(value, dict):
                        for part, number in value.items():
                            self.same_number(cells[key if part == "value" else f"{key} {part}"], number)
                    elif isinstance(value, bool):
                        self.assertEqual(cells[key][0], "yes" if value else "no")
                    else:
                        self.same_number(cells[key], value)
        drift = {row["name"][0]: row["value"] for row in page.rows("Numbers of the verdict")}
        for key, value in report["drift"].items():
            self.same_number(drift[f"drift {key}"], value)

    def test_settings_machine_and_version_are_there(self):
        version = self.run_program("coordinate_check", "--version").stdout.split()[3]
        for name, page in self.parsed.items():
            settings = {row["setting"][0]: row["value"] for row in page.rows("Settings")}
            self.assertEqual(list(settings), list(self.json[name]["settings"]))
            for key, value in self.json[name]["settings"].items():
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    self.same_number(settings[key], value)
            machine = {row["name"][0]: row["value"][0] for row in page.rows("Machine and version")}
            self.assertEqual((machine["scalewise"], machine["products"]),
                             (version, self.json[name]["machine"]["products"]))

    def test_texts_are_escaped(self):
        for name in ("judged", "sweep"):
            page = self.parsed[name]
            self.assertEqual(page.handlers, [])
            self.assertEqual(self.page[name].count("<script>"), 1)
            self.assertIn(HOSTILE.replace("'", "'\\''"), page.text())  # in the command, quoted for a shell
        self.assertIn(HOSTILE + ": no observable", self.parsed["judged"].text())

    def test_the_command_reproduces_the_page(self):
        for name in ("fail", "sweep"):
            command = html.unescape(re.search("How to reproduce.*?<pre>(.*?)</pre>", self.page[name], re.DOTALL)[1])
            again = subprocess.run(["bash", "-c", f'{command} --quiet --threads 1 --out "again {name}"'],
                                   capture_output=True, text=True, cwd=self.folder, timeout=100, check=False,
                                   env={**ENVIRONMENT, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"})
            self.assertIn(again.returncode, (0, 1, 3), again.stderr)
            page = self.folder / f"again {name}" / (PAGES[name][0][0] + ".html")
            self.assertEqual(page.read_text(encoding="utf-8"), self.page[name])

    def inputs(self, command):
        """The options of a command for a shell, with their values, as the program reads them."""
        shown = subprocess.run(["bash", "-c", command + " --dry-run"], capture_output=True, text=True, cwd=self.folder, timeout=100,
                               check=False, env={**ENVIRONMENT, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"})
        self.assertEqual(shown.returncode, 0, shown.stderr)
        found = dict(re.findall("^(--[a-z-]+) = (.*)$", shown.stdout, re.MULTILINE))
        words = shlex.split(command)  # since long texts are cut
        found["--set"] = [value for option, value in zip(words, words[1:]) if option == "--set"]
        return found

    def test_the_next_command_trains_the_same_models(self):
        """All that both programs have is the same, but for how long and how fast they train."""
        of_training = {"--steps", "--rate", "--warmup", "--schedule"}
        for name in ("pass", "experts", "no transfer"):
            with self.subTest(name):
                command = html.unescape(re.search("What to try next.*?<pre>(.*?)</pre>", self.page[name], re.DOTALL)[1])
                sizes = [re.search("--sizes ([0-9,]+)", text)[1] for text in (command, shlex.join(PAGES[name][0]))]
                self.assertEqual(sizes[0], sizes[1])
                asked, told = self.inputs(shlex.join(PAGES[name][0])), self.inputs(command)
                both = (asked.keys() & told.keys()) - of_training - {"--judge"}  # none, which is a list in one of them
                self.assertGreater(len(both), 15)
                told["--set"] = [text for text in told["--set"] if text != "tied_head=false"]  # as coordinate_check has it anyway
                self.assertEqual({name: told[name] for name in both}, {name: asked[name] for name in both})
                self.assertNotIn("--help", command)

    def test_without_gnuplot_the_page_says_so(self):
        done = self.run_program(*PAGES["sweep"][0], "--out", "plain", PATH=str(self.folder / "none"))
        self.assertIn("no pictures: gnuplot was not found", done.stderr)
        page = Page((self.folder / "plain/learning_rate_transfer.html").read_text(encoding="utf-8"))
        self.assertIn("No pictures: gnuplot was not found", page.text())
        self.assertEqual(page.links, [])

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
