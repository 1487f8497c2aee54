#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Looks for words that nobody would say in pages, comments and help texts, and suggests better ones.

Code, links' targets and generated tables do not count. Add a pattern when a review finds such words. The
patterns are tested first: each must find its own example.
"""
import pathlib
import re
import sys

COMMENT = "\x02"  # stands at the beginning of a comment
CODE = "\x01"  # stands for each character that is not prose, so that no pattern reaches across it

# Pattern, better words, and an example that the pattern finds. A space matches any white space.
PATTERNS = [
    (r"(?<!\*\s)\bbeside\b(?! \(|;)", "next to, besides, alongside", "the time beside PyTorch's"),
    (r"\bbehind\b(?! fc)", "after, below; or name the cause", "a head behind post-norms"),
    (r"\bin front of\b", "before", "a norm in front of the head"),
    (r"\blikeliest\b", "most likely", "the likeliest mistake"),
    (r"\b(only|for) who\b", "compiled only if used", "so that only who asks compiles it"),
    (r"\bgo(es|ing|ne)? on\b", "resume, continue", "the run goes on with it"),
    (r"\btold\b", "detected, distinguished, given", "the mistake is told by name"),
    (r"\btells? \w+ from\b", "distinguishes", "what tells keys from values"),
    (COMMENT + r" ?What\b", "a noun", COMMENT + " What a norm divides by."),
    (r"\bturn(s|ed)? towards\b", "align with", "weights turn towards activations"),
    (r"\bmachine swings\b", "depending on load", "as the machine swings"),
    (r"\b(to be|is|are) seen\b", "appears, is visible", "no gap is seen"),
    (r"\b(not|is|are) there (yet|already)\b", "does not exist yet, exists already", "a file that is not there yet"),
    (r"\b(that|which) (is|are) there\b", "existing", "a file that is there"),
    (r"\bunless [^.;,]{1,40} says no\b", "unless you pass", "unless --set says no"),
    (r"\bsurely\b", "significantly, certainly", "surely grows"),
    (r"\bcomes? (closer )?to (its|their) limit\b", "converges", "kernels come to their limit"),
    (r"\bknows? (nothing|no [a-z]+) of\b", "is independent of, does not know", "they know nothing of each other"),
    (r"\bfor you to say\b", "you must name", "that is for you to say"),
    (r"\bby heart\b", "overfitting", "learning by heart"),
    (r"\bnobody\b", "name the case", "when nobody listens"),
    (r"\bas many times as\b", "speed-up", "as many times as fast"),
    (r"\btorn\b", "half-written", "a torn line"),
    (r"\bnext to nothing\b", "almost nothing", "next to nothing is kept"),
    (r"\banew\b", "again", "begins anew"),
    (r"\b(in|out)side of (?=[a-z])", "inside, outside", "outside of its range"),
    (r"\bbelongs? into\b", "go in, are part of", "belongs into the forward pass"),
    (r"\bof (its|their) own accord\b", "itself", "multiplies of its own accord"),
    (r"\bone's own\b", "your own", "layers of one's own"),
    (r"\bat last\b", "finally, in the end", "a dense layer at last"),
    (r"\b(take|takes|taken) (\w+ ){0,4}along\b", "transfer", "a rate can be taken along"),
    (r"(?<=[;,.:(|]\s)else(?= [a-z])|\bElse it\b", "otherwise", "one output, else zeros"),
    (r"\b(by|of) so many\b", "give the number a name", "off by so many errors"),
    (r"\ba hair\b", "slightly", "a hair steeper"),
    (r"\b(as|than) [^.;,]{1,30} (has|have) it\b", "as the paper says", "as the paper has it"),
    (r"\bright (tensors|set-ups|models|records|runs)\b", "correct", "of right tensors"),
    (r"\bby right\b", "correctly", "it passes by right"),
    (r"\bnothing is spent\b", "free", "nothing is spent"),
    (r"\bno independent witness", "not independent", "no independent witnesses"),
    (r"\b(a|any|its|such|their|this) start\b(?! of)", "initialization", "it draws a start"),
    (r"\bstart of (a|the|its) [\w -]{0,12}(embedding|gain|tensor|weight|base model)", "initialization",
     "the start of a tied embedding"),
    (r"'s start\b", "initialization, initial value", "an embedding's start"),
    (r"\bof all that\b|\bof what kind\b", "of everything that", "names of all that it depends on"),
    (r"\bbut for\b", "except for, apart from", "byte for byte but for the seconds"),
    (r"\bcalled upon\b|\bof that many\b", "of k, where k is named", "g of that many queries"),
    (r"\bwhat comes? back\b", "the gradient, the result", "what comes back to the keys"),
    (r"\b(is|are) all that (is|are) (needed|left)\b", "only … is needed", "a function is all that is needed"),
]
FOLDERS = ("include", "tools", "python", "examples", "lab", "scripts")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
PROSE = {
    ".cpp": r'R"(?P<tag>\w*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\])\'|//[^\n]*|/\*.*?\*/',
    ".py": r'""".*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*',
    ".sh": r"(?:^|(?<=\s))#[^\n]*",
}
PROSE.update({".hpp": PROSE[".cpp"], ".c": PROSE[".cpp"], ".h": PROSE[".cpp"], ".txt": PROSE[".sh"]})
NOT_PROSE = r"^ *```.*?^ *```|^<!-- table.*?^<!-- end|<!--.*?-->|`[^`\n]*`|\]\([^)\n]*\)"


