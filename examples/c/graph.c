/* SPDX-FileCopyrightText: The scalewise authors
 * SPDX-License-Identifier: MIT
 *
 * Training of a small LLaMA as a static graph of named tensors, in the form that ggml gives them: ne[0] is the
 * fan-in, names are those of GGUF, a step of AdamW takes seven numbers. The lines that follow a plan end with
 * "scalewise"; plan.h is what
 *   plan --rule RULE ... --fold --names gguf-llama --format c-header --save plan.h
 * writes.
 *
 *   graph WIDTH    trains three seeds for three steps, and prints records as CSV without their first line
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h" /* scalewise */

enum { vocab = 32, sequence = 8, tokens = 64, head_dim = 16, max_nodes = 64 };
enum op { PARAM, GET_ROWS, RMS_NORM, MUL_MAT, ADD, SWIGLU, ATTENTION };

struct ggml_tensor {
  enum op op;
  long long ne[2]; /* numbers in a row, rows */
  struct ggml_tensor* src[3];
  float *data, *grad, *m, *v;
  char name[64];
};

static struct ggml_tensor graph[max_nodes]; /* in the order of computation */
static int nodes;
static int inputs[tokens], targets[tokens];

static const char* ggml_get_name(const struct ggml_tensor* t) { return t->name; }
static float* ggml_get_data_f32(const struct ggml_tensor* t) { return t->data; }
static long long ggml_nelements(const struct ggml_tensor* t) { return t->ne[0] * t->ne[1]; }

