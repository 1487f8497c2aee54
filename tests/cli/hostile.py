# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Names that break out of other languages, and what each of these languages reads: its own parser where there is one here."""

import ast
import csv
import html.parser
import io
import pathlib
import re
import shutil
import subprocess
import tempfile

# Visible text: any of it is a name.
NAMES = ["a'b", 'a"b', 'a"""b', "a'''b", 'a")#b', "a\\", 'a\\"b', "a\\n", "''", "*/b/*", "//a", "a??/b", "%s%n", "{x}",
         "$(touch INJECTED)", "`touch INJECTED`", "=cmd|' /C touch INJECTED'!A0", "+1+1", "-1+1", "@SUM(1)", "a,b", "a|b", "&amp;",
         "<script>alert(1)</script>", "[a](javascript:b)", "http://a.b", "**a**", "_a_", "~~a~~", "a^b", "#a", "a%b", "$a$",
         "\\write18{touch INJECTED}", "}a{", "a--b", "?`a", " a", "a ", "(?s).*", "[!a]*", "größe", "√n", "1.5", "null", "- a",
         "__import__('os').system('touch INJECTED')"]

# Characters that no name may have: controls of ASCII and C1, marks of direction, ends of lines, what has no width.
REFUSED = ["a\nb", "a\tb", "a\rb", "a\x00b", "a\x1b[2Jb", "a\x7fb", "a\x9b2Jb", "a\x85b", "a\u202eb", "a\u2066b", "a\u200fb",
           "a\u2028b", "a\u2029b", "a\u200bb", "a\ufeffb", "a\u061cb"]


def is_visible(text):
    return not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", text)


def python_constants(code):
    """All strings of a program that does nothing but assign data, calls of a few functions and definitions."""
    tree = ast.parse(code)
    allowed = {"names", "ParamGroupConfig", "ParamKey"}
    for statement in tree.body:
        assert isinstance(statement, (ast.Import, ast.Assign, ast.FunctionDef)), ast.dump(statement)
        assert not isinstance(statement, ast.Import) or [n.name for n in statement.names] == ["re"]
        if isinstance(statement, ast.Assign):
            for node in ast.walk(statement):
                assert not isinstance(node, (ast.Attribute, ast.Lambda, ast.comprehension)), ast.dump(node)
                assert not isinstance(node, ast.Call) or node.func.id in allowed, ast.dump(node)
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def csv_rows(text):
    return list(csv.reader(io.StringIO(text), strict=True))


def from_spreadsheet(field):
    """What a spreadsheet shows of a field; it runs what begins as a formula does."""
    number = re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", field)
    assert number or field == "-" or field[:1] not in ("=", "+", "-", "@", "\t", "\r"), field
    return field[1:] if field[:2] in ("'=", "'+", "'-", "'@") else field


