# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Builds the wheel of scalewise*.py with the standard library alone, so that `pip install ./python` needs neither network nor
setuptools. The interface is that of PEP 517."""

import base64
import hashlib
import pathlib
import re
import zipfile

HERE = pathlib.Path(__file__).resolve().parent


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    modules = {path.name: path.read_text(encoding="utf-8") for path in sorted(HERE.glob("scalewise*.py"))}
    version = re.search(r'^__version__ = "([^"]+)"', modules["scalewise.py"], re.MULTILINE)[1]
    info = f"scalewise-{version}.dist-info"
    files = {
        **modules,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: scalewise\nVersion: {version}\nLicense: MIT\n"
                            "Summary: Applies the plans of scalewise to PyTorch models and records their training\n"
                            "Requires-Python: >=3.8\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: scalewise\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    license = HERE.parent / "LICENSE"
    if license.is_file():  # not where pip copies this folder alone
        files[f"{info}/LICENSE"] = license.read_text(encoding="utf-8")
    record = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(text.encode())}\n")
    files[f"{info}/RECORD"] = "".join(record) + f"{info}/RECORD,,\n"
    wheel = f"scalewise-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), text)
    return wheel
