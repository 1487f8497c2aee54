#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Builds the playground and uses it in a browser. Its plans have to be those of the program `plan`.

    playground_test.py PLAN_PROGRAM SOURCE_FOLDER BUILD_FOLDER CXX [TEST...]

Exits with 77 (skipped) where Emscripten or Chromium is missing.
"""

import functools
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse
import urllib.request

import browser
import plans

PLAN, SOURCE, BUILD = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
CXX = sys.argv[4]
CONFIGS = SOURCE / "tests/data/configs"
FAMILIES = SOURCE / "tests/data/family_configs.jsonl"
PAGE = (BUILD / "index.html").as_uri()
FLAGS = {"--fold", "--single-rate", "--layers"}
FILES = {"--config": "config.json", "--base-config": "base_config.json"}

ELEMENT = "const e = document.createElement('{0}'); {1}; document.{2}.append(e);"
# Ways in which a page may reach a server without leaving: one or two for each directive of its policy.
WAYS = {
    "fetch": "return fetch(PLACE);",
    "fetch-no-cors": "return fetch(PLACE, {mode: 'no-cors', method: 'POST', body: 'x', keepalive: true});",
    "beacon": "navigator.sendBeacon(PLACE, 'x');",
    "websocket": "new WebSocket(PLACE.replace('http', 'ws'));",
    "image": "new Image().src = PLACE;",
    "audio": "new Audio(PLACE).play();",
    "blob-worker": "new Worker(URL.createObjectURL(new Blob([`fetch(${JSON.stringify(PLACE)})`])));",
    "import": "return import(PLACE);",
    "font": "const f = new FontFace('f', `url(${PLACE})`); document.fonts.add(f); return f.load();",
    "style": "document.body.style.backgroundImage = `url(${PLACE})`;",
    "script": ELEMENT.format("script", "e.src = PLACE", "body"),
    "frame-text": ELEMENT.format("iframe", "e.srcdoc = `<img src=${PLACE}>`", "body"),
    "object": ELEMENT.format("object", "e.data = PLACE", "body"),
    "stylesheet": ELEMENT.format("link", "e.rel = 'stylesheet'; e.href = PLACE", "head"),
    "prefetch": ELEMENT.format("link", "e.rel = 'prefetch'; e.href = PLACE", "head"),
    "manifest": ELEMENT.format("link", "e.rel = 'manifest'; e.href = PLACE", "head"),
    "form": ELEMENT.format("form", "e.action = PLACE; e.method = 'post'", "body") + "e.submit();",
    "base": ELEMENT.format("base", "e.href = PLACE + '/'", "head") + "new Image().src = 'x';",
}
# Ways in which text may become a script.
SCRIPTS = {
    "eval": "eval('window.ran = 1');",
    "inline": ELEMENT.format("script", "e.textContent = 'window.ran = 1'", "body"),
    "handler": ELEMENT.format("img", "e.setAttribute('onerror', 'window.ran = 1'); e.src = 'data:,'", "body"),
    "markup": "document.body.insertAdjacentHTML('beforeend', '<img src=x: onerror=\"window.ran = 1\">');",
    "address": ELEMENT.format("a", "e.href = 'javascript:window.ran = 1'", "body") + "e.click();",
    "data": ELEMENT.format("script", "e.src = 'data:text/javascript,window.ran = 1'", "body"),
    "blob": ELEMENT.format("script", "e.src = URL.createObjectURL(new Blob(['window.ran = 1']))", "body"),
    "frame": ELEMENT.format("iframe", "e.srcdoc = '<script>parent.ran = 1</script>'", "body"),
}


def words_of(line):
    """A line of plans.py as the words of a command."""
    return re.sub(r"\{(.*?)\}", lambda m: str(CONFIGS / f"{m[1]}.json"), line).split()


def pairs_of(line):
    words, pairs = words_of(line), []
    while words:
        name = words.pop(0)
        pairs.append((name, None if name in FLAGS else words.pop(0)))
    return pairs


def address_of(line, **more):
    """What stands after "#": the same options, with the text of files."""
    pairs = []
    for name, value in pairs_of(line):
        if name in FILES:
            value = pathlib.Path(value).read_text(encoding="utf-8")
        pairs.append((name[2:], "true" if value is None else value))
    return urllib.parse.urlencode([*pairs, *more.items()])


def program(*words, cwd=None):
    return subprocess.run([PLAN, *words], capture_output=True, text=True, timeout=60, check=False, cwd=cwd)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Playground(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.browser.resize(1280)
        cls.browser.open(PAGE)

    def tearDown(self):
        errors, requests = self.browser.errors[:], self.browser.requests[:]
        self.browser.errors.clear()
        self.browser.requests.clear()
        self.assertEqual(errors, [])
        self.assertEqual([u for u in requests if not u.startswith((BUILD.as_uri(), "data:", "about:"))], [])

    def js(self, expression):
        return self.browser.evaluate(expression)

    def go(self, address):
        """The page at another address, without loading it again."""
        self.js(f"history.replaceState(null, '', '#' + {json.dumps(address)}); readState()")

    def answer(self, line):
        """The JSON that the page would download, or its error."""
        self.go(address_of(line))
        return self.js("""(() => { try { return ask(requestOf(state), "json").text; }
                                   catch (error) { return "error: " + error.message; } })()""")

    def test_plans_are_those_of_the_program(self):
        lines = plans.OF_RULES + plans.OF_OPTIONS + plans.OF_CONFIGS
        self.assertGreaterEqual(len(lines), 50)
        for line in lines:
            with self.subTest(line):
                run = program(*words_of(line), "--format", "json")
                self.assertEqual(run.returncode, 0, run.stderr)
                text = self.answer(line)
                self.assertFalse(text.startswith("error:"), text)
                self.assertTrue(json.loads(text) == json.loads(run.stdout), "other numbers")
                self.assertTrue(text == run.stdout, "the same numbers in another form")
                said = [re.sub("^plan: ", "", one) for one in run.stderr.splitlines()]
                self.assertEqual(self.js("[...document.querySelectorAll('#messages li')].map((li) => li.textContent)"), said)

    def test_a_config_that_is_a_list_of_tensors(self):
        families = [json.loads(line) for line in FAMILIES.read_text(encoding="utf-8").splitlines()]
        configs = [json.dumps(family["config"]) for family in families if "config" in family]
        self.assertGreater(len(configs), 10)
        for config in configs[::4]:
            with self.subTest(config), tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "config.json").write_text(config, encoding="utf-8")
                run = program(*"--rule mup --config config.json --base-width 128 --format json".split(), cwd=folder)
                self.go(urllib.parse.urlencode({"rule": "mup", "config": config, "base-width": 128}))
                text = self.error() or self.js("ask(requestOf(state), 'json').text")
                self.assertTrue(text == (run.stdout or run.stderr.splitlines()[-1].removeprefix("plan: ")), text[:500])

    def test_every_rule_is_tried(self):
        tried = {words_of(line)[1] for line in plans.OF_RULES}
        self.assertEqual(tried, set(self.js("lists.rules.map((rule) => rule.id)")))

    def test_what_is_refused_is_refused_in_the_same_words(self):
        for line in plans.REFUSED:
            with self.subTest(line):
                run = program(*words_of(line))
                self.assertEqual(run.returncode, 2)
                self.answer(line)
                self.assertEqual(self.js("document.getElementById('error').innerText"), run.stderr.splitlines()[-1].removeprefix("plan: "))
                self.assertTrue(self.js("document.getElementById('plan').hidden"))
        self.go(address_of("--rule gpt2 --preset gpt2"))
        self.assertTrue(self.js("document.getElementById('error').hidden"))

    def test_tables_are_those_of_the_program(self):
        for line in (plans.OF_RULES[8], plans.OF_RULES[16], *plans.OF_OPTIONS[-7:]):
            with self.subTest(line):
                self.go(address_of(line))
                rows = self.js("""[...document.querySelectorAll("#tables tr")].map((row) =>
                    [...row.cells].map((cell) => cell.textContent).join(" "))""")
                plain = [" ".join(row.split()) for row in rows]
                printed = [" ".join(text.split()) for text in program(*words_of(line)).stdout.splitlines()]
                self.assertGreater(len(plain), 10)
                self.assertEqual([row for row in plain if row not in printed], [])

    def test_the_command_line_makes_the_same_plan(self):
        for line in plans.OF_OPTIONS + plans.OF_CONFIGS:
            with self.subTest(line):
                self.go(address_of(line, language="shell"))
                code = self.js("document.getElementById('code').textContent")
                shell = subprocess.run(["bash", "-c", "plan() { printf '%s\\0' \"$@\"; }; " + code], capture_output=True,
                                       text=True, check=True)
                words = shell.stdout.split("\0")[:-1]
                expected = [word for name, value in pairs_of(line) for word in
                            ([name] if value is None else [name, FILES.get(name, value)])]
                self.assertEqual(sorted(words), sorted(expected))

    def test_code_for_code_bases_is_that_of_the_program(self):
        line = "--rule maximal-update --preset gpt2-xl --base-preset gpt2"
        for language in self.js("languages.filter((one) => one.format).map(({id, names}) => ({id, names}))"):
            names = ["--names", "nanogpt"] if "names" in language else []
            with self.subTest(language["id"]):
                self.go(address_of(" ".join([line, *names]), language=language["id"]))
                run = program(*words_of(line), *names, "--format", language["id"])
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertTrue(self.js("document.getElementById('code').textContent") == run.stdout, "other code")
                said = self.js("[...document.querySelectorAll('.messages li')].map((li) => li.textContent)")
                self.assertEqual(said, [one.removeprefix("plan: ") for one in run.stderr.splitlines()])

    def test_code_in_cpp_compiles(self):
        lines = ["--compare complete-p,maximal-update --config {gpt2-xl} --base-preset gpt2 --set alpha=0.5 "
                 "--set base.depth=4 --set base.activation=relu --set activation=relu --set zero_head=true --fold",
                 "--rule maximal-update --preset gpt2 --base-config {gpt2} --start gpt2 --single-rate",
                 "--rule mup --preset gpt2 --base-width 192 --base-depth 3 --optimizer sgd --set table=08"]
        code = ""
        for i, line in enumerate(lines):
            self.go(address_of(line, language="cpp"))
            code += self.js("document.getElementById('code').textContent").replace("int main()", f"int main{i}()")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "main.cpp")
            path.write_text(code, encoding="utf-8")
            run = subprocess.run([CXX, "-std=c++20", "-fsyntax-only", "-I", SOURCE / "include", path],
                                 capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, code[:5000] + run.stderr[:2000])
        for part in ('{"alpha", 0.5}', 'set_field(base, "depth", "4")', 'set_field(target, "activation", "relu")',
                     '{"zero_head", 1}', "fold(", ".start = \"gpt2\"", "single_rate(", "shape_from_config_file", "main2",
                     "base_like(target, {.width = 192, .depth = 3})", 'make_plan("maximal-update"', '{"table", 8}'):
            self.assertIn(part, code)

    def code_of(self, line, language):
        self.go(address_of(line, language=language))
        return self.js("document.getElementById('code').textContent")

    def test_lists_of_tensors_have_no_code_in_cpp(self):
        self.assertIn("docs/any_model.md", self.code_of("--rule mup --preset mixtral-8x7b --base-width 1024", "cpp"))
        self.assertTrue(self.js("document.getElementById('copy').disabled"))

    def test_code_in_pytorch_has_a_command_that_makes_its_plan(self):
        base = "--rule mup --preset {} --base-width {}"
        lines = {base.format("gpt2-xl", 256): "nanogpt", base.format("llama-3-8b", 1024): "hf-llama",
                 base.format("olmo-2-1b", 512): "olmo2", base.format("vit-b16", 192): "hf-vit",
                 base.format("t5-base", 192): "hf-t5", base.format("bert-large", 256): "hf-bert",
                 base.format("pythia-160m", 192): "gpt-neox", base.format("mixtral-8x7b", 1024): None,
                 "--rule mup --config {gpt2} --base-width 192": "hf-gpt2", "--rule gpt2 --config {phi-3-mini}": "phi3"}
        for line, names in lines.items():
            with self.subTest(line), tempfile.TemporaryDirectory() as folder:
                code = self.code_of(line, "pytorch")
                compile(code, "code.py", "exec")
                self.assertEqual("base_std" in code, "mup" in line)
                shell = "".join(text[2:] + "\n" for text in code.splitlines() if text.startswith("# "))
                for name, value in pairs_of(line):
                    if name == "--config":
                        shutil.copy(value, pathlib.Path(folder, "config.json"))
                run = subprocess.run(["bash", "-c", f"plan() {{ '{PLAN}' \"$@\"; }}; {shell}"], cwd=folder,
                                     capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, 0, code + run.stderr)
                plan = json.loads(pathlib.Path(folder, "plan.json").read_text(encoding="utf-8"))
                self.assertEqual(plan.get("dialect"), names)
        for line, said in (("--rule mup --preset vit-b16 --base-width 192 --names nanogpt", "cannot name"),
                           ("--rule mup --preset gpt2 --base-width 192 --optimizer muon-original", "docs/muon.md")):
            self.assertIn(said, self.code_of(line, "pytorch"))

    def test_a_link_restores_what_was_typed(self):
        self.browser.open(PAGE)
        first = program("--rule", "maximal-update", "--preset", "gpt2-xl", "--base-preset", "gpt2", "--format", "json")
        self.assertEqual(self.js("ask(requestOf(state), 'json').text"), first.stdout)
        type_into = """(selector, value) => { const e = document.querySelector(selector); e.value = value;
            e.dispatchEvent(new Event("input", {bubbles: true}));
            return new Promise((done) => setTimeout(done, 300)); }"""
        for selector, value in (("#rule", "complete-p"), ("[data-set=alpha]", "0.75"), ("[data-of=''] [data-model]", "gpt2-large"),
                                ("[data-set=d_model]", "1920"), ("[data-set='base.depth']", "6"),
                                ("[data-set=activation]", "silu"), ("#decay", "independent"), ("#rewrite", "fold"),
                                ("#language", "markdown")):
            self.js(f"({type_into})({json.dumps(selector)}, {json.dumps(value)})")
        self.js("document.getElementById('layers').click(); new Promise((done) => setTimeout(done, 100))")
        look = """({html: document.getElementById("results").innerText, text: ask(requestOf(state), "json").text,
            form: [...document.querySelectorAll("input:not([type=file]),select,textarea")].map((e) => e.value + e.checked)})"""
        before = self.js(look)
        run = program(*("--rule complete-p --preset gpt2-large --base-preset gpt2 --set alpha=0.75 --set d_model=1920 "
                        "--set base.depth=6 --set activation=silu --decay independent --fold --format json").split())
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(before["text"] == run.stdout, "the form does not make the plan that it says")
        self.js("document.getElementById('share').click(); new Promise((done) => setTimeout(done, 100))")
        link = self.js("location.href")
        self.browser.open(link)
        after = self.js(look)
        for key, value in before.items():
            self.assertTrue(after[key] == value, key)
        # Another rule takes its parameters along.
        self.js(f"({type_into})('#rule', 'gpt2')")
        self.assertNotIn("alpha", self.js("location.hash"))

    def error(self):
        return self.js("document.getElementById('error').hidden ? '' : document.getElementById('error').textContent")

    def test_what_the_page_does_not_know_in_an_address_is_an_error(self):
        for words in ("bogus=1", "constant=logits=2", "cut=qkv", "extra=a:hidden:2", "fold=1", "layers=yes",
                      "__proto__=1"):
            with self.subTest(words):
                self.go("rule=gpt2&preset=gpt2&" + words)
                self.assertIn("--" + words.split("=")[0], self.error())
                self.assertTrue(self.js("document.getElementById('plan').hidden"))
        self.go("rule=gpt2&preset=gpt2&set=" + "x" * 200_000 + "=1")
        self.assertLess(len(self.error()), 1000)
        self.go("compare=mup,NTK&preset=gpt2&base-preset=gpt2")
        self.assertEqual(self.js("state.compare"), "maximal-update,neural-tangent")

    def type_into(self, *pairs):
        """As from a keyboard, without a pause: an element that is left says that it was changed."""
        leave = 'e.dispatchEvent(new Event("change", {bubbles: true}));'
        for i, (selector, value) in enumerate(pairs):
            self.js(f"""{{ const e = document.querySelector({json.dumps(selector)}); e.focus(); e.value = {json.dumps(value)};
                e.dispatchEvent(new Event("input", {{bubbles: true}})); {leave * (i + 1 < len(pairs))} }}""")

    def test_what_was_typed_is_not_lost(self):
        self.go(address_of("--rule gpt2 --preset gpt2"))
        self.type_into(("[data-set=d_model]", "5120"), ("[data-set=heads]", "64"))
        self.js("document.getElementById('share').click()")
        self.assertIn("set=d_model=5120&set=heads=64", self.js("location.hash"))
        self.go("compare=gpt2,he,xavier&preset=gpt2")
        self.type_into(("#rule", "bert"))
        self.js("flush()")
        self.assertEqual(self.js("state.compare"), "bert,he,xavier")

    def test_back_leads_to_the_last_choice(self):
        self.browser.open(PAGE)
        self.type_into(("[data-set=depth]", "7"), ("[data-of=''] [data-model]", "gpt2-large"))
        self.js("flush()")
        self.assertEqual(self.js("[shown.shape.d_model, shown.shape.depth]"), ["1280", "36"])
        self.js("history.back(); new Promise((done) => setTimeout(done, 300))")
        self.assertEqual(self.js("[shown.shape.d_model, shown.shape.depth]"), ["1600", "7"])
        self.assertEqual(self.js("document.querySelector('[data-set=depth]').value"), "7")

    def test_a_phone_shows_errors_and_names(self):
        self.browser.resize(390, 844)
        self.addCleanup(self.browser.resize, 1280)
        self.go(address_of("--rule gpt2 --preset gpt2 --set heads=7"))
        self.js("document.querySelector('[data-of=\"\"] details').open = true; scrollTo(0, 700)")
        self.assertLess(self.js("document.getElementById('error').getBoundingClientRect().bottom"), 844)
        self.assertGreaterEqual(self.js("document.getElementById('error').getBoundingClientRect().top"), 0)
        self.assertEqual(self.js("document.querySelector('[aria-invalid]').dataset.set"), "heads")
        defaults = "[$('form').querySelector('[data-set=d_ff]').placeholder, $('form').querySelector('[data-set=biases]')[0].text]"
        self.assertEqual(self.js(defaults), ["", ""])  # not those of the last plan
        self.go(address_of("--rule gpt2 --preset gpt2"))
        self.assertEqual(self.js("document.querySelectorAll('[aria-invalid]').length"), 0)
        self.assertEqual(self.js(defaults), ["3072", "(true)"])
        self.assertEqual(self.js("""(() => { const region = document.querySelectorAll(".scroll")[1]; region.scrollLeft = 300;
            return region.querySelector("tbody th").getBoundingClientRect().left - region.getBoundingClientRect().left; })()"""), 1)
        for dark in (False, True):
            self.browser.resize(390, 844, dark=dark)
            self.assertGreaterEqual(self.js("""(() => { const light = (text) => text.match(/\\d+/g).slice(0, 3).map((c) => c / 255)
                .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
                .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0.05);
                const of = (element, key) => light(getComputedStyle(element)[key]);
                const edge = of($("rule"), "borderTopColor");
                return Math.min(...[$("rule"), $("rule").closest("fieldset")].map((e) => of(e, "backgroundColor"))
                    .map((back) => Math.max(edge / back, back / edge))); })()"""), 3)

    def test_a_copy_that_fails_is_said(self):
        self.go(address_of("--rule gpt2 --preset gpt2"))
        self.js("navigator.clipboard && (navigator.clipboard.writeText = () => Promise.reject());"
                "document.execCommand = () => false;"
                "document.getElementById('share').click(); new Promise((done) => setTimeout(done, 100))")
        self.assertIn("does not let", self.js("document.getElementById('done').textContent"))
        self.browser.open(PAGE)

    def test_five_thousand_layers_have_their_rows(self):
        self.go(address_of("--rule gpt2 --preset gpt2 --set depth=5000 --layers"))
        self.assertEqual(self.error(), "")
        self.assertGreater(self.js("document.querySelectorAll('#tables tr').length"), 30_000)
        self.browser.open(PAGE)

    def test_without_webassembly_the_page_says_what_it_needs(self):
        self.browser.open(PAGE, "delete window.WebAssembly", "false")
        self.assertIn("cannot run the page", self.error())
        self.assertTrue(self.js("document.getElementById('rule').matches(':disabled')"))
        self.assertIn("Firefox 102", self.js("document.getElementById('needs').innerText"))
        self.browser.errors.clear()
        self.browser.open(PAGE)
        self.assertTrue(self.js("document.getElementById('needs').hidden"))

    def test_a_dropped_file_is_the_model(self):
        self.go(address_of("--rule gpt2 --preset gpt2"))
        text = (CONFIGS / "llama-2-7b.json").read_text(encoding="utf-8")
        self.js("""(() => { const data = new DataTransfer(); data.items.add(new File([%s], "config.json"));
            document.getElementById("results").dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true}));
            return new Promise((done) => setTimeout(done, 200)); })()""" % json.dumps(text))
        self.assertEqual(self.js("shown.shape.d_model"), "4096")
        self.assertEqual(self.js("document.querySelector('[data-of=\"\"] textarea').value"), text)

    def test_the_download_is_the_json_of_the_program(self):
        self.go(address_of("--rule he --preset gpt2"))
        text = self.js("""(() => { const make = URL.createObjectURL; let blob;
            URL.createObjectURL = (one) => { blob = one; return "#" + location.hash.slice(1); };
            document.getElementById("download").click(); URL.createObjectURL = make; return blob.text(); })()""")
        self.assertEqual(text, program("--rule", "he", "--preset", "gpt2", "--format", "json").stdout)

    def test_every_control_has_a_name_and_takes_the_focus(self):
        self.browser.open(PAGE)
        self.assertEqual(self.js("""[...document.querySelectorAll("input,select,textarea")]
            .filter((e) => !e.labels.length || !e.labels[0].textContent.trim()).map((e) => e.outerHTML)"""), [])
        reached = set()
        for _ in range(40):
            self.browser.press("Tab", code="Tab", windowsVirtualKeyCode=9)
            reached.add(self.js("document.activeElement.id || document.activeElement.tagName"))
        self.assertLessEqual({"rule", "second", "optimizer", "layers", "share", "download", "language", "names", "copy",
                              "code", "SUMMARY", "SELECT"}, reached)

    def served(self, handler):
        """The address of a server until the end of the test."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}/"

    def test_a_server_works_as_well_and_the_page_is_small(self):
        files = [path for path in BUILD.iterdir() if path.is_file()]
        self.assertEqual({path.name for path in files}, {"index.html"})
        # Without optimization, which takes most of the time of a build, four times as large as published.
        self.assertLess(sum(path.stat().st_size for path in files), 5_500_000)

        origin = self.served(functools.partial(Quiet, directory=BUILD))
        self.browser.requests.clear()
        self.browser.open(origin + "#" + address_of("--rule he --preset gpt2"))
        self.assertEqual(self.js("shown.plans[0].rule"), "he")
        self.assertEqual([u for u in self.browser.requests if not u.startswith((origin, "data:", "about:"))], [])
        self.browser.open(PAGE)
        self.browser.requests.clear()

    def page_runs(self, codes):
        """Runs codes in the page as its own scripts do, and not by the tools of the browser, which may do more."""
        self.browser.open(PAGE)
        for code in codes:
            self.js(f"setTimeout(async () => {{ try {{ await (() => {{ {code} }})(); }} catch {{}} }})")
        self.js("new Promise((done) => setTimeout(done, 1500))")
        self.browser.errors.clear()
        self.browser.requests.clear()

    def test_no_way_leads_to_a_server(self):
        asked = []

        class Listens(Quiet):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(200)
                self.send_header("Access-Control-Allow-Origin", "*")
                self.end_headers()

            do_POST = do_HEAD = do_OPTIONS = do_GET

        place = self.served(Listens)
        self.page_runs(code.replace("PLACE", json.dumps(place + name)) for name, code in WAYS.items())
        self.assertEqual(asked, [])
        self.assertEqual(self.js("location.href.split('#')[0]"), PAGE)
        # The listener does hear what is not forbidden.
        urllib.request.urlopen(place + "heard", timeout=10).close()
        self.assertEqual(asked, ["/heard"])

    def test_no_script_runs_but_those_of_the_page(self):
        self.page_runs(code.replace("ran = 1", f"ran = {i + 1}") for i, code in enumerate(SCRIPTS.values()))
        self.assertEqual(self.js("typeof window.ran"), "undefined")
        self.page_runs(["window.ran = 1"])
        self.assertEqual(self.js("window.ran"), 1)

    def test_long_texts_are_read_or_refused_in_one_message(self):
        self.browser.open(PAGE)
        text = json.loads((CONFIGS / "gpt2.json").read_text(encoding="utf-8"))
        for letter, size in (("x", 2_000_000), ("é", 900_000)):
            with self.subTest(letter):
                self.js(f"""(() => {{ setModel("", "config.json");
                    state.config = JSON.stringify({{...{json.dumps(text)}, unused: "{letter}".repeat({size})}}); changed(); }})()""")
                said = self.js("document.getElementById('error').hidden ? '' : document.getElementById('error').textContent")
                self.assertEqual(said, "")
                self.assertEqual(self.js("shown.shape.d_model"), "768")
        self.js("document.getElementById('share').click()")
        self.assertIn("too long for a link", self.js("document.getElementById('done').textContent"))
        self.js("state.config = '['.repeat(2000000); changed()")
        self.assertIn("nested deeper than 64", self.js("document.getElementById('error').textContent"))
        self.js("state.config = '{'; changed()")
        self.assertIn("valid JSON", self.js("document.getElementById('error').textContent"))
        self.browser.open(PAGE)  # another address for the tests that follow
        self.assertEqual(self.js("shown.shape.d_model"), "1600")


if not browser.chromium():
    print("test skipped: Chromium (chromium) not found")
    sys.exit(77)
build = subprocess.run([SOURCE / "scripts/playground.sh", BUILD, "-O0"], check=False).returncode
if build == 2:
    print("test skipped: Emscripten (emscripten, node-acorn) not found")
    sys.exit(77)
if build != 0:
    sys.exit("scripts/playground.sh failed")
unittest.main(argv=sys.argv[:1] + sys.argv[5:])
