# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""What docs/tasks.md calls of W&B; it prints instead of sending."""


class Run:
    def __init__(self, config):
        self._config = config

    def log(self, values):
        print("logged", *sorted(values), "of", *sorted(self._config))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def init(*, project, config):
    assert project
    return Run(config)
