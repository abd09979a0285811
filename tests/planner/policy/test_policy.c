// Policies from ONNX files: what layers compute, and what is refused. tests/clients/python/test_policy_torch.py
// reads what PyTorch writes.
#include "planner/policy/policy.h"

#include <math.h>

#include "tests/planner/policy/onnx_maker.h"
#include "tests/support/oracle.h"

static SnPolicy *parse(const OnnxMaker *x, SnError *err) {
  size_t size;
  uint8_t *bytes = onnx_pack(x, &size);
  SnPolicy *policy = sn_policy_parse(bytes, size, "net.onnx", err);
  free(bytes);
  return policy;
}

// Runs the chain for an input; fails where it cannot be read.
static void run(const OnnxMaker *x, const float *input, float *output) {
  SnError err = {0};
  SnPolicy *policy = parse(x, &err);
  if (!policy) fail_msg("%s", err.text);
  float *scratch = malloc(sizeof *scratch * sn_policy_scratch(policy));
  memcpy(output, sn_policy_run(policy, input, scratch), sizeof *output * (size_t)policy->noutput);
  free(scratch);
  sn_policy_free(policy);
}

static void expect_near(float a, double b) {
  if (!(fabs((double)a - b) <= 1e-6 * (1 + fabs(b)))) fail_msg("%g for %g", (double)a, b);
}

static void dense(void **state) {
  (void)state;
  static OnnxMaker x;
  float W[] = {1, 2, 3, 4, 5, 6}, c[] = {0.5F, -0.5F}, in[] = {1, -2, 0.5F}, out[3];
  onnx_begin(&x, 3);  // 2 x W' + 3 c
  char *weight = onnx_constant(&x, 2, 3, W);
  onnx_node(&x, "Gemm", weight, onnx_constant(&x, 0, 2, c));
  SinewOnnx__AttributeProto more[3];
  SinewOnnx__AttributeProto *list[3];
  char *const names[] = {"transB", "alpha", "beta"};
  for (int i = 0; i < 3; ++i) {
    more[i] = (SinewOnnx__AttributeProto)SINEW_ONNX__ATTRIBUTE_PROTO__INIT;
    more[i].name = names[i];
    more[i].has_i = i == 0, more[i].i = 1, more[i].has_f = i > 0, more[i].f = i == 1 ? 2 : 3;
    list[i] = &more[i];
  }
  x.node[0].attribute = list;
  x.node[0].n_attribute = 3;
  run(&x, in, out);
  expect_near(out[0], 2 * (1 - 4 + 1.5) + 1.5);
  expect_near(out[1], 2 * (4 - 10 + 3) - 1.5);

  onnx_begin(&x, 3);  // x W, W (3, 2), then - x' (1) + c
  onnx_node(&x, "MatMul", onnx_constant(&x, 3, 2, W), NULL);
  onnx_node(&x, "Sub", NULL, NULL);
  x.input[1][0] = onnx_constant(&x, 1, 2, c), x.input[1][1] = x.name[1];
  x.node[1].n_input = 2;
  run(&x, in, out);
  expect_near(out[0], 0.5 - (1 - 6 + 2.5));
  expect_near(out[1], -0.5 - (2 - 8 + 3));
}

static double of_activation(const char *op, double x) {
  if (strcmp(op, "Relu") == 0) return x > 0 ? x : 0;
  if (strcmp(op, "LeakyRelu") == 0) return x > 0 ? x : 0.2 * x;
  if (strcmp(op, "Elu") == 0) return x > 0 ? x : 0.2 * (exp(x) - 1);
  if (strcmp(op, "Tanh") == 0) return tanh(x);
  if (strcmp(op, "Sigmoid") == 0) return 1 / (1 + exp(-x));
  if (strcmp(op, "Softplus") == 0) return log(1 + exp(x));
  return x;
}

static void activations(void **state) {
  (void)state;
  static OnnxMaker x;
  char *const op[] = {"Relu", "LeakyRelu", "Elu", "Tanh", "Sigmoid", "Softplus", "Identity", "Flatten"};
  const float in[] = {-3, -0.25F, 0, 0.5F, 4};
  for (size_t k = 0; k < sizeof op / sizeof *op; ++k) {
    float out[5];
    onnx_begin(&x, 5);
    onnx_node(&x, op[k], NULL, NULL);
    onnx_attribute(&x, "alpha", 0.2F, 0);
    run(&x, in, out);
    for (int i = 0; i < 5; ++i) expect_near(out[i], of_activation(op[k], (double)in[i]));
  }
}

