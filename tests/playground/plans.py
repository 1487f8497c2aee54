# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Plans that the page has to make as the program does: options of `plan`, as text."""

# A model that the rule is for, with a base where it needs one.
OF_RULES = """
--rule standard --preset gpt2
--rule pytorch --preset vit-b16 --optimizer sgd
--rule gpt2 --preset gpt2-xl
--rule bert --preset bert-large
--rule xavier --preset t5-base --optimizer sgd
--rule he --preset gpt3-350m
--rule neural-tangent --preset pythia-1b
--rule meta-principled --preset gpt2-medium
--rule maximal-update --preset gpt2-xl --base-preset gpt2
--rule depth-mup --preset llama-2-70b --base-preset llama-2-7b --set depth=9
--rule complete-p --preset cerebras-gpt-590m --base-preset cerebras-gpt-111m
--rule ngpt --preset llama-3.2-1b
--rule ngpt-depth-mup --preset llama-2-13b --base-preset llama-2-7b
--rule ngpt-complete-p --preset llama-2-13b --base-preset llama-2-7b
--rule nu-gpt --preset llama-3-8b --base-preset llama-3.2-1b --set base.tied_head=false
--rule nu-gpt-full-align --preset llama-2-13b --base-preset llama-2-7b
--rule deep-scale-lm --preset bert-base --set activation=relu --set dropout=0.1 --set input_correlation=0.221
--rule deep-scale-lm-simple --preset gpt2 --set activation=relu --set dropout=0
--rule deep-norm --preset bart-large
--rule ds-init --preset t5-base
--rule layer-scale --preset vit-b16
--rule rezero --preset gpt3-125m
--rule skip-init --preset olmo-2-1b
--rule shallow-lecun --preset vit-b16 --optimizer sgd
--rule shallow-he --preset vit-b16 --optimizer sgd
--rule shallow-ntk --preset vit-b16 --set d_model=4 --set heads=1 --set patch_dim=3 --optimizer sgd
""".strip().splitlines()

OF_OPTIONS = """
--rule standard --preset gpt2 --optimizer sign-sgd
--rule he --preset r2c2-400m --decay l2 --optimizer sgd
--rule maximal-update --preset gpt2-xl --base-preset gpt2 --decay independent
--rule maximal-update --preset gpt2-xl --base-preset gpt2 --optimizer sgd --set table=3
--rule maximal-update --preset gpt2 --base-preset gpt2 --set zero_head=true --set zero_query=true --set base.d_model=192 --set base.heads=3
--rule maximal-update --preset gpt2-xl --base-preset gpt2 --start gpt2
--rule maximal-update --preset gpt2-xl --base-preset gpt2 --fold
--rule maximal-update --preset gpt2-large --base-preset gpt2 --optimizer sgd --single-rate
--rule complete-p --preset gpt2-xl --base-preset gpt2 --set alpha=0.75
--rule complete-p --preset gpt2 --base-preset gpt2 --set depth=100 --set d_model=1536 --set heads=24
--rule nu-gpt --preset llama-2-13b --base-preset llama-2-7b --set alignment=1 --set input_rate=0.5 --set output_rate=2e-3
--rule meta-principled --preset vit-l16 --set s=0.333 --set mlp_ratio_in_rates=false
--rule neural-tangent --preset gpt2 --optimizer sgd --set d_ff=5000
--rule deep-scale-lm --preset gpt2 --set activation=relu --set dropout=0.05 --set k=3 --set input_correlation=0.4
--rule shallow-he --preset vit-l16 --set tau0=1 --optimizer sgd
--rule gpt2 --preset llama-3-405b --set depth=12
--rule standard --preset gpt2 --set qk_norm=head --set attention_biases=none
--rule gpt2 --preset gpt2 --names nanogpt
--rule maximal-update --preset llama-3-8b --base-preset llama-3.2-1b --set base.tied_head=false --names torchtitan
--compare maximal-update,complete-p --preset gpt2-xl --base-preset gpt2 --set alpha=0.5
--compare gpt2,neural-tangent --preset bart-large --layers
""".strip().splitlines()

# {NAME} is a file of tests/data/configs.
OF_CONFIGS = """
--rule gpt2 --config {gpt2-xl}
--rule maximal-update --config {gpt2-xl} --base-config {gpt2}
--rule depth-mup --config {llama-3-8b} --base-preset llama-3-8b --set base.depth=8
--rule pytorch --config {t5-11b} --set depth=3
--rule xavier --config {bert-large} --optimizer sgd
--rule neural-tangent --config {pythia-160m}
--rule standard --config {qwen3-0.6b}
--rule complete-p --config {mistral-7b} --base-config {mistral-7b} --set base.d_model=512 --set base.heads=8 --set base.kv_heads=2
""".strip().splitlines()

# Few layers say as much as many, and the page computes without optimization here.
OF_RULES, OF_OPTIONS, OF_CONFIGS = ([line + " --set depth=4" * ("depth=" not in line and "shallow" not in line) for line in lines]
                                    for lines in (OF_RULES, OF_OPTIONS, OF_CONFIGS))

# Models that are lists of tensors, and bases like the model.
OF_OPTIONS += """
--rule complete-p --preset mixtral-8x7b --base-width 1024
--rule maximal-update --preset deepseek-v2-lite --base-width 512 --base-depth 9
--rule complete-p --preset olmoe-1b-7b --base-experts 16 --set mssp=true --layers
--compare maximal-update,depth-mup --preset gemma-2-2b --base-width 576
--rule complete-p --preset gpt2 --base-width 192 --base-depth 3 --set base.vocab=100
""".strip().splitlines()

# Input that both refuse, in the same words.
REFUSED = """
--rule maximal-updat --preset gpt2
--rule maximal-update --preset gpt2
--rule complete-p --preset gpt2 --base-preset gpt2 --optimizer sgd
--rule gpt2 --preset gpt2 --set d_model=7e2
--rule gpt2 --preset gpt2 --set heads=7
--rule gpt2 --preset gpt2 --set d_modl=5
--rule meta-principled --preset gpt2 --set s=2
--rule meta-principled --preset gpt2 --set s=half
--rule meta-principled --preset gpt2 --set s=0x1p-1
--rule deep-scale-lm --preset llama-3-8b
--rule deep-scale-lm --preset gpt2 --set activation=relu
--compare gpt2,he --preset gpt2 --set alpha=1
--compare gpt2,he --rule gpt2 --preset gpt2
--rule gpt2 --preset gpt2 --fold --single-rate
--rule gpt2 --preset gpt2 --set d_model
--rule gpt2 --preset gpt2 --set __proto__=1
--rule maximal-update --preset gpt2 --base-width 3x
--rule maximal-update --preset gpt2 --base-width 100
--rule maximal-update --preset gpt2 --base-preset gpt2 --base-depth 3
--rule maximal-update --preset mixtral-8x7b
--rule maximal-update --preset mixtral-8x7b --base-width 1024 --set depth=4
--rule maximal-update --preset gpt2 --base-preset mixtral-8x7b
""".strip().splitlines()
