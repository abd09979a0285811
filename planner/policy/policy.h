// A policy: a small network from a state and what the task wants there to controls. It is read from an ONNX file, and
// its rollout is where a plan may begin.
//
// The network is a chain: each node has one input that is no constant, the output of the node before. Inputs are
//
//   qpos (nq), qvel (nv), act (na), targets at the state's time: those of sn_cost_given_targets
//
// Outputs are controls (nu), which are clamped to their ranges. It computes in float, whatever sn_real is.
#ifndef SINEW_PLANNER_POLICY_POLICY_H_
#define SINEW_PLANNER_POLICY_POLICY_H_

#include "planner/base/arena.h"
#include "planner/cost/cost.h"

// Names what a layer does to its input x.
typedef enum SnPolicyOp {
  SN_POLICY_DENSE,     // W x + b
  SN_POLICY_SCALE,     // a_i x_i + b_i
  SN_POLICY_INVERSE,   // a_i / x_i
  SN_POLICY_RELU,      // max(x, 0)
  SN_POLICY_LEAKY,     // x, or alpha x where it is negative
  SN_POLICY_ELU,       // x, or alpha (exp(x) - 1) where it is negative
  SN_POLICY_TANH,      // tanh(x)
  SN_POLICY_SIGMOID,   // 1 / (1 + exp(-x))
  SN_POLICY_SOFTPLUS,  // log(1 + exp(x))
  SN_POLICY_CLIP       // within [alpha, beta]
} SnPolicyOp;

typedef struct SnPolicyLayer {
  SnPolicyOp op;
  int ninput, noutput;
  float alpha, beta;
  float *weight;  // DENSE: (ninput, noutput); SCALE, INVERSE: (noutput); else NULL
  float *bias;    // DENSE, SCALE: (noutput); else NULL
} SnPolicyLayer;

// Holds a network. Once it is bound it does not change: any number of threads may read it.
typedef struct SnPolicy {
  SnArena arena;  // holds all of it
  int ninput, noutput;
  int width;  // numbers of its widest layer, input included
  int nlayer;
  SnPolicyLayer *layer;  // (nlayer)
  int ntarget;
  int *target;  // (ntarget) entries of a row of targets that it reads
} SnPolicy;

enum {
  SN_POLICY_MAX_BYTES = 64 << 20,  // bounds the file, and all numbers that its nodes read together
  SN_POLICY_MAX_WIDTH = 1 << 16,
  SN_POLICY_MAX_LAYERS = 256,
  SN_POLICY_MAX_NODES = 4096  // nodes, constants, inputs
};

// Reads an ONNX file, or bytes[size] called `file` in messages. Returns NULL on failure; err names the file and the
// node, what is wrong and what is allowed. Free it with sn_policy_free (NULL is allowed).
SnPolicy *sn_policy_load(const char *file, SnError *err);
SnPolicy *sn_policy_parse(const void *bytes, size_t size, const char *file, SnError *err);
void sn_policy_free(SnPolicy *policy);

// Returns the memory that it takes [bytes].
double sn_policy_bytes(const SnPolicy *policy);

// Binds it to a model and a cost. Returns SN_ERR_ARGUMENT where sizes are not theirs; err names those of each part.
SnCode sn_policy_bind(SnPolicy *policy, const SnModel *m, const SnCost *cost, const char *file, SnError *err);

// Returns how many numbers of scratch a policy wants.
size_t sn_policy_scratch(const SnPolicy *policy);
// Computes the output (noutput) of the network for an input (ninput), in scratch (sn_policy_scratch), where the result
// lies.
const float *sn_policy_run(const SnPolicy *policy, const float *input, float *scratch);
// Writes the controls (nu) of a bound policy in a world's state, with a row of targets as sn_cost_schedule makes them.
// False, and nothing is written, where they are not finite. Does not allocate.
bool sn_policy_act(const SnPolicy *policy, const SnModel *m, const SnWorld *w, const sn_real *target, float *scratch,
                   sn_real *ctrl);

#endif