def blank(text):
    return re.sub(r"\S", CODE, text)


def page_prose(text):
    """The page with all that is not prose blanked, on the same lines."""
    return re.sub(NOT_PROSE, lambda match: blank(match[0]), text, flags=re.M | re.S)


def code_prose(text, suffix):
    """Comments and strings with blanks in them, on the same lines; strings side by side are one."""
    out, end, last_line = [], 0, -2
    for match in re.finditer(PROSE[suffix], text, flags=re.M | re.S):
        token = match[0]
        out.append(blank(text[end:match.start()]))
        end = match.end()
        line = text.count("\n", 0, match.start())
        if token[:2] in ("//", "/*") or token[0] == "#" or token[:3] == '"""':
            words = re.sub(r"^(?: *(?://+|#+|\*)|/\*+|\"\"\")", lambda lead: " " * len(lead[0]), token, flags=re.M)
            if "SPDX" in token or not words.strip():
                out.append(blank(token))
                continue
            if line != last_line + 1 or token[:3] == '"""':
                words = COMMENT + words[1:]
            last_line = line
            out.append(words)
        elif " " in token:
            out.append(" " + token[1:-1].replace("\\n", "  ") + " ")
        else:
            out.append(blank(token))
    return "".join(out) + blank(text[end:])


def findings(prose):
    for pattern, better, _ in PATTERNS:
        for match in re.finditer(pattern.replace(" ", r"\s+"), prose):
            yield prose.count("\n", 0, match.start()) + 1, " ".join(match[0].strip(COMMENT).split()), better


def self_test():
    for pattern, _, example in PATTERNS:
        if not any(re.search(pattern.replace(" ", r"\s+"), text) for text in (example, example.replace(" ", "\n"))):
            sys.exit(f"check_words: {pattern} does not find its example: {example}")
    cpp = code_prose('int a;  // What is it\nf("told on",\n  "x behind "\n  "y");  // 1\n/// go\n/// on\n', ".cpp")
    page = page_prose("told\n```sh\ntold\n```\n`told` [a](told.md)\n<!-- table a -->\ntold\n<!-- end -->\n")
    for found, expected in ((findings(cpp), [1, 2, 3, 5]), (findings(page), [1])):
        if sorted(line for line, _, _ in found) != expected:
            sys.exit("check_words: prose and code are not kept apart")


def main():
    self_test()
    root = pathlib.Path(__file__).resolve().parents[2]
    pages = [root / page for page in PAGES] + sorted((root / "docs").rglob("*.md"))
    bad = 0
    for path in [*pages, *(file for folder in FOLDERS for file in sorted((root / folder).rglob("*.*")))]:
        suffix = path.suffix
        if not path.is_file() or (suffix == ".txt" and path.name != "CMakeLists.txt"):
            continue
        if suffix == ".md":
            prose = page_prose(path.read_text(encoding="utf-8"))
        elif suffix in PROSE:
            prose = code_prose(path.read_text(encoding="utf-8"), suffix)
        else:
            continue
        for line, words, better in sorted(findings(prose)):
            print(f"{path.relative_to(root)}:{line}: \"{words}\": better: {better}")
            bad += 1
    if bad:
        sys.exit(f"{bad} places with words that nobody would say; rewrite the sentences (tests/house/check_words.py)")


if __name__ == "__main__":
    main()
