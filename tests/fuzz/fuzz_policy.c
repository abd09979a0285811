// Fuzz target: policies, from the bytes of an ONNX file to the network's output.
#include <stdlib.h>
#include <string.h>

#include "planner/policy/policy.h"
#include "tests/fuzz/fuzz.h"
#include "tests/planner/policy/onnx_maker.h"

static bool ran;

void fuzz_one(const uint8_t *data, size_t size) {
  SnError err = {0};
  SnPolicy *policy = sn_policy_parse(data, size, "fuzz.onnx", &err);
  if (!policy != (err.text[0] != '\0')) fuzz_fail("policy %p with the text '%s'", (void *)policy, err.text);
  if (!policy) return;
  if (policy->ninput < 1 || policy->noutput < 1 || policy->width < policy->ninput || policy->width < policy->noutput)
    fuzz_fail("%d inputs, %d outputs, a width of %d", policy->ninput, policy->noutput, policy->width);
  float *input = calloc((size_t)policy->ninput, sizeof *input);
  float *scratch = malloc(sizeof *scratch * sn_policy_scratch(policy));
  float sum = 0;
  if (input && scratch) {
    const float *output = sn_policy_run(policy, input, scratch);
    for (int i = 0; i < policy->noutput; ++i) sum += output[i];
    ran = true;
  }
  if (!(sn_policy_bytes(policy) > 0) && sum == 0) fuzz_fail("a policy of no bytes");
  free(input);
  free(scratch);
  sn_policy_free(policy);
}

const char *fuzz_missing(void) { return ran ? NULL : "a network's output"; }

// Chains that use every operation; constants as floats.
size_t fuzz_seed(int i, uint8_t *bytes) {
  static OnnxMaker x;
  static char *const activation[] = {"Relu", "LeakyRelu", "Elu", "Tanh", "Sigmoid", "Softplus", "Identity", "Flatten"};
  enum { ACTIVATIONS = sizeof activation / sizeof *activation };
  float W[] = {1, -2, 3, 0.5F, 5, 6}, c[] = {0.5F, -0.5F}, three[] = {2, -4, 0.5F};
  size_t size;
  if (i >= ACTIVATIONS) return 0;
  onnx_begin(&x, 3);
  onnx_node(&x, i % 2 ? "Sub" : "Add", onnx_constant(&x, 0, 3, three), NULL);
  onnx_node(&x, i % 2 ? "Div" : "Mul", onnx_constant(&x, 1, 3, three), NULL);
  char *weight = onnx_constant(&x, i % 3 ? 2 : 3, i % 3 ? 3 : 2, W);
  onnx_node(&x, i % 3 ? "Gemm" : "MatMul", weight, i % 3 ? onnx_constant(&x, 0, 2, c) : NULL);
  if (i % 3) onnx_attribute(&x, "transB", 1, 1);
  onnx_node(&x, activation[i], NULL, NULL);
  onnx_attribute(&x, "alpha", 0.5F, 0);
  char *least = onnx_constant(&x, 0, 1, c + 1);
  onnx_node(&x, "Clip", least, onnx_constant(&x, 0, 1, c));
  uint8_t *file = onnx_pack(&x, &size);
  if (!file || size > FUZZ_SEED_BYTES) fuzz_fail("no seed");
  memcpy(bytes, file, size);
  free(file);
  return size;
}
