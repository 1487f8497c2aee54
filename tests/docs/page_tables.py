# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Tables of the documentation, the formulas in their cells, and the plans that they are compared with."""

import json
import math
import re
import subprocess


class Formula:
    """A formula as people write it: (L)^(1/4), √(m_fo·m_N), 2L."""

    TOKEN = re.compile(r"\s*(\d+(?:\.\d+)?(?:e-?\d+)?|fi|fo|[A-Za-zα-ω](?:_[A-Za-z]+)?0?|.)")

    def __init__(self, text, letters):
        for power, digit in zip("²³⁴", "234"):
            text = text.replace(power, f"^{digit}")
        self.text, self.tokens, self.letters = text, self.TOKEN.findall(text.strip()), letters

    def value(self):
        value = self.sum()
        if self.tokens:
            raise ValueError(f"{self.text}: {self.tokens[0]} is not understood")
        return value

    def take(self, *tokens):
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in tokens else None

    def sum(self):
        value = -self.product() if self.take("-") else self.product()
        while sign := self.take("+", "-"):
            value += self.product() if sign == "+" else -self.product()
        return value

    def product(self):
        value, divided = self.power(), False
        while self.tokens and self.tokens[0] not in (")", "+", "-"):
            if self.take("/"):
                value, divided = value / self.power(), True
            elif self.take("·") or not divided:
                value *= self.power()
            else:
                raise ValueError(f"{self.text}: after / a product needs · or brackets")
        return value

    def power(self):
        if self.take("√"):
            return math.sqrt(self.power())
        value = self.atom()
        return value ** self.atom() if self.take("^") else value

    def atom(self):
        if not self.tokens:
            raise ValueError(f"{self.text}: something is missing")
        if self.take("("):
            value = self.sum()
            if not self.take(")"):
                raise ValueError(f"{self.text}: no closing bracket")
            return value
        token = self.tokens.pop(0)
        return float(token) if token[0].isdigit() else self.letters(token)


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables_of(text):
    """The tables of a page: a list of rows each, the first of them the heading."""
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    return [[cells(line) for line in table.splitlines() if not re.match(r"\|[-|]+\|$", line)] for table in found]


# Some ten multiplications and roots, each rounded to 1.1e-16 of its value, by the plan and here.
TOLERANCE = 1e-14


def differs(found, expected):
    return abs(found - expected) > TOLERANCE * abs(expected)


def settings(fields, prefix=""):
    return [word for field, value in fields.items() for word in ("--set", f"{prefix}{field}={value}")]


def run(program, *words):
    result = subprocess.run([program, *words], capture_output=True, encoding="utf-8", check=False)
    return json.loads(result.stdout) if result.returncode == 0 else result.stderr.strip().splitlines()[-1]
