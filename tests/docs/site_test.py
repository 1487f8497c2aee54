#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""site_test.py <folder>: builds the site there by scripts/site.sh, and checks that

- every link and anchor inside the site leads somewhere, and the navigation has all pages;
- no page or style sheet loads anything from elsewhere;
- the search has an index, which finds "weight decay", and the same as a script.

Exit code: 0, 1 when something is wrong, 77 when a program that builds the site is missing.
"""

import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loaded, self.classes = {"", "top"}, [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        self.classes |= set((values.get("class") or "").split())
        if tag in ("a", "area") and values.get("href"):
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") != "canonical" and values.get("href"):
            self.loaded.append(values["href"])
        self.loaded += [values[key] for key in ("src", "srcset", "data", "poster") if values.get(key)]
        self.loaded += re.findall(r"url\(['\"]?([^)'\"]+)", values.get("style") or "")

    def handle_data(self, data):
        self.loaded += re.findall(r"@import ['\"]([^'\"]+)", data)


def is_external(target):
    return bool(re.match(r"(?!data:|javascript:)([a-z][a-z0-9+.-]*:|//)", target, re.IGNORECASE))


def problems_of(site):
    files = {path for path in site.rglob("*") if path.is_file()}
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(files) if path.suffix == ".html"}
    for path, page in pages.items():
        name = path.relative_to(site)
        # A server's page has links from its root.
        for link in page.links + page.loaded if name.name != "404.html" else ():
            if is_external(link) or link.startswith(("data:", "javascript:")):
                continue
            file, _, anchor = link.partition("#")
            file = urllib.parse.unquote(file.partition("?")[0])
            target = pathlib.Path(os.path.normpath(path.parent / file)) if file else path
            if target not in files:
                yield f"{name}: {link} leads nowhere"
            elif anchor == "nested-classes" and name.parts[0] == "api":
                continue  # of private classes, which Doxygen links to and does not show
            elif target in pages and urllib.parse.unquote(anchor) not in pages[target].anchors:
                yield f"{name}: {link} has no such anchor"
        yield from (f"{name}: loads {url}" for url in page.loaded if is_external(url))
        # Elements for which the theme's script would fetch a library, or the stars of a repository.
        yield from (f"{name}: has {one}" for one in ("mermaid", "md-source") if one in page.classes)
    for sheet in site.rglob("*.css"):
        for url in re.findall(r"url\(['\"]?([^)'\"]+)|@import ['\"]([^'\"]+)", sheet.read_text(encoding="utf-8")):
            if is_external("".join(url)):
                yield f"{sheet.relative_to(site)}: loads {''.join(url)}"

    linked = {site / link.partition("#")[0] for link in pages[site / "index.html"].links}
    for page in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("lab/**/*.md"), ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]:
        name = page.relative_to(ROOT)
        html_name = name.with_name("index.html") if name.name == "README.md" else name.with_suffix(".html")
        if site / html_name not in linked:
            yield f"{html_name}: not in the navigation, which follows docs/README.md"

    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    if not any("weight decay" in f"{entry['title']} {entry['text']}".lower() for entry in index["docs"]):
        yield "search: nothing is found for weight decay"
    script = (site / "search/search_index.js").read_text(encoding="utf-8")
    if json.loads(script.partition("(")[2].rpartition(")")[0]) != index:
        yield "search: the script has another index"
    print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links, "
          f"{len(index['docs'])} entries of the search")


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    build = subprocess.run([ROOT / "scripts/site.sh", site], check=False)
    if build.returncode:
        sys.exit(build.returncode)
    problems = sorted(set(problems_of(site)))
    if problems:
        print("\n".join(problems[:50]))
    sys.exit(1 if problems else 0)


main()
