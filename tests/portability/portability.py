# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Every public header behind hostile ones, with libc++, and where `long` has 32 bits, by
-fsyntax-only; and one error where the compiler is older than C++20.

    portability.py CXX ROOT

Exits with 77 (skipped) when all that could run passed, but clang or libc++ was missing.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HOSTILE = """// What <torch/torch.h> declares.
template <class T, class U> constexpr bool pow(T, U) { return false; }
template <class T> constexpr bool sqrt(T) { return false; }
"""
MACROS = """
#define min(a, b) HOSTILE
#define max(a, b) HOSTILE
#define near HOSTILE
#define far HOSTILE
#define small HOSTILE
"""


def public_headers(root):
    include = root / "include"
    names = sorted(str(header.relative_to(include)) for header in include.rglob("*.hpp"))
    return [name for name in names if "torch" not in name]  # those need LibTorch, which has its own macros


# Clang for a target whose headers are not here: libc++'s and this system's own stand in, so that
# the sizes of types are the target's, and nothing else of it.
STAND_IN = ["-nostdinc++", "-isystem", "{libcxx}", "-isystem", "/usr/include/x86_64-linux-gnu", "-isystem",
            "/usr/include"]
WINDOWS = ["--target=x86_64-pc-windows-msvc", "-U_WIN32", "-U_MSC_VER", "-D__linux__", "-D__unix__", "-D_GNU_SOURCE",
           "-D__x86_64__", "-D__ELF__", "-D_LIBCPP_OBJECT_FORMAT_COFF", "-D__ILP32__", "-fgnuc-version=4.2.1",
           "-Wno-macro-redefined", "-isystem", "{stubs}"]
# Code that a smaller `long` breaks.
WIDTHS = ["-Werror=shift-count-overflow", "-Werror=constant-conversion", "-Werror=integer-overflow",
          "-Werror=literal-conversion", "-Werror=tautological-constant-out-of-range-compare"]
COUNTS = """
static_assert(sizeof(decltype(scalewise::Plan{}.parameter_count())) == 8);
static_assert(sizeof(decltype(scalewise::Entry{}.size())) == 8);
"""


def libcxx_folder(clang):
    """Where <string> of libc++ is; empty where it is not."""
    run = subprocess.run([clang, "-stdlib=libc++", "-std=c++20", "-x", "c++", "-E", "-"], input="#include <string>\n",
                         capture_output=True, text=True, check=False)
    found = re.search(r'^# 1 "(.*)/string"', run.stdout, re.MULTILINE)
    return found.group(1) if found else ""


def main():
    compiler, root = sys.argv[1], pathlib.Path(sys.argv[2])
    folders = ["-I", str(root / "include"), "-isystem", "/usr/include/eigen3"]
    headers = public_headers(root)
    # All of them take a minute of one core: Eigen's kernels are checked for macros alone.
    quick = [h for h in headers if not h.startswith("scalewise/kernels")]
    assert len(quick) < len(headers), "the kernels have another name"
    failed, skipped = [], []
    with tempfile.TemporaryDirectory() as work:
        def check(name, command, names, prologue="", epilogue="", forbidden=None):
            source = pathlib.Path(work) / "all.cpp"
            source.write_text(prologue + "".join(f'#include "{h}"\n' for h in names) + epilogue, encoding="utf-8")
            run = subprocess.run([*command, standard, *folders, str(source)],
                                 capture_output=True, text=True, check=False)
            found = forbidden and [line for line in run.stdout.splitlines() if forbidden in line]
            passed = run.returncode == 0 and not found
            print(f"{name}: {len(names)} headers, {'passed' if passed else 'FAILED'}")
            if not passed:
                print(run.stderr[:4000] + "\n".join(found or [])[:2000])
                failed.append(name)

        standard = "-std=c++20"
        # Behind those of the libraries, as where other headers are included first.
        includes = "".join(f"#include <{h}>\n" for h in (
            "algorithm", "array", "bit", "charconv", "chrono", "cmath", "complex", "deque", "filesystem",
            "fstream", "functional", "limits", "map", "memory", "numeric", "optional", "random",
            "set", "span", "sstream", "string", "string_view", "variant", "vector",
            "Eigen/Dense", "nlohmann/json.hpp"))
        check("Windows' macros", [compiler, "-E"], headers, includes + MACROS, forbidden="HOSTILE")

        old = pathlib.Path(work) / "old.cpp"
        old.write_text('#include "scalewise/scalewise.hpp"\n', encoding="utf-8")
        run = subprocess.run([compiler, "-std=c++17", "-fsyntax-only", *folders, str(old)],
                             capture_output=True, text=True, check=False)
        errors = [line for line in run.stderr.splitlines() if ": error:" in line]
        one = len(errors) == 1 and "C++20" in run.stderr
        print(f"C++17: {'one error' if one else 'FAILED'}")
        if not one:
            print(run.stderr[:2000])
            failed.append("C++17")

        # Of each door one error, as its first: a NaN would be a pass.
        doors = [h for h in headers if h.count("/") == 1]
        for flags, hint, refused in ((["-ffast-math"], "-fno-finite-math-only", True),
                                     (["-Ofast", "-fno-finite-math-only"], "-fno-finite-math-only", False),
                                     (["-fno-exceptions"], "leave out -fno-exceptions", True)):
            for door in doors:
                old.write_text(f'#include "{door}"\n', encoding="utf-8")
                run = subprocess.run([compiler, *flags, "-E", standard, *folders, str(old)],
                                     capture_output=True, text=True, check=False)
                if (hint in run.stderr) != refused:
                    print(f"{door} with {flags}: {run.stderr[:500]}")
                    failed.append("flags")
        print(f"flags: {len(doors)} doors, {'FAILED' if 'flags' in failed else 'passed'}")

        # GCC 12 under this flag takes no comparison of addresses for a constant expression.
        check("undefined behaviour", [compiler, "-fsanitize=undefined", "-fsyntax-only"], ["scalewise/names.hpp"])

        clang = shutil.which("clang++") or shutil.which("clang++-14")
        probe = pathlib.Path(work) / "probe.cpp"
        probe.write_text("#include <string>\n#include <cmath>\n", encoding="utf-8")
        (pathlib.Path(work) / "gnu").mkdir()
        (pathlib.Path(work) / "gnu" / "stubs-x32.h").write_text("", encoding="utf-8")

        libcxx = libcxx_folder(clang) if clang else ""
        windows = [clang or "", *(part.format(libcxx=libcxx, stubs=work) for part in [*WINDOWS, *STAND_IN]), "-fsyntax-only"]
        works = clang and subprocess.run([*windows, standard, str(probe)], capture_output=True, check=False).returncode == 0
        if works:
            check("long of 32 bits (Windows), hostile templates", [*windows, *WIDTHS], quick, includes + HOSTILE, COUNTS)
        else:
            skipped.append("long of 32 bits (packages clang, libc++-dev and libc++abi-dev, on an x86-64 Linux)")
            check("hostile templates", [compiler, "-fsyntax-only"], quick, includes + HOSTILE)
    for name in skipped:
        print("skipped: " + name)
    return 1 if failed else 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