static double uniform(unsigned long long* state) {
  *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
  return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static float normal(unsigned long long* state) {
  const double r = sqrt(-2 * log(uniform(state)));
  return (float)(r * cos(6.283185307179586 * uniform(state)));
}

static struct ggml_tensor* add_node(enum op op, long long ne0, long long ne1, struct ggml_tensor* a,
                                    struct ggml_tensor* b, struct ggml_tensor* c) {
  struct ggml_tensor* t = &graph[nodes++];
  const size_t n = (size_t)(ne0 * ne1);
  *t = (struct ggml_tensor){.op = op, .ne = {ne0, ne1}, .src = {a, b, c}};
  t->data = calloc(4 * n, sizeof(float));
  t->grad = t->data + n, t->m = t->grad + n, t->v = t->m + n;
  return t;
}

static struct ggml_tensor* param(const char* name, long long ne0, long long ne1) {
  struct ggml_tensor* t = add_node(PARAM, ne0, ne1, NULL, NULL, NULL);
  snprintf(t->name, sizeof t->name, "%s", name);
  return t;
}

static struct ggml_tensor* mul_mat(struct ggml_tensor* w, struct ggml_tensor* x) {
  return add_node(MUL_MAT, w->ne[1], x->ne[1], w, x, NULL);
}

static struct ggml_tensor* norm(struct ggml_tensor* x, struct ggml_tensor* gain) {
  return add_node(RMS_NORM, x->ne[0], x->ne[1], x, gain, NULL);
}

/* Causal attention of one token in one head: the weights of the tokens up to it. */
static void softmax(const float* q, const float* k, long long n, int length, float* p) {
  float sum = 0;
  for (int j = 0; j < length; ++j) {
    float score = 0;
    for (int i = 0; i < head_dim; ++i) score += q[i] * k[j * n + i];
    sum += p[j] = expf(score / sqrtf(head_dim));
  }
  for (int j = 0; j < length; ++j) p[j] /= sum;
}

/* One node: its data from those of its sources, or their gradients from its own. */
static void compute(struct ggml_tensor* t, int back) {
  struct ggml_tensor *a = t->src[0], *b = t->src[1], *c = t->src[2];
  const long long n = t->ne[0], m = a ? a->ne[0] : 0;
  for (long long r = 0; t->op != PARAM && r < tokens; ++r) {
    float *y = t->data + r * n, *dy = t->grad + r * n;
    if (t->op == GET_ROWS) {
      for (long long i = 0; i < n; ++i) {
        if (back)
          a->grad[inputs[r] * n + i] += dy[i];
        else
          y[i] = a->data[inputs[r] * n + i];
      }
    } else if (t->op == RMS_NORM) {
      const float* x = a->data + r * n;
      float square = 0, dot = 0;
      for (long long i = 0; i < n; ++i) square += x[i] * x[i], dot += dy[i] * b->data[i] * x[i];
      const float over = 1 / sqrtf(square / (float)n + 1e-6f);
      for (long long i = 0; i < n; ++i) {
        if (!back)
          y[i] = x[i] * over * b->data[i];
        else
          b->grad[i] += dy[i] * x[i] * over,
              a->grad[r * n + i] +=
              over * (dy[i] * b->data[i] - x[i] * dot * over * over / (float)n);
      }
    } else if (t->op == MUL_MAT) {
      for (long long o = 0; o < n; ++o) {
        const float *w = a->data + o * m, *x = b->data + r * m;
        float *dw = a->grad + o * m, *dx = b->grad + r * m, sum = 0;
        if (back)
          for (long long i = 0; i < m; ++i) dw[i] += dy[o] * x[i], dx[i] += dy[o] * w[i];
        else
          for (long long i = 0; i < m; ++i) sum += w[i] * x[i];
        if (!back) y[o] = sum;
      }
    } else if (t->op == ADD) {
      for (long long i = r * n; i < (r + 1) * n; ++i) {
        if (back)
          a->grad[i] += t->grad[i], b->grad[i] += t->grad[i];
        else
          t->data[i] = a->data[i] + b->data[i];
      }
    } else if (t->op == SWIGLU) {
      for (long long i = r * n; i < (r + 1) * n; ++i) {
        const float g = a->data[i], s = 1 / (1 + expf(-g));
        if (!back)
          t->data[i] = g * s * b->data[i];
        else
          b->grad[i] += t->grad[i] * g * s,
              a->grad[i] += t->grad[i] * b->data[i] * s * (1 + g * (1 - s));
      }
    } else {
      const long long first = r - r % sequence;
      const int length = (int)(r % sequence) + 1;
      for (long long h = 0; h < n; h += head_dim) {
        float p[sequence], dp[sequence], mean = 0;
        const float *q = a->data + r * n + h, *k = b->data + first * n + h,
                    *v = c->data + first * n + h;
        softmax(q, k, n, length, p);
        for (int i = 0; !back && i < head_dim; ++i) {
          y[h + i] = 0;
          for (int j = 0; j < length; ++j) y[h + i] += p[j] * v[j * n + i];
        }
        for (int j = 0; back && j < length; ++j) {
          dp[j] = 0;
          for (int i = 0; i < head_dim; ++i) {
            dp[j] += dy[h + i] * v[j * n + i];
            c->grad[(first + j) * n + h + i] += p[j] * dy[h + i];
          }
          mean += p[j] * dp[j];
        }
        for (int j = 0; back && j < length; ++j) {
          const float ds = p[j] * (dp[j] - mean) / sqrtf(head_dim);
          for (int i = 0; i < head_dim; ++i) {
            a->grad[r * n + h + i] += ds * k[j * n + i];
            b->grad[(first + j) * n + h + i] += ds * q[i];
          }
        }
      }
    }
  }
}

/* pars: the seven numbers of ggml_opt_step_adamw. */
static void step_adamw(struct ggml_tensor* t, const float* pars) {
  for (long long i = 0; i < ggml_nelements(t); ++i) {
    t->m[i] = pars[1] * t->m[i] + (1 - pars[1]) * t->grad[i];
    t->v[i] = pars[2] * t->v[i] + (1 - pars[2]) * t->grad[i] * t->grad[i];
    t->data[i] -=
        pars[0] * (t->m[i] * pars[5] / (sqrtf(t->v[i] * pars[6]) + pars[3]) + pars[4] * t->data[i]);
  }
}

static const scalewise_tensor* plan_of(const struct ggml_tensor* t) {               /* scalewise */
  for (int i = 0; i < scalewise_tensors; ++i) {                                     /* scalewise */
    long long n = 0;                                                                /* scalewise */
    for (int b = 0; b < scalewise_blocks; ++b)                                      /* scalewise */
      n += (scalewise_block_rows[b].tensor == i) * scalewise_block_rows[b].count;   /* scalewise */
    const int found = strcmp(scalewise_tensor_rows[i].name, ggml_get_name(t)) == 0; /* scalewise */
    if (found && n == ggml_nelements(t)) return &scalewise_tensor_rows[i];          /* scalewise */
  }                                                                                 /* scalewise */
  fprintf(stderr, "%s: not in the plan, or of another size\n", t->name), exit(2);   /* scalewise */
} /* scalewise */

/* Prints the sizes of x, or of what was added to `from`. */
static void record(const char* signal, const char* name, const float* x, const float* from,
                   long long count, long long size, int seed, int step) {
  double sum = 0, squares = 0;
  for (long long i = 0; i < count; ++i) {
    const double value = from ? (double)x[i] - from[i] : x[i];
    sum += fabs(value), squares += value * value;
  }
  printf("%lld,%d,%d,%s,%s,%.17g,%.17g,%lld\n", size, seed, step, signal, name, sum, squares,
         count);
}

int main(int argc, char** argv) {
  const long long n = argc > 1 ? atoll(argv[1]) : 0;
  const float base_std = 0.25f, lr = 0.01f, weight_decay = 0.1f, eps = 1e-8f;
  if (n < head_dim || n % head_dim != 0)
    return fprintf(stderr, "graph: WIDTH: expected a multiple of 16\n"), 2;

  struct ggml_tensor* embedding = param("token_embd.weight", n, vocab);
  struct ggml_tensor* x = add_node(GET_ROWS, n, tokens, embedding, NULL, NULL);
  struct ggml_tensor* u = norm(x, param("blk.0.attn_norm.weight", n, 1));
  struct ggml_tensor* q = mul_mat(param("blk.0.attn_q.weight", n, n), u);
  struct ggml_tensor* k = mul_mat(param("blk.0.attn_k.weight", n, n), u);
  struct ggml_tensor* v = mul_mat(param("blk.0.attn_v.weight", n, n), u);
  struct ggml_tensor* heads = add_node(ATTENTION, n, tokens, q, k, v);
  struct ggml_tensor* attention = mul_mat(param("blk.0.attn_output.weight", n, n), heads);
  x = add_node(ADD, n, tokens, x, attention, NULL);
  u = norm(x, param("blk.0.ffn_norm.weight", n, 1));
  struct ggml_tensor* gate = mul_mat(param("blk.0.ffn_gate.weight", n, 4 * n), u);
  struct ggml_tensor* up = mul_mat(param("blk.0.ffn_up.weight", n, 4 * n), u);
  struct ggml_tensor* hidden = add_node(SWIGLU, 4 * n, tokens, gate, up, NULL);
  struct ggml_tensor* mlp = mul_mat(param("blk.0.ffn_down.weight", 4 * n, n), hidden);
  x = norm(add_node(ADD, n, tokens, x, mlp, NULL), param("output_norm.weight", n, 1));
  struct ggml_tensor* logits = mul_mat(param("output.weight", n, vocab), x);

  const struct ggml_tensor* shown[] = {attention, hidden, mlp, logits};
  const char* names[] = {"layer.0.attention.output", "layer.0.mlp.hidden", "layer.0.mlp.output",
                         "logits"};
  float* before = malloc((size_t)(4 * n * n) * sizeof(float));

  for (int seed = 1; seed <= 3; ++seed) {
    unsigned long long state = (unsigned long long)seed;
    for (int r = 0; r < tokens; ++r)
      inputs[r] = (int)(vocab * uniform(&state)), targets[r] = (7 * inputs[r] + 3) % vocab;
    for (int i = 0; i < nodes; ++i)
      memset(graph[i].m, 0, 2 * (size_t)ggml_nelements(&graph[i]) * sizeof(float));
    for (int i = 0; i < nodes; ++i) {
      struct ggml_tensor* t = &graph[i];
      if (t->op != PARAM) continue;
      for (int b = 0; b < scalewise_blocks; ++b) {                         /* scalewise */
        const scalewise_block* block = &scalewise_block_rows[b];           /* scalewise */
        float* w = ggml_get_data_f32(t) + block->offset;                   /* scalewise */
        if (&scalewise_tensor_rows[block->tensor] != plan_of(t)) continue; /* scalewise */
        for (long long j = 0; j < block->count; ++j)                       /* scalewise */
          w[j] = block->mean + base_std * block->std * normal(&state);     /* scalewise */
      }                                                                    /* scalewise */
    }
    for (int step = 0; step <= 3; ++step) {
      for (int i = 0; i < nodes; ++i) {
        memset(graph[i].grad, 0, (size_t)ggml_nelements(&graph[i]) * sizeof(float));
        compute(&graph[i], 0);
      }
      for (int i = 0; i < 4; ++i) {
        const struct ggml_tensor* t = shown[i];
        const size_t bytes = (size_t)ggml_nelements(t) * sizeof(float);
        record("value", names[i], t->data, NULL, ggml_nelements(t), n, seed, step);
        if (step > 0) record("change", names[i], t->data, t->m, ggml_nelements(t), n, seed, step);
        if (step == 0) memcpy(t->m, t->data, bytes); /* an activation at step 0, kept in m */
      }
      for (int r = 0; r < tokens; ++r) { /* softmax and cross entropy */
        float *z = logits->data + r * vocab, *dz = logits->grad + r * vocab, sum = 0;
        for (int i = 0; i < vocab; ++i) sum += expf(z[i]);
        for (int i = 0; i < vocab; ++i) dz[i] = (expf(z[i]) / sum - (i == targets[r])) / tokens;
      }
      for (int i = nodes - 1; i >= 0; --i) compute(&graph[i], 1);
      for (int i = 0; i < nodes; ++i) {
        struct ggml_tensor* t = &graph[i];
        if (t->op != PARAM) continue;
        float pars[7] = {lr, 0.9f, 0.95f, eps, weight_decay};
        const scalewise_tensor* row = plan_of(t);                    /* scalewise */
        pars[0] *= row->lr, pars[3] *= row->eps, pars[4] *= row->wd; /* scalewise */
        pars[5] = 1 / (1 - powf(pars[1], (float)step + 1));
        pars[6] = 1 / (1 - powf(pars[2], (float)step + 1));
        memcpy(before, t->data, (size_t)ggml_nelements(t) * sizeof(float));
        step_adamw(t, pars);
        if (strcmp(t->name, "blk.0.ffn_up.weight") == 0) {
          record("gradient", "layer.0.mlp_up", t->grad, NULL, ggml_nelements(t), n, seed, step);
          record("update", "layer.0.mlp_up", t->data, before, ggml_nelements(t), n, seed, step + 1);
        }
      }
    }
  }
  for (int i = 0; i < nodes; ++i) free(graph[i].data);
  free(before);
  return 0;
}
