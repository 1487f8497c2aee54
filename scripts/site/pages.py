#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""pages.py <folder>: lays out the pages of the site, for MkDocs, in a new folder.

The repository's Markdown pages keep their places, so that links between them hold: README.md is the
home page. A file or folder that a page links to and that is not shown as it is becomes a page of its
own, with the file's text or the folder's list; the site then needs no repository to point to.
"""

import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOWN = {".md", ".svg", ".png"}
LANGUAGES = {".hpp": "cpp", ".cpp": "cpp", ".c": "c", ".py": "python", ".sh": "sh", ".cmake": "cmake",
             ".cff": "yaml", ".yml": "yaml", ".json": "json"}
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def markdown_pages():
    return sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md",
                   *ROOT.glob("docs/**/*.md"), *ROOT.glob("lab/**/*.md"), ROOT / "tests/golden/README.md"])


def page_of(target):
    """The page, relative to the root, that stands for what a link leads to."""
    if target.is_dir():
        readme = target / "README.md"
        return (readme if readme.exists() else target / "index.md").relative_to(ROOT)
    relative = target.relative_to(ROOT)
    return relative if target.suffix in SHOWN else relative.with_name(relative.name + ".md")


def with_links_to_pages(page, text, linked):
    """The text with each link leading to a page; `linked` collects what has to become one."""

    def replace(match):
        if "://" in match[2] or match[2].startswith("mailto:"):
            return match[0]
        target = (page.parent / match[2]).resolve()
        if not target.exists():
            sys.exit(f"{page.relative_to(ROOT)}: link to {match[2]}: no such file")
        linked.add(target)
        to = os.path.relpath(ROOT / page_of(target), page.parent)
        return match[1] + to + (match[3] or "") + match[4]

    return LINK.sub(replace, text)


def site_text(page, linked):
    """A page as MkDocs needs it: no comments, and after a fence the language alone."""
    parts = re.split(r"(^```.*?^```$)", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = re.sub(r"^```([\w-]*).*", r"```\1", part, count=1)
        else:
            parts[i] = with_links_to_pages(page, re.sub(r"<!--.*?-->\n?", "\n", part, flags=re.DOTALL), linked)
    return "".join(parts).lstrip()


def text_page(target):
    """A file as a page."""
    language = LANGUAGES.get(target.suffix, "text")
    text = target.read_text(encoding="utf-8")
    return f"# {target.relative_to(ROOT)}\n\n````{language}\n{text}````\n"


def folder_page(target):
    """A folder as a page: the names of what is in it."""
    names = sorted(path.name + "/" * path.is_dir() for path in target.iterdir() if path.name[0] not in "._")
    return f"# {target.relative_to(ROOT)}\n\n" + "".join(f"- `{name}`\n" for name in names)


def main():
    out = pathlib.Path(sys.argv[1])
    shutil.rmtree(out, ignore_errors=True)
    pages, linked = markdown_pages(), set()

    def write(path, text):
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(text, encoding="utf-8")

    for page in pages:
        write(page.relative_to(ROOT), site_text(page, linked))
    for target in sorted(linked - set(pages)):
        path = page_of(target)
        if ROOT / path in pages:
            continue
        if target.is_dir():
            write(path, folder_page(target))
        elif target.suffix in SHOWN:
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(target, out / path)
        else:
            write(path, text_page(target))
    shutil.copyfile(ROOT / "scripts/site/site.css", out / "site.css")


main()
