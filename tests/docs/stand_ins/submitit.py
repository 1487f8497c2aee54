# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""What docs/tasks.md calls of submitit, in this process."""


class Job:
    def __init__(self, value):
        self._value = value

    def result(self):
        return self._value


class AutoExecutor:
    def __init__(self, folder):
        self.folder = folder

    def update_parameters(self, *, slurm_array_parallelism, cpus_per_task, timeout_min):
        assert min(slurm_array_parallelism, cpus_per_task, timeout_min) > 0

    def map_array(self, function, *lists):
        return [Job(function(*arguments)) for arguments in zip(*lists)]
