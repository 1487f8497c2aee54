# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
import fnmatch
import pathlib
import shutil


def copy(_, pattern, src, dst):
    """Files whose path below src matches, of which * matches slashes too."""
    found = [path for path in pathlib.Path(src).rglob("*")
             if path.is_file() and fnmatch.fnmatch(path.relative_to(src).as_posix(), pattern)]
    assert found, pattern
    for path in found:
        target = pathlib.Path(dst) / path.relative_to(src)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
