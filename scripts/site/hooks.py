# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Hooks of MkDocs: the navigation follows docs/README.md, with its other pages where those of their folder are; each
page has a description; pictures and papers are links; and the search works without a server."""

import html
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
    """scripts/site.sh adds these pages later; the playground where it has been built."""
    if (ROOT / "build/playground/index.html").is_file():
        nav.items.insert(2, Link("Playground", "playground/index.html"))
    nav.items.insert(-2, Link("C++ interface", "api/index.html"))
    return nav


def on_page_markdown(markdown, page, **_):
    """The description of a page is its first sentence."""
    text = re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    first = re.search(r"^(?![#|!<\-]).+(\n.+)*", text, flags=re.MULTILINE)
    if first and not page.is_homepage:
        words = re.sub(r"\[([^\]]+)\]\([^)]*\)|[`*]", r"\1", " ".join(first[0].split()))
        page.meta["description"] = html.escape(re.match(r".*?[.:?](?= |$)|.*", words)[0])


def on_page_content(content, **_):
    """A picture links to its full size, and the number of a paper to its text; long cells of tables are marked."""
    content = re.sub(r'<img [^>]*src="([^"]+)"[^>]*>', r'<a href="\1">\g<0></a>', content)
    content = re.sub(r"<(a|code|pre)\b.*?</\1>|<[^>]+>|arXiv:(\d{4}\.\d{4,5}(?:v\d+)?)",
                     lambda m: f'<a href="https://arxiv.org/abs/{m[2]}">{m[0]}</a>' if m[2] else m[0],
                     content, flags=re.DOTALL)
    return re.sub(r"<td>(.*?)</td>",
                  lambda m: m[0].replace("<td", '<td class="text"') if len(re.sub("<[^>]+>", "", m[1])) > 40 else m[0],
                  content)


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