class _Cells(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.rows, self.tags = [], set()

    def handle_starttag(self, tag, _):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def markdown_rows(text):
    """The cells of its tables, as Python-Markdown shows them, or by the marks that must not be bare."""
    lines = [line for line in text.split("\n") if line.startswith("|")]
    try:
        import markdown  # pylint: disable=import-outside-toplevel
    except ImportError:
        markdown = None
    if markdown is not None:
        page = _Cells()
        page.feed(markdown.markdown("\n".join(lines), extensions=["tables"]))
        assert page.tags <= {"table", "thead", "tbody", "tr", "td", "th"}, page.tags
        return [[cell.rstrip("\n") for cell in row] for row in page.rows]
    rows = []
    for line in lines:
        assert not re.search(r"[<>~$]|://", line) and not re.search(r"&(?!#\d+;)", line), line
        cells = re.findall(r"(?:\\.|[^|\\])+", line[1:-1])
        for cell in cells:
            bare = re.sub(r"\\.|&#\d+;", "", cell)
            assert not re.search(r"[*`\[\]]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", bare), cell
        rows.append([html.unescape(re.sub(r"\\(.)", r"\1", cell)).strip() for cell in cells])
    return [row for row in rows if not set("".join(row)) <= set("-")]


LATEX = {"textbackslash{}": "\\", "textasciitilde{}": "~", "textasciicircum{}": "^", "textless{}": "<", "textgreater{}": ">",
         "textbar{}": "|", "char34{}": '"', "ldots{}": "…", **{c: c for c in "_&%#${}"}}
MATHS = {"$\\alpha$": "α", "$\\beta$": "β", "$\\lambda$": "λ", "$\\mu$": "μ", "$\\nu$": "ν", "$\\surd$": "√", "$\\times$": "×",
         "$\\cdot$": "·"}


def latex_text(cell):
    """The text of a cell: nothing in it is a command but those that stand for a letter."""
    text, at = "", 0
    while at < len(cell):
        letter = next((m for m in MATHS if cell.startswith(m, at)), None)
        number = re.match(r"\\texttt\{U\+([0-9A-F]+)\}", cell[at:])
        command = next((c for c in LATEX if cell.startswith("\\" + c, at)), None)
        if letter:
            text, at = text + MATHS[letter], at + len(letter)
        elif number:
            text, at = text + chr(int(number[1], 16)), at + len(number[0])
        elif command:
            text, at = text + LATEX[command], at + 1 + len(command)
        elif cell.startswith("{}", at):
            at += 2
        else:
            assert cell[at] not in "\\{}$&%#^_~", cell
            assert not re.match("--|``|''", cell[at:]) or cell[at:at + 3] == "--", cell
            text, at = text + cell[at], at + 1
    return text.replace("--", "–") if "{}" not in cell else text


def latex_rows(text):
    """The cells of its table. A real TeX reads it too where there is one, and must not run or read anything."""
    if shutil.which("pdflatex"):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "INJECTED.tex").write_text("\\typeout{was read}\\undefined", encoding="utf-8")
            rules = "\\let\\toprule\\hline\\let\\midrule\\hline\\let\\bottomrule\\hline"  # those of booktabs
            (folder / "a.tex").write_text("\\documentclass{article}\\begin{document}" + rules + "\n" + text
                                          + "\\end{document}\n", encoding="utf-8")
            done = subprocess.run(["pdflatex", "-halt-on-error", "-no-shell-escape", "a.tex"], cwd=folder, capture_output=True,
                                  check=False)
            log = done.stdout.decode(errors="replace")
            assert done.returncode == 0 and "was read" not in log and "!" not in re.findall("^.", log, re.M), log[-2000:]
            assert (folder / "a.pdf").exists() and not (folder / "INJECTED").exists()
    body = re.search(r"\\toprule\n(.*)\\bottomrule", text, re.S)[1].replace("\\midrule\n", "")
    return [re.split(r"(?<!\\) & ", line) for line in body.removesuffix(" \\\\\n").split(" \\\\\n")]


def c_strings(compiler, header, folder):
    """The names and the comment of a header for C, read by a compiler."""
    folder = pathlib.Path(folder)
    (folder / "plan.h").write_text(header, encoding="utf-8")
    (folder / "main.c").write_text('#include <stdio.h>\n#include "plan.h"\nint main(void) {\n'
                                   "  for (int t = 0; t < scalewise_tensors; ++t) puts(scalewise_tensor_rows[t].name);\n"
                                   "  for (int b = 0; b < scalewise_blocks; ++b) puts(scalewise_block_rows[b].entry);\n"
                                   "  return scalewise_attention_scale < 0;\n}\n", encoding="utf-8")
    for standard in ("c99", "c++17"):
        subprocess.run([compiler, "-x", "c" if standard == "c99" else "c++", f"-std={standard}", "-Wall", "-Wextra", "-Werror",
                        "-o", folder / "main", folder / "main.c"], check=True)
        done = subprocess.run([folder / "main"], capture_output=True, encoding="utf-8", check=True)
    return done.stdout.split("\n")[:-1]