static void arithmetic(void **state) {
  (void)state;
  static OnnxMaker x;
  float three[] = {2, -4, 0.5F}, one[] = {3}, low[] = {-1}, high[] = {6}, in[] = {1, 2, -8}, out[3];
  onnx_begin(&x, 3);  // clip(((x - three) * 3) / three, -1, 6)
  onnx_node(&x, "Sub", onnx_constant(&x, 0, 3, three), NULL);
  onnx_node(&x, "Mul", onnx_constant(&x, 0, 1, one), NULL);
  onnx_node(&x, "Div", onnx_constant(&x, 1, 3, three), NULL);
  char *least = onnx_constant(&x, 0, 1, low);
  onnx_node(&x, "Clip", least, onnx_constant(&x, 0, 1, high));
  run(&x, in, out);
  expect_near(out[0], -1);
  expect_near(out[1], -1);
  expect_near(out[2], -1);
  in[0] = 3, in[1] = -9, in[2] = 50;
  run(&x, in, out);
  expect_near(out[0], 1.5);
  expect_near(out[1], 3.75);
  expect_near(out[2], 6);

  onnx_begin(&x, 3);  // three / x
  onnx_node(&x, "Div", NULL, NULL);
  x.input[0][0] = onnx_constant(&x, 1, 3, three), x.input[0][1] = x.name[0];
  x.node[0].n_input = 2;
  run(&x, in, out);
  for (int i = 0; i < 3; ++i) expect_near(out[i], (double)three[i] / (double)in[i]);
}

// A constant under another name, as PyTorch writes equal ones.
static void names_of_constants(void **state) {
  (void)state;
  static OnnxMaker x;
  float three[] = {2, -4, 0.5F}, in[] = {1, 2, -8}, out[3];
  onnx_begin(&x, 3);
  onnx_node(&x, "Identity", NULL, NULL);
  x.input[0][0] = onnx_constant(&x, 0, 3, three);
  onnx_node(&x, "Add", x.name[1], NULL);
  x.input[1][0] = x.name[0];
  run(&x, in, out);
  for (int i = 0; i < 3; ++i) expect_near(out[i], (double)three[i] + (double)in[i]);
}

// Numbers as double, and as bytes.
static void kinds_of_numbers(void **state) {
  (void)state;
  static OnnxMaker x;
  float three[] = {2, -4, 0.5F}, in[] = {1, 2, -8}, out[3];
  double wide[] = {2, -4, 0.5};
  for (int kind = 0; kind < 3; ++kind) {
    onnx_begin(&x, 3);
    onnx_node(&x, "Add", onnx_constant(&x, 0, 3, three), NULL);
    SinewOnnx__TensorProto *t = &x.tensor[0];
    t->n_float_data = 0;
    t->data_type = kind == 2 ? 1 : 11;
    if (kind == 0) t->n_double_data = 3, t->double_data = wide;
    if (kind > 0) t->has_raw_data = 1;
    if (kind == 1) t->raw_data = (ProtobufCBinaryData){sizeof wide, (uint8_t *)wide};
    if (kind == 2) t->raw_data = (ProtobufCBinaryData){sizeof three, (uint8_t *)three};
    run(&x, in, out);
    for (int i = 0; i < 3; ++i) expect_near(out[i], (double)three[i] + (double)in[i]);
  }
}

// ---- what is refused ----

static void expect_refused(const OnnxMaker *x, const char *why) {
  SnError err = {0};
  SnPolicy *policy = parse(x, &err);
  if (policy) fail_msg("not refused: %s", why);
  assert_int_equal(err.code, SN_ERR_FORMAT);
  if (!strstr(err.text, "net.onnx") || !strstr(err.text, why)) fail_msg("'%s' lacks '%s'", err.text, why);
}

