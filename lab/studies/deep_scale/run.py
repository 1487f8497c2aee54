#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The claims of "Transformers Get Stable" (DeepScaleLM, arXiv:2403.09635) on trained models, at small size.

  python3 lab/studies/deep_scale/run.py build/release/tools

makes what is missing of results/, and writes the tables and pictures of README.md again.
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "shared"))
import deep_scale_tables  # noqa: E402
import results_page  # noqa: E402

SHAPES = {"4/64": "--depth 4 --width 64 --heads 4", "16/32": "--depth 16 --width 32 --heads 2",
          "64/16": "--depth 64 --width 16 --heads 1", "192/16": "--depth 192 --width 16 --heads 1"}
POST, SIMPLE, VANILLA = "--placement post", "--rule deep-scale-lm-simple", "--rule xavier"
METHODS = {"deep_norm": f"--rule deep-norm {POST}", "ds_init": f"--rule ds-init {POST}", "skip_init": "--rule skip-init",
           "layer_scale": "--rule layer-scale", "maximal_update": "--rule maximal-update --base 64 --start standard",
           "rezero": "--rule rezero --norm none"}
RULES = {"xavier": VANILLA, "deep_scale_lm": SIMPLE}
PLACES = ("post", "pre")
FULL = "--rule deep-scale-lm --set input_correlation=0.029"  # of the novel's bytes, by deep_init
BRANCH = "--beta2 0.125"  # 2/N of 16 layers
IMAGES = "--digits tools/data/digits.csv --dropout 0 --batch 8 --steps 200"


class Networks(results_page.Experiment):
    """Of deep_networks. Of the layers of very deep models, some are kept, a column for each quantity."""
    one_core = True

    def run(self, folder: pathlib.Path, options: str) -> dict:
        kept = super().run(folder, options + " --threads 1")
        if "layers" in kept:
            last = max(row["layer"] for row in kept["layers"])
            step = max(1, last // 48)
            seeds: dict[tuple[str, int], dict] = {}
            for row in kept["layers"]:
                if row["layer"] > 0 and row["layer"] % step == 0 or row["layer"] == 1:
                    seed = seeds.setdefault((row["when"], row["seed"]), {"when": row["when"], "seed": row["seed"]})
                    for quantity in ("layer", "variance", "gradient"):
                        seed.setdefault(quantity, []).append(row[quantity])
            kept["layers"] = [*seeds.values()]
        return kept


def trained(options: str, shape: str, more: str = "") -> Networks:
    quick = {"4/64": "--depth 3 --width 16", "16/32": "--depth 4 --width 16", "64/16": "--depth 6 --width 8", "192/16": "--depth 9 --width 8"}[shape]
    return Networks("deep_networks", f"{options} {SHAPES[shape]} {more}".strip(),
                    f"{options} {quick} {more} --steps 10 --seeds 2 --validation 16",
                    ("tuning", "runs", *(["layers"] if "--profile" in more else [])))


def shapes(which: tuple[str, ...], more: str = "", kind: str = "shape", of: tuple[str, ...] = PLACES) -> dict[str, Networks]:
    return {f"{kind}_{shape.replace('/', '_')}_{name}_{place}": trained(f"{rule} --placement {place}", shape, more if place in of else "")
            for shape in which for place in PLACES for name, rule in RULES.items()}


MASKED = "--task masked --batch 16 --steps 800"  # few tokens of a batch are to be predicted
LONG = "--profile --tuning-seeds 0 --rate 0.002 --steps 1600"
LOW = "--rate 0.0003"  # where tuning begins again
EXPERIMENTS = {
    **{f"scores_{factor}": Networks("deep_networks", f"{VANILLA} --query-key {factor} --depth 192 --width 32 --heads 1 --seq 32 "
                                    "--profile --steps 0 --seeds 5",
                                    f"{VANILLA} --query-key {factor} --depth 12 --width 16 --profile --steps 0 --seeds 2",
                                    ("layers",)) for factor in (1, 2, 4, 8)},
    **shapes(("4/64", "16/32")),
    **shapes(("64/16",), "--profile", of=("pre",)),
    **shapes(("4/64", "16/32", "64/16"), MASKED, "masked"),
    "long_xavier_pre": trained(VANILLA, "64/16", LONG),
    "long_tenth": trained(f"{SIMPLE} {POST} --beta2 0.1", "64/16", LONG),
    "long_deep_scale_lm_post": trained(f"{SIMPLE} {POST}", "64/16", LONG),
    "ablation_plain": trained(f"{SIMPLE} {POST} --beta2 0", "16/32"),
    "ablation_half": trained(f"{SIMPLE} {POST} --beta2 0.5", "16/32"),
    "ablation_learned": trained(f"{SIMPLE} {POST} --learned", "16/32"),
    "ablation_xavier_half": trained(f"{VANILLA} {POST} --beta2 0.5", "16/32"),
    "start_xavier": trained(f"{VANILLA} {BRANCH}", "16/32"),
    "start_full": trained(FULL, "16/32"),
    "start_bert": trained(f"--rule bert {BRANCH}", "16/32"),
    **{f"vision_{shape.replace('/', '_')}_{name}": trained(f"{rule}{' --set dropout=0' if name != 'xavier' else ''} {IMAGES}", shape)
       for shape in ("4/64", "16/32") for name, rule in RULES.items()},
    **{f"method_{name}": trained(method, "64/16") for name, method in METHODS.items()},
    "long_xavier_post": trained(f"{VANILLA} {POST}", "64/16", LONG),
    **{f"low_{shape.replace('/', '_')}_xavier_post": trained(f"{VANILLA} {POST} {LOW}", shape) for shape in ("16/32", "64/16")},
    **{f"deep_{name}_pre": trained(rule, "192/16") for name, rule in RULES.items()},
    **{f"deep_{name}_post": trained(f"{rule} {POST}", "192/16") for name, rule in RULES.items()},
    **{f"deep_{name}": trained(method, "192/16") for name, method in METHODS.items()},
}

if __name__ == "__main__":
    results_page.main("deep_scale", EXPERIMENTS, deep_scale_tables.tables, deep_scale_tables.draw)
