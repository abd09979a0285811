// A network, layer by layer. Weights of a dense layer lie input by input, so that its outputs are summed side by side:
// in the order of the inputs each, whatever the width of the processor's registers.
#include "planner/policy/policy.h"

#include <math.h>
#include <stdlib.h>

#include "planner/base/control_range.h"

void sn_policy_free(SnPolicy *policy) {
  if (!policy) return;
  sn_arena_free(&policy->arena);
  free(policy);
}

double sn_policy_bytes(const SnPolicy *policy) {
  double bytes = (double)sizeof *policy;
  for (int i = 0; i < policy->nlayer; ++i) {
    const SnPolicyLayer *x = &policy->layer[i];
    const double n = x->noutput;
    bytes += (double)sizeof *x +
             (x->weight ? (double)sizeof(float) * n * (x->op == SN_POLICY_DENSE ? x->ninput : 1) : 0) +
             (x->bias ? (double)sizeof(float) * n : 0);
  }
  return bytes;
}

SnCode sn_policy_bind(SnPolicy *policy, const SnModel *m, const SnCost *cost, const char *file, SnError *err) {
  policy->target = sn_arena_alloc(&policy->arena, sizeof *policy->target * ((size_t)cost->ntarget + 1));
  if (!policy->target) return sn_fail(err, SN_ERR_MEMORY, "policy '%s': out of memory", file);
  policy->ntarget = sn_cost_given_targets(cost, policy->target);
  const int ninput = m->nq + m->nv + m->na + policy->ntarget;
  if (policy->ninput != ninput)
    return sn_fail(err, SN_ERR_ARGUMENT,
                   "policy '%s': %d inputs, this task has %d: %d of qpos, %d of qvel, %d of act, %d of targets", file,
                   policy->ninput, ninput, m->nq, m->nv, m->na, policy->ntarget);
  if (policy->noutput != m->nu)
    return sn_fail(err, SN_ERR_ARGUMENT, "policy '%s': %d outputs, the model has %d controls", file, policy->noutput,
                   m->nu);
  return SN_OK;
}

// ---- what a layer does ----

static void dense(const SnPolicyLayer *layer, const float *restrict x, float *restrict y) {
  const int n = layer->noutput;
  for (int i = 0; i < n; ++i) y[i] = layer->bias[i];
  for (int k = 0; k < layer->ninput; ++k) {
    const float *restrict row = layer->weight + (size_t)k * (size_t)n;
    const float factor = x[k];
    for (int i = 0; i < n; ++i) y[i] += factor * row[i];
  }
}

static float sigmoid(float x) { return x >= 0 ? 1 / (1 + expf(-x)) : expf(x) / (1 + expf(x)); }

static float softplus(float x) { return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x)); }

static float elementwise(const SnPolicyLayer *layer, int i, float x) {
  switch (layer->op) {
    case SN_POLICY_SCALE:
      return layer->weight[i] * x + layer->bias[i];
    case SN_POLICY_INVERSE:
      return layer->weight[i] / x;
    case SN_POLICY_RELU:
      return x > 0 ? x : 0;
    case SN_POLICY_LEAKY:
      return x > 0 ? x : layer->alpha * x;
    case SN_POLICY_ELU:
      return x > 0 ? x : layer->alpha * expm1f(x);
    case SN_POLICY_TANH:
      return tanhf(x);
    case SN_POLICY_SIGMOID:
      return sigmoid(x);
    case SN_POLICY_SOFTPLUS:
      return softplus(x);
    case SN_POLICY_CLIP:
      return x < layer->alpha ? layer->alpha : (x > layer->beta ? layer->beta : x);
    case SN_POLICY_DENSE:
      break;
  }
  return x;
}

// ---- the network ----

// Two rows of the widest layer, one to read and one to write; the input may lie in the first.
size_t sn_policy_scratch(const SnPolicy *policy) { return 2 * (size_t)policy->width; }

const float *sn_policy_run(const SnPolicy *policy, const float *input, float *scratch) {
  float *x = scratch, *y = scratch + policy->width;
  if (input != x) memcpy(x, input, sizeof *x * (size_t)policy->ninput);
  for (int k = 0; k < policy->nlayer; ++k) {
    const SnPolicyLayer *layer = &policy->layer[k];
    if (layer->op == SN_POLICY_DENSE) {
      dense(layer, x, y);
      float *const was = x;
      x = y;
      y = was;
    } else {
      for (int i = 0; i < layer->noutput; ++i) x[i] = elementwise(layer, i, x[i]);
    }
  }
  return x;
}

static float *append(float *to, const sn_real *from, int n) {
  for (int i = 0; i < n; ++i) to[i] = (float)from[i];
  return to + n;
}

bool sn_policy_act(const SnPolicy *policy, const SnModel *m, const SnWorld *w, const sn_real *target, float *scratch,
                   sn_real *ctrl) {
  float *end = append(scratch, w->qpos, m->nq);
  end = append(end, w->qvel, m->nv);
  end = append(end, w->act, m->na);
  for (int i = 0; i < policy->ntarget; ++i) end[i] = (float)target[policy->target[i]];
  const float *u = sn_policy_run(policy, scratch, scratch);
  for (int i = 0; i < m->nu; ++i)
    if (!isfinite(u[i])) return false;
  for (int i = 0; i < m->nu; ++i) ctrl[i] = sn_ctrl_clip(m, i, (sn_real)u[i]);
  return true;
}
