# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""What docs/tasks.md calls of Optuna: a search over a grid."""

import itertools


class Trial:
    def __init__(self, values):
        self._values = values

    def suggest_categorical(self, name, choices):
        assert self._values[name] in choices
        return self._values[name]


class Study:
    def __init__(self, sampler):
        self._sampler = sampler
        self.best_value = None

    def optimize(self, objective):
        self.best_value = min(objective(Trial(values)) for values in self._sampler.all)


class samplers:
    class GridSampler:
        def __init__(self, space):
            self.all = [dict(zip(space, values)) for values in itertools.product(*space.values())]


def create_study(*, sampler):
    return Study(sampler)