static void refused(void **state) {
  (void)state;
  static OnnxMaker x;
  float W[] = {1, 2, 3, 4, 5, 6}, bad[] = {1, NAN, 2}, zero[] = {0};
  SnError err = {0};
  assert_null(sn_policy_parse("no such thing", 13, "net.onnx", &err));
  assert_non_null(strstr(err.text, "no ONNX file"));
  assert_null(sn_policy_load("/nowhere/net.onnx", &err));
  assert_non_null(strstr(err.text, "/nowhere/net.onnx: No such file"));

  onnx_begin(&x, 3);
  onnx_node(&x, "Conv", NULL, NULL);
  expect_refused(&x, "node 0 of the graph, 'without a name' (Conv): this operation is not known; known are Gemm");
  onnx_begin(&x, 3);
  onnx_node(&x, "MatMul", onnx_constant(&x, 2, 3, W), NULL);
  expect_refused(&x, "a matrix for 2 entries, there are 3");
  onnx_begin(&x, 3);
  onnx_node(&x, "Add", onnx_constant(&x, 0, 2, W), NULL);
  expect_refused(&x, "a constant of 1 rows of 2 numbers for 3 entries, allowed is one row of 1 or 3");
  onnx_begin(&x, 3);
  onnx_node(&x, "Add", onnx_constant(&x, 0, 3, bad), NULL);
  expect_refused(&x, "input 1, number 1: nan, allowed are finite numbers");
  onnx_begin(&x, 3);
  onnx_node(&x, "Div", onnx_constant(&x, 0, 1, zero), NULL);
  expect_refused(&x, "a division by zero");
  onnx_begin(&x, 3);
  onnx_node(&x, "Add", "nothing", NULL);
  expect_refused(&x, "input 1 is no constant of the file");
  onnx_begin(&x, 3);
  onnx_node(&x, "Add", onnx_constant(&x, 0, 3, W), NULL);
  x.tensor[0].n_float_data = 2;
  expect_refused(&x, "input 1 has not the 3 numbers that its shape says");
  x.tensor[0].data_type = 7;
  expect_refused(&x, "is of type 7, allowed are float (1) and double (11)");
  onnx_begin(&x, 3);
  onnx_node(&x, "Tanh", NULL, NULL);
  onnx_node(&x, "Tanh", NULL, NULL);
  x.input[1][0] = x.name[0];
  expect_refused(&x, "node 1 of the graph, 'without a name' (Tanh): it does not go on from the output");
  onnx_begin(&x, 3);
  onnx_node(&x, "Tanh", NULL, NULL);
  x.value[1].name = "other";
  expect_refused(&x, "its output 'other' is not that of the last node");
  onnx_begin(&x, 0);
  onnx_node(&x, "Tanh", NULL, NULL);
  expect_refused(&x, "the last size of its input 'v0' is 0, allowed are 1 to 65536");
  onnx_begin(&x, 3);
  onnx_node(&x, "Tanh", NULL, NULL);
  x.graph.n_input = 0;
  expect_refused(&x, "0 inputs and 1 outputs, allowed is one of each");
}

// A file is not trusted to be small in what is made of it: a matrix that many nodes share, and names without end.
static void large(void **state) {
  (void)state;
  enum { N = 2900, MANY = 4097 };
  static OnnxMaker x;
  float *W = calloc((size_t)N * N, sizeof *W);
  SinewOnnx__NodeProto node = SINEW_ONNX__NODE_PROTO__INIT, **nodes = malloc(sizeof *nodes * MANY);
  assert_true(W && nodes);
  onnx_begin(&x, N);
  char *weight = onnx_constant(&x, N, N, W);
  onnx_node(&x, "MatMul", weight, NULL);
  onnx_node(&x, "MatMul", weight, NULL);
  expect_refused(&x,
                 "node 1 of the graph, 'without a name' (MatMul): input 1 has 8410000 numbers, and all before it "
                 "8410000; allowed are 16777216 in all");
  node.op_type = "Constant";
  for (int i = 0; i < MANY; ++i) nodes[i] = &node;
  onnx_begin(&x, 3);
  onnx_node(&x, "Tanh", NULL, NULL);
  x.graph.node = nodes;
  x.graph.n_node = MANY;
  expect_refused(&x, "a graph of 4097 nodes, 0 constants and 1 inputs, allowed are 4096 of each");
  free(nodes);
  free(W);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dense),
      cmocka_unit_test(activations),
      cmocka_unit_test(arithmetic),
      cmocka_unit_test(kinds_of_numbers),
      cmocka_unit_test(names_of_constants),
      cmocka_unit_test(refused),
      cmocka_unit_test(large),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
