#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""What `inspect` says about files of models, which are written here byte by byte.

    inspect_cli.py INSPECT_PROGRAM PLAN_PROGRAM
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import hostile

INSPECT, PLAN = (pathlib.Path(path).resolve() for path in sys.argv[1:3])

WIDTH, DEPTH, HEADS, VOCAB, CONTEXT = 48, 3, 4, 50, 16
GPT2 = {"model_type": "gpt2", "n_embd": WIDTH, "n_layer": DEPTH, "n_head": HEADS, "n_positions": CONTEXT,
        "vocab_size": VOCAB}
GPT2_PARAMETERS = (VOCAB + CONTEXT) * WIDTH + DEPTH * (12 * WIDTH**2 + 13 * WIDTH) + 2 * WIDTH


def gpt2_tensors():
    n = WIDTH
    tensors = {"wte.weight": [VOCAB, n], "wpe.weight": [CONTEXT, n], "ln_f.weight": [n], "ln_f.bias": [n]}
    for layer in range(DEPTH):
        block = {"ln_1.weight": [n], "ln_1.bias": [n], "attn.bias": [1, 1, CONTEXT, CONTEXT],
                 "attn.c_attn.weight": [n, 3 * n], "attn.c_attn.bias": [3 * n], "attn.c_proj.weight": [n, n],
                 "attn.c_proj.bias": [n], "ln_2.weight": [n], "ln_2.bias": [n], "mlp.c_fc.weight": [n, 4 * n],
                 "mlp.c_fc.bias": [4 * n], "mlp.c_proj.weight": [4 * n, n], "mlp.c_proj.bias": [n]}
        tensors.update({f"h.{layer}.{name}": shape for name, shape in block.items()})
    return tensors


