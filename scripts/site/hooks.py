# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Hooks of MkDocs: the navigation follows docs/README.md, with its other pages where those of their folder are, and
the search works without a server."""

import json
import pathlib
import posixpath
import re

from mkdocs.structure.nav import Link

ROOT = pathlib.Path(__file__).resolve().parents[2]
INDEX = "docs/README.md"


def navigation(text):
    """A section for each heading of the index with links to pages that no heading before it has."""
    seen, sections = set(), []
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        pages = []
        for name, target in re.findall(r"\[([^\]]+)\]\(([^)\s#:]+\.md)\)", body):
            page = posixpath.normpath("docs/" + target)
            if page.startswith(("docs/", "lab/")) and page not in seen:
                seen.add(page)
                pages.append({name.strip("`"): page})
        if pages:
            sections.append({title.strip(): pages})
    for page in sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")):
        if page not in seen | {INDEX}:
            beside = [pages for section in sections for pages in section.values() for one in pages
                      if posixpath.dirname(*one.values()) == posixpath.dirname(page)]
            beside[-1].append({pathlib.Path(page).stem: page})
    return sections


def on_config(config):
    text = (pathlib.Path(config["docs_dir"]) / INDEX).read_text(encoding="utf-8")
    config["nav"] = [{"Home": "README.md"}, {"Documentation": INDEX}, *navigation(text),
                     {"Contributing": "CONTRIBUTING.md"}, {"Changes": "CHANGELOG.md"}]
    return config


def on_nav(nav, config, files):
    """Doxygen makes these pages later."""
    nav.items.insert(-2, Link("C++ interface", "api/index.html"))
    return nav


def is_repository_page(location):
    page = location.partition("#")[0].removesuffix(".html")
    names = [page + ".md", page.removesuffix("index") + "README.md"]
    return any((ROOT / name).is_file() for name in names)


def on_post_build(config):
    """Leaves sources out of the search, and writes its index as a script, too: a page that is opened from
    a folder may load scripts, and no other files."""
    folder = pathlib.Path(config["site_dir"]) / "search"
    index = json.loads((folder / "search_index.json").read_text(encoding="utf-8"))
    index["docs"] = [entry for entry in index["docs"] if is_repository_page(entry["location"])]
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    (folder / "search_index.json").write_text(text, encoding="utf-8")
    (folder / "search_index.js").write_text(f"scalewiseSearchIndex({text});\n", encoding="utf-8")
