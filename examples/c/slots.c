/* SPDX-FileCopyrightText: The scalewise authors
 * SPDX-License-Identifier: MIT
 *
 * Initialization and the AdamW update of a training loop over slots of tensors, as llm.c has them, each a slab
 * of all layers. The lines that follow a plan end with "scalewise"; plan.h is what
 *   plan --rule RULE ... --fold --names llm-c --format c-header --save plan.h
 * writes. Gradients are made up: a model would compute them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan.h" /* scalewise */

static double uniform(unsigned long long* state) {
  *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
  return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static float normal(unsigned long long* state) {
  const double r = sqrt(-2 * log(uniform(state)));
  return (float)(r * cos(6.283185307179586 * uniform(state)));
}

static void adamw(float* w, const float* g, float* m, float* v, size_t n, float lr, float beta1, float beta2,
                  int t, float eps, float weight_decay) {
  for (size_t i = 0; i < n; ++i) {
    m[i] = beta1 * m[i] + (1 - beta1) * g[i];
    v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
    const float step = m[i] / (1 - powf(beta1, (float)t)) / (sqrtf(v[i] / (1 - powf(beta2, (float)t))) + eps);
    w[i] -= lr * (step + weight_decay * w[i]);
  }
}

int main(void) {
  const float base_std = 0.02f, lr = 1e-3f, weight_decay = 0.1f, eps = 1e-8f;
  float* params[scalewise_tensors];
  size_t sizes[scalewise_tensors] = {0};
  for (int b = 0; b < scalewise_blocks; ++b)
    sizes[scalewise_block_rows[b].tensor] += (size_t)scalewise_block_rows[b].count;

  for (int i = 0; i < scalewise_tensors; ++i) params[i] = calloc(sizes[i], sizeof(float));
  for (int b = 0; b < scalewise_blocks; ++b) {               /* scalewise */
    const scalewise_block* block = &scalewise_block_rows[b]; /* scalewise */
    unsigned long long state = 7 + (unsigned long long)b;    /* scalewise: a stream for each block */
    float* w = params[block->tensor] + block->offset;        /* scalewise */
    for (long long i = 0; i < block->count; ++i)             /* scalewise */
      w[i] = block->mean + (block->std > 0 ? base_std * block->std * normal(&state) : 0); /* scalewise */
  }                                                          /* scalewise */

  for (int i = 0; i < scalewise_tensors; ++i) {
    double square = 0, moved = 0;
    for (size_t k = 0; k < sizes[i]; ++k) square += (double)params[i][k] * params[i][k];
    float* g = malloc(sizes[i] * sizeof(float));
    float* m = calloc(sizes[i], sizeof(float));
    float* v = calloc(sizes[i], sizeof(float));
    float* before = malloc(sizes[i] * sizeof(float));
    for (size_t k = 0; k < sizes[i]; ++k) {
      g[k] = k % 2 ? 1.0f : -1.0f;
      before[k] = params[i][k];
    }
    const scalewise_tensor* row = &scalewise_tensor_rows[i];                         /* scalewise */
    adamw(params[i], g, m, v, sizes[i], lr * row->lr, 0.9f, 0.95f, 1, eps * row->eps, /* scalewise */
          weight_decay * row->wd);                                                   /* scalewise */
    for (size_t k = 0; k < sizes[i]; ++k) moved += fabs((double)params[i][k] - before[k]);
    printf("%-9s rms %.6g  first step %.6g\n", row->name, sqrt(square / (double)sizes[i]), moved / (double)sizes[i]);
    free(g), free(m), free(v), free(before), free(params[i]);
  }
  return 0;
}