def entries(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def safetensors(tensors):
    header, end = {}, 0
    for name, shape in tensors.items():
        size = 4 * entries(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(end)


def gguf_text(text):
    return struct.pack("<Q", len(text)) + text.encode()


def gguf(architecture, sizes, tensors):
    values = gguf_text("general.architecture") + struct.pack("<I", 8) + gguf_text(architecture)
    for key, value in sizes.items():
        values += gguf_text(f"{architecture}.{key}") + struct.pack("<II", 4, value)
    infos, end = b"", 0
    for name, shape in tensors.items():
        infos += gguf_text(name) + struct.pack("<I", len(shape))
        infos += b"".join(struct.pack("<Q", size) for size in reversed(shape)) + struct.pack("<IQ", 0, end)
        end += -(-4 * entries(shape) // 32) * 32
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(sizes) + 1) + values + infos
    return head + bytes(-len(head) % 32) + bytes(end)


def llm_c():
    padded = 64
    head = struct.pack("<8i", 20240326, 3, CONTEXT, VOCAB, DEPTH, HEADS, WIDTH, padded)
    n = WIDTH
    size = (padded + CONTEXT) * n + DEPTH * (12 * n * n + 13 * n) + 2 * n
    return head + bytes(1024 - len(head)) + bytes(4 * size)


class Inspect(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    def run_program(self, program, *arguments, code=0):
        done = subprocess.run([program, *arguments], capture_output=True, encoding="utf-8", check=False)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        return done.stderr if code == 2 else done.stdout

    def inspect(self, *arguments, code=0):
        return self.run_program(INSPECT, *arguments, code=code)

    def inspected(self, *arguments, code=0):
        return json.loads(self.inspect(*arguments, "--format", "json", code=code))

    def meanings(self, found):
        return {tensor["name"]: tensor["is"] for tensor in found["tensors"]}

    def test_the_shape_is_in_the_config_next_to_the_file(self):
        model = self.write("gpt2/model.safetensors", safetensors(gpt2_tensors()))
        config = self.write("gpt2/config.json", GPT2)
        found = self.inspected(model)
        self.assertEqual(found["schema"], "scalewise.inspection/1")
        self.assertEqual(found["dialect"], "hf-gpt2")
        self.assertEqual(found["problems"], [])
        self.assertEqual(found["shape_from"], str(config))
        self.assertEqual(found["parameters"], GPT2_PARAMETERS)
        self.assertEqual(found["numbers"], GPT2_PARAMETERS + DEPTH * CONTEXT**2)
        self.assertEqual([t["shape"] for t in found["tensors"]], list(gpt2_tensors().values()))
        meaning = self.meanings(found)
        self.assertEqual(meaning["h.1.attn.c_attn.weight"], "layer.*.query + layer.*.key + layer.*.value")
        self.assertEqual(meaning["h.1.attn.bias"], "(not trained)")
        table = self.inspect(model)
        self.assertIn(f"names    hf-gpt2, {GPT2_PARAMETERS} parameters of a plan, 0 problems", table)
        self.assertRegex(table, r"\nh\.\*\.mlp\.c_fc\.weight +3 +F32 +\[48, 192\] +layer\.\*\.mlp_up\n")
        layers = self.inspect(model, "--layers")
        self.assertRegex(layers, r"\nh\.2\.mlp\.c_fc\.weight +1 +F32 +\[48, 192\] +layer\.\*\.mlp_up\n")

    def test_without_a_shape_tensors_are_listed_and_that_is_said(self):
        model = self.write("model.safetensors", safetensors(gpt2_tensors()))
        table = self.inspect(model)
        self.assertIn("shape    not known: give --config or --preset", table)
        self.assertIn("h.*.mlp.c_fc.weight", table)
        self.assertEqual(set(self.meanings(self.inspected(model)).values()), {None})
        self.assertIn("--config = none: expected the model's shape", self.inspect(model, "--rule", "gpt2", code=2))
        for option in (["--set", "nonsense=3"], ["--set", "depth=3"], ["--extra", "a:hidden:4,4"], ["--names", "hf-gpt2"]):
            self.assertIn(f"{option[0]} (given): expected the model's shape", self.inspect(model, *option, code=2))
        config = self.write("elsewhere/config.json", GPT2)
        self.assertEqual(self.inspected(model, "--config", config)["problems"], [])

    def test_names_are_shown_as_they_are(self):
        names = ["\u0441\u043b\u043e\u0439.\u0432\u0435\u0441", "\u5c42.\u91cd", "a\x1bb.w", "a\x07b.w", "h." + 70 * "x"]
        model = self.write("model.safetensors", safetensors({name: [4, 4] for name in names}))
        rows = self.inspect(model, "--format", "csv").splitlines()[1:]
        self.assertEqual([row.split(",")[0] for row in rows], [*names[:2], "a?b.w", "a?b.w", names[4]])

    def test_all_problems_are_printed(self):
        tensors = gpt2_tensors()
        del tensors["h.1.mlp.c_fc.weight"]
        tensors["h.0.attn.c_proj.weight"] = [WIDTH, WIDTH + 1]
        tensors["h.0.adapter"] = [3]
        model = self.write("model.safetensors", safetensors(tensors))
        self.write("config.json", GPT2)
        found = self.inspected(model, code=1)
        problems = "\n".join(found["problems"])
        self.assertEqual(len(found["problems"]), 3, problems)
        for name in ("h.1.mlp.c_fc.weight: missing", "h.0.attn.c_proj.weight: [48, 49]: expected [48, 48]",
                     "h.0.adapter: is none of the tensors of hf-gpt2"):
            self.assertIn(name, problems)
        self.assertIsNone(self.meanings(found)["h.0.adapter"])
        self.assertIn("3 problems", self.inspect(model, code=1))
        refusal = self.inspect(model, "--rule", "gpt2", code=2)
        self.assertIn("h.0.adapter", refusal)
        self.assertIn("h.1.mlp.c_fc.weight", refusal)

    def test_the_plan_is_that_of_the_same_config(self):
        model = self.write("model.safetensors", safetensors(gpt2_tensors()))
        config = self.write("config.json", GPT2)
        base = self.write("base.json", {**GPT2, "n_embd": 24})
        rule = ["--rule", "complete-p", "--base-config", base, "--format", "json"]
        by_inspect = json.loads(self.inspect(model, *rule))
        by_plan = json.loads(self.run_program(PLAN, "--config", config, "--names", "hf-gpt2", *rule))
        self.assertEqual(by_inspect["plan"], by_plan["plan"])
        # The file has no prefix, and an order of its own.
        named = {"transformer." + tensor["name"]: {**tensor, "name": ""} for tensor in by_inspect["tensors"]}
        self.assertEqual(named, {tensor["name"]: {**tensor, "name": ""} for tensor in by_plan["tensors"]})
        groups = self.inspect(model, *rule[:-1], "torch-groups")
        self.assertIn("h", groups)
        for option in (["--format", "tsv"], ["--base-config", base], ["--base-width", "64"],
                       ["--base-depth", "1"], ["--start", "gpt2"], ["--fold"], ["--optimizer", "sgd"],
                       ["--cut", "qkv"], ["--strict"]):
            self.assertIn(f"{option[0]} (given): expected --rule as well", self.inspect(model, *option, code=2))

    def test_parts_of_one_model(self):
        tensors = list(gpt2_tensors().items())
        self.write("config.json", GPT2)
        parts = [self.write("a.safetensors", safetensors(dict(tensors[:20]))),
                 self.write("b.safetensors", safetensors(dict(tensors[20:])))]
        index = self.write("model.safetensors.index.json", {
            "weight_map": {**{name: "a.safetensors" for name, _ in tensors[:20]},
                           **{name: "b.safetensors" for name, _ in tensors[20:]}}})
        for arguments in (parts, [index]):
            found = self.inspected(*arguments)
            self.assertEqual(found["problems"], [])
            self.assertEqual(found["files"], [str(part) for part in parts])
            self.assertEqual(found["tensors"][20]["file"], str(parts[1]))
        self.assertGreater(len(self.inspected(parts[0], code=1)["problems"]), 2)
        parts[1].rename(parts[1].with_suffix(".part"))
        self.assertIn("is the download complete?", self.inspect(index, code=2))
        parts[1].with_suffix(".part").rename(parts[1])
        self.assertIn("a tensor that no other file has", self.inspect(parts[0], parts[0], code=2))
        checkpoint = self.write("model.bin", llm_c())
        self.assertIn("expected parts of one model", self.inspect(parts[0], checkpoint, code=2))

    def test_files_that_say_their_shape(self):
        checkpoint = self.inspected(self.write("model.bin", llm_c()))
        self.assertEqual((checkpoint["dialect"], checkpoint["problems"]), ("llm-c", []))
        self.assertEqual(checkpoint["notes"], ["14 rows of wte are padding"])
        self.assertEqual(len(checkpoint["tensors"]), 16)

        n, f, kv = 32, 64, 16
        sizes = {"context_length": 16, "embedding_length": n, "block_count": 2, "feed_forward_length": f,
                 "attention.head_count": 4, "attention.head_count_kv": 2}
        tensors = {"token_embd.weight": [50, n], "output_norm.weight": [n], "output.weight": [50, n]}
        for layer in range(2):
            block = {"attn_norm.weight": [n], "attn_q.weight": [n, n], "attn_k.weight": [kv, n],
                     "attn_v.weight": [kv, n], "attn_output.weight": [n, n], "ffn_norm.weight": [n],
                     "ffn_gate.weight": [f, n], "ffn_up.weight": [f, n], "ffn_down.weight": [n, f]}
            tensors.update({f"blk.{layer}.{name}": shape for name, shape in block.items()})
        llama = self.inspected(self.write("llama.gguf", gguf("llama", sizes, tensors)))
        self.assertEqual((llama["dialect"], llama["problems"]), ("gguf-llama", []))
        self.assertEqual(llama["parameters"], sum(entries(shape) for shape in tensors.values()))

        biased = {**tensors, **{f"blk.{layer}.attn_{kind}.bias": [n if kind == "q" else kv]
                                for layer in range(2) for kind in "qkv"}}
        qwen2 = self.inspected(self.write("qwen2.gguf", gguf("qwen2", sizes, biased)))
        self.assertEqual((qwen2["dialect"], qwen2["problems"]), ("gguf-llama", []))
        normed = {**tensors, **{f"blk.{layer}.attn_{kind}_norm.weight": [8] for layer in range(2) for kind in "qk"}}
        qwen3 = self.inspected(self.write("qwen3.gguf", gguf("qwen3", sizes, normed)))
        self.assertEqual((qwen3["dialect"], qwen3["problems"]), ("gguf-llama", []))

    def test_a_configuration_without_a_reader_does_not_hide_the_table(self):
        model = self.write("model.safetensors", safetensors(gpt2_tensors()))
        self.write("config.json", {**GPT2, "model_type": "gptj"})
        table = self.inspect(model)
        self.assertIn("shape    not known", table)
        self.assertRegex(table, "\nnote     no shape: .*config.json: model_type = \"gptj\": expected one of")
        self.assertIn("plan --config reads it by a table of its tensors", table)
        self.assertIn("h.*.mlp.c_fc.weight", table)
        elsewhere = self.write("elsewhere/config.json", {"model_type": "gptj"})
        self.assertIn("h.*.mlp.c_fc.weight", self.inspect(model, "--config", elsewhere, code=1))
        self.assertIn("no such file", self.inspect(model, "--config", "none.json", code=2))
        self.assertIn("model_type", self.inspect(model, "--config", elsewhere, "--rule", "gpt2", code=2))

    def test_a_description_comes_with_the_factors_of_the_code(self):
        config = self.write("t5.json", {"model_type": "t5", "d_model": 64, "num_layers": 1, "num_heads": 4, "d_ff": 128, "vocab_size": 50})
        said = self.inspect(config, "--describe", self.folder / "target.json")
        self.assertIn("note: the code multiplies scores by 1\nnote: the code multiplies logits by 1/√n\n", said)

    def test_layers_share_a_line_that_says_what_to_set(self):
        tensors = {name: [4 * WIDTH + 48, WIDTH][::1] if "c_fc.weight" in name else shape
                   for name, shape in gpt2_tensors().items()}
        tensors.update({f"h.{layer}.mlp.c_fc.weight": [WIDTH, 240] for layer in range(DEPTH)})
        model = self.write("model.safetensors", safetensors(tensors))
        self.write("config.json", GPT2)
        self.assertEqual(self.inspected(model, code=1)["problems"],
                         [f"h.*.mlp.c_fc.weight ({DEPTH} tensors): [48, 240]: expected [48, 192] (hint: d_ff = 192, but 240 here: "
                          "--set d_ff=240)"])

    def test_names_of_no_code_base(self):
        self.write("config.json", GPT2)
        adapter = self.write("adapter.safetensors", safetensors(
            {f"base_model.model.h.{layer}.attn.q.lora_{side}.weight": [8, 48] for layer in range(2) for side in "AB"}))
        text = self.inspect(adapter, code=1)
        self.assertIn("names    of no known code base, 1 problem", text)
        self.assertIn("the file is an adapter (LoRA)", text)
        self.assertIsNone(self.inspected(adapter, code=1)["dialect"])
        nested = self.write("nested.safetensors", safetensors({"net." + n: s for n, s in gpt2_tensors().items()}))
        found = self.inspected(nested, code=1)
        self.assertEqual(found["dialect"], "hf-gpt2")
        self.assertEqual(len(found["problems"]), 1)
        self.assertIn("all names begin with net., which hf-gpt2 does not have", found["problems"][0])
        wrapped = self.write("wrapped.safetensors", safetensors(
            {n.replace(".attn.", "._checkpoint_wrapped_module.attn."): s for n, s in gpt2_tensors().items()}))
        self.assertEqual(self.inspected(wrapped)["problems"], [])

    def test_two_files_of_one_model_make_a_plan(self):
        def file_of(width):
            global WIDTH
            WIDTH, before = width, WIDTH
            tensors = gpt2_tensors()
            WIDTH = before
            return safetensors(tensors)
        for name, width in (("base", 24), ("third", 32), ("target", 48)):
            out = self.inspect(self.write(f"{name}.safetensors", file_of(width)), "--describe", self.folder / f"{name}.json")
            self.assertIn("h.0.attn.bias: taken for a buffer, and left out", out)
        for option in (["--format", "csv"], ["--rule", "he"], ["--layers"]):
            message = self.inspect(self.folder / "base.safetensors", "--describe", self.folder / "other.json", *option, code=2)
            self.assertIn(f"--describe (given): expected it without {option[0]}", message)
        two = [PLAN, "--rule", "complete-p", "--model", self.folder / "target.json", "--base-model", self.folder / "base.json"]
        plan = self.run_program(*two, "--check-model", self.folder / "third.json")
        self.assertIn("d_model 24 to 48: what most inputs and outputs grow with", plan)
        for said, own in (("d_model=96", WIDTH), ("base.d_model=12", 24), ("depth=24", DEPTH), ("base.depth=1", DEPTH)):
            message = f"--set = {said}: expected {said.split('=', maxsplit=1)[0]}={own}, as the tensors have"
            self.assertIn(message, self.run_program(*two, "--set", said, code=2))
        self.assertIn("check model = as large as the base, or as the target",
                      self.run_program(*two, "--check-model", self.folder / "base.json", code=2))
        self.assertIn("--check-model", self.run_program(PLAN, "--rule", "he", "--check-model", self.folder / "base.json", code=2))
        self.assertIn(f"parameters {GPT2_PARAMETERS}", plan)
        rows = {line.split()[0]: " ".join(line.split()[1:]) for line in plan.splitlines() if line.startswith(("h.", "w", "l"))}
        self.assertIn("d_model x 3*d_model hidden", rows["h.*.attn.c_attn.weight"])
        self.assertIn("50 x d_model token_embedding", rows["wte.weight"])

    def test_a_tied_head_that_nothing_says(self):
        """A preset of a shape, and a file that decides."""
        model = self.write("model.safetensors", safetensors(gpt2_tensors()))
        sizes = [word for key, value in {"d_model": WIDTH, "depth": DEPTH, "heads": HEADS, "d_ff": 4 * WIDTH,
                                         "vocab": VOCAB, "context": CONTEXT}.items()
                 for word in ("--set", f"{key}={value}")]
        self.assertEqual(self.inspected(model, "--preset", "gpt2", *sizes)["problems"], [])
        self.assertIn("--set = base.d_model=3: expected a base",
                      self.inspect(model, "--preset", "gpt2", "--set", "base.d_model=3", code=2))
        self.assertIn("a field of the shape", self.inspect(model, "--preset", "gpt2", "--set", "d_modl=3", code=2))

    def test_names_by_choice(self):
        model = self.write("model.safetensors", safetensors(gpt2_tensors()))
        self.write("config.json", GPT2)
        transposed = self.inspected(model, "--names", "nanogpt", code=1)
        self.assertIn("transposed", "\n".join(transposed["problems"]))
        own = self.write("own.json", {"schema": "scalewise.dialect/1", "id": "mine", "title": "Mine",
                                      "extends": "hf-gpt2", "patterns": []})
        self.assertEqual(self.inspected(model, "--names", own)["dialect"], "mine")

    def test_bad_files(self):
        good = safetensors(gpt2_tensors())
        for content, message in ((good[:200], "expected"), (b"", "empty"), (b"PK\x03\x04" + bytes(90), "zip archive"),
                                 (good + b"x", "size"), (struct.pack("<Q", 2**63) + b"{}" + bytes(30), "header length")):
            text = self.inspect(self.write("bad.safetensors", content), code=2)
            self.assertTrue(text.startswith("inspect: "), text)
            self.assertIn(message, text)
            self.assertEqual(text.count("\n"), 1, text)

    def test_names_of_any_bytes_are_printed(self):
        model = self.write("model.safetensors", safetensors({"\x1b[31m\u00e9\n": [2]}))
        self.assertNotIn("\x1b", self.inspect(model))
        self.assertEqual(len(self.inspected(model)["tensors"]), 1)

    def test_no_name_leaves_its_place(self):
        """The names of somebody's file in each format, as they are; what no reader sees is a question mark."""
        model = self.write("model.safetensors", safetensors({name: [2] for name in hostile.NAMES}))
        for style, read, text in (("csv", hostile.csv_rows, hostile.from_spreadsheet),
                                  ("markdown", hostile.markdown_rows, lambda cell: cell),
                                  ("latex", hostile.latex_rows, hostile.latex_text)):
            cells = [text(row[0]) for row in read(self.inspect(model, "--layers", "--format", style))[1:]]
            shown = [*dict.fromkeys(name.strip() if style == "markdown" else name for name in hostile.NAMES)]
            self.assertEqual([*dict.fromkeys(cells)], shown, style)
        model = self.write("model.safetensors", safetensors({name: [2] for name in hostile.REFUSED}))
        for style in ("table", "csv", "markdown", "latex", "json"):
            self.assertTrue(hostile.is_visible(self.inspect(model, "--format", style)), style)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
