#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""A consumer that Bazel builds, without a network.

    bazel_consumer.py CXX ROOT

Debian's bazel-bootstrap is Bazel 4, which reads WORKSPACE and knows no modules. Stand-ins take the place of the rules
that it would download: rules_cc, which BUILD.bazel loads, and two that Bazel's own files load. What MODULE.bazel says is
compared with what BUILD.bazel loads. Exit code 77, with a message, where Bazel is not installed.
"""

import ast
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CXX, ROOT = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
# Bazel's own rules, under the names that it loads from other repositories since version 1.
RULES = {
    "rules_cc/cc": ("cc_binary", "cc_import", "cc_library", "cc_test", "cc_toolchain", "cc_toolchain_suite",
                    "fdo_prefetch_hints", "fdo_profile", "objc_import", "objc_library"),
    "rules_java/java": ("java_binary", "java_import", "java_library", "java_package_configuration", "java_plugin",
                        "java_runtime", "java_test", "java_toolchain", "java_proto_library", "java_lite_proto_library"),
    "rules_proto/proto": ("proto_lang_toolchain", "proto_library"),
}


def calls(name):
    """The calls of a file that has nothing else: (function, positional arguments, keyword arguments)."""
    found = []
    for statement in ast.parse((ROOT / name).read_text(encoding="utf-8")).body:
        assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call), (name, ast.dump(statement))
        call = statement.value
        found.append((call.func.id, [a.value for a in call.args if isinstance(a, ast.Constant)],
                      {k.arg: getattr(k.value, "value", None) for k in call.keywords}))
    return found


def check_module():
    module = calls("MODULE.bazel")
    assert module[0][0] == "module" and module[0][2]["name"] == "scalewise", module
    needed = {call[2]["name"] for call in module[1:] if call[0] == "bazel_dep"}
    assert len(needed) == len(module) - 1 and all(call[2]["version"] for call in module), module
    loaded = {re.match(r"@([^/]+)//", call[1][0])[1] for call in calls("BUILD.bazel") if call[0] == "load"}
    assert needed == loaded, (needed, loaded)


def write_stand_ins(folder):
    lines = []
    for path, names in RULES.items():
        package = folder / path
        package.mkdir(parents=True)
        (package / "BUILD").touch()
        (package.parent / "WORKSPACE").touch()
        text = "".join(f"{name} = native.{name}\n" for name in names)
        for file in ("defs.bzl", "repositories.bzl"):
            (package / file).write_text(text, encoding="utf-8")
        lines.append(f'local_repository(name = "{package.parent.name}", path = "{package.parent}")\n')
    return lines


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, encoding="utf-8", check=False, **options)
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def main():
    check_module()
    if not shutil.which("bazel"):
        print("skipped: Bazel was not found (Debian: bazel-bootstrap)")
        return 77
    example = ROOT / "examples" / "01_first_plan.cpp"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source, consumer = folder / "scalewise", folder / "consumer"
        consumer.mkdir()
        shutil.copytree(ROOT / "include", source / "include")
        shutil.copy(ROOT / "BUILD.bazel", source)
        (source / "WORKSPACE").touch()
        workspace = [f'local_repository(name = "scalewise", path = "{source}")\n', *write_stand_ins(folder)]
        (consumer / "WORKSPACE").write_text("".join(workspace), encoding="utf-8")
        shutil.copy(example, consumer / "main.cpp")
        (consumer / "BUILD").write_text('cc_binary(name = "consumer", srcs = ["main.cpp"], deps = ["@scalewise"])\n',
                                        encoding="utf-8")
        run("bazel", "--batch", f"--output_user_root={folder / 'out'}", "build", "--cxxopt=-std=c++20",
            "--spawn_strategy=local", "//:consumer", cwd=consumer)
        printed = run(consumer / "bazel-bin" / "consumer")
        run(CXX, "-std=c++20", "-I", ROOT / "include", example, "-o", folder / "expected")
        assert printed == run(folder / "expected"), printed
        # Bazel writes its files without permission to delete them.
        subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
    print("built and run:", printed.splitlines()[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
