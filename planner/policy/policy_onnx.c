// Reads a policy from an ONNX file: a chain of nodes, each of which becomes a layer.
//
//   Gemm, MatMul                       a dense layer; constants on the right
//   Add, Sub, Mul, Div                 with a constant of one number, or of one for each entry
//   Relu, LeakyRelu, Elu, Tanh, Sigmoid, Softplus, Clip
//   Identity, Flatten, Constant        nothing; a constant may have several names
//
// Numbers are float or double, in the file itself. Rows of a batch are one: shapes are (n), (1, n) or (batch, n).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/yaml.h"
#include "planner/policy/onnx.pb-c.h"
#include "planner/policy/policy.h"

typedef SinewOnnx__NodeProto Node;
typedef SinewOnnx__TensorProto Tensor;
typedef SinewOnnx__GraphProto Graph;

// A file that is read, and the chain so far.
typedef struct Reading {
  const char *file;
  const Graph *graph;
  SnPolicy *policy;
  const char *value;  // name of the latest value of the chain
  int width;          // entries that it has
  size_t node;        // node of the graph that is read
  size_t numbers;     // of all constants so far, as often as nodes read them
  SnArena constants;  // the latter, until the file is read
  SnError *err;
} Reading;

// A constant: a tensor, read as numbers.
typedef struct Numbers {
  int n;              // all of them
  int rows, columns;  // of a matrix; else 1 and n
  float *x;           // (n)
} Numbers;

static SnCode out_of_memory(const Reading *r) {
  return sn_fail(r->err, SN_ERR_MEMORY, "policy '%s': out of memory", r->file);
}

static SnCode bad_node(const Reading *r, const Node *node, const char *what) {
  return sn_fail(r->err, SN_ERR_FORMAT, "policy '%s': node %zu of the graph, '%.60s' (%.60s): %s", r->file, r->node,
                 node->name && node->name[0] ? node->name : "without a name",
                 node->op_type ? node->op_type : "no operation", what);
}

// ---- constants ----

static const SinewOnnx__AttributeProto *attribute(const Node *node, const char *name) {
  for (size_t i = 0; i < node->n_attribute; ++i)
    if (node->attribute[i]->name && strcmp(node->attribute[i]->name, name) == 0) return node->attribute[i];
  return NULL;
}

static float attribute_float(const Node *node, const char *name, float otherwise) {
  const SinewOnnx__AttributeProto *a = attribute(node, name);
  return a && a->has_f ? a->f : otherwise;
}

static bool attribute_set(const Node *node, const char *name) {
  const SinewOnnx__AttributeProto *a = attribute(node, name);
  return a && a->has_i && a->i != 0;
}

static bool is_operation(const Node *node, const char *name) {
  return node->op_type && strcmp(node->op_type, name) == 0;
}

// The node whose only output has a name, of the operation Constant or Identity; NULL: there is none.
static const Node *find_source(const Graph *graph, const char *name) {
  for (size_t i = 0; i < graph->n_node; ++i) {
    const Node *node = graph->node[i];
    if (node->n_output == 1 && strcmp(node->output[0], name) == 0)
      return is_operation(node, "Constant") || is_operation(node, "Identity") ? node : NULL;
  }
  return NULL;
}

// The tensor of a name: an initializer, or the value of a node Constant, perhaps under another name (Identity). NULL:
// it is none.
static const Tensor *find_tensor(const Graph *graph, const char *name) {
  enum { MOST_NAMES = 4 };
  for (int k = 0; k < MOST_NAMES; ++k) {
    for (size_t i = 0; i < graph->n_initializer; ++i)
      if (graph->initializer[i]->name && strcmp(graph->initializer[i]->name, name) == 0) return graph->initializer[i];
    const Node *node = find_source(graph, name);
    const SinewOnnx__AttributeProto *value = node ? attribute(node, "value") : NULL;
    if (!node || is_operation(node, "Constant")) return value ? value->t : NULL;
    if (node->n_input != 1) return NULL;
    name = node->input[0];
  }
  return NULL;
}

// Sizes of a tensor; false where there are more than two that are not 1, or too many numbers.
static bool tensor_shape(const Tensor *t, Numbers *numbers) {
  int64_t size[2] = {1, 1};
  for (size_t i = 0; i < t->n_dims; ++i) {
    if (t->dims[i] < 1 || t->dims[i] > SN_POLICY_MAX_WIDTH) return false;
    if (i + 2 < t->n_dims && t->dims[i] != 1) return false;
    if (i + 2 >= t->n_dims) size[i + 2 - t->n_dims] = t->dims[i];
  }
  const int64_t n = size[0] * size[1];
  if (n > SN_POLICY_MAX_BYTES / (int)sizeof(float)) return false;
  *numbers = (Numbers){.n = (int)n, .rows = (int)size[0], .columns = (int)size[1]};
  return true;
}

enum { ONNX_FLOAT = 1, ONNX_DOUBLE = 11 };

static float number_at(const Tensor *t, int i) {
  const uint8_t *raw = t->has_raw_data ? t->raw_data.data : NULL;
  if (t->data_type == ONNX_DOUBLE) {
    double x;
    if (!raw) return (float)t->double_data[i];
    memcpy(&x, raw + sizeof x * (size_t)i, sizeof x);
    return (float)x;
  }
  float x;
  if (!raw) return t->float_data[i];
  memcpy(&x, raw + sizeof x * (size_t)i, sizeof x);
  return x;
}

// Whether as many numbers are there as the shape says.
static bool has_numbers(const Tensor *t, int n) {
  const size_t each = t->data_type == ONNX_DOUBLE ? sizeof(double) : sizeof(float);
  if (t->has_raw_data) return t->raw_data.len == each * (size_t)n;
  return (t->data_type == ONNX_DOUBLE ? t->n_double_data : t->n_float_data) == (size_t)n;
}

// Reads the numbers of input `at` of a node, until the file is read. Nodes may share a constant, of which each has a
// copy: so a small file could become a large policy.
static SnCode read_constant(Reading *r, const Node *node, size_t at, Numbers *numbers) {
  const Tensor *t = at < node->n_input ? find_tensor(r->graph, node->input[at]) : NULL;
  char text[160];
  snprintf(text, sizeof text, "input %zu is no constant of the file", at);
  if (!t || t->data_location == 1) return bad_node(r, node, text);
  snprintf(text, sizeof text, "input %zu is of type %d, allowed are float (1) and double (11)", at, (int)t->data_type);
  if (t->data_type != ONNX_FLOAT && t->data_type != ONNX_DOUBLE) return bad_node(r, node, text);
  snprintf(text, sizeof text, "input %zu has no shape of one or two sizes of 1 to %d each", at, SN_POLICY_MAX_WIDTH);
  if (!tensor_shape(t, numbers)) return bad_node(r, node, text);
  snprintf(text, sizeof text, "input %zu has not the %d numbers that its shape says", at, numbers->n);
  if (!has_numbers(t, numbers->n)) return bad_node(r, node, text);
  enum { MOST = SN_POLICY_MAX_BYTES / (int)sizeof(float) };
  r->numbers += (size_t)numbers->n;
  snprintf(text, sizeof text, "input %zu has %d numbers, and all before it %zu; allowed are %d in all", at, numbers->n,
           r->numbers - (size_t)numbers->n, MOST);
  if (r->numbers > MOST) return bad_node(r, node, text);
  numbers->x = sn_arena_alloc(&r->constants, sizeof *numbers->x * (size_t)numbers->n);
  if (!numbers->x) return out_of_memory(r);
  for (int i = 0; i < numbers->n; ++i) numbers->x[i] = number_at(t, i);
  for (int i = 0; i < numbers->n; ++i) {
    if (isfinite(numbers->x[i])) continue;
    snprintf(text, sizeof text, "input %zu, number %d: %g, allowed are finite numbers", at, i, (double)numbers->x[i]);
    return bad_node(r, node, text);
  }
  return SN_OK;
}

// ---- layers ----

static SnCode add_layer(Reading *r, const Node *node, SnPolicyLayer layer) {
  SnPolicy *p = r->policy;
  char text[80];
  snprintf(text, sizeof text, "one too many, %d layers are allowed", SN_POLICY_MAX_LAYERS);
  if (p->nlayer == SN_POLICY_MAX_LAYERS) return bad_node(r, node, text);
  p->layer[p->nlayer++] = layer;
  r->width = layer.noutput;
  if (p->width < r->width) p->width = r->width;
  return SN_OK;
}

// A layer of as many outputs as inputs.
static SnPolicyLayer plain_layer(const Reading *r, SnPolicyOp op) {
  return (SnPolicyLayer){.op = op, .ninput = r->width, .noutput = r->width};
}

// The constant of an operation on entries, one number for all of them or one each, as one each.
static SnCode read_entries(Reading *r, const Node *node, size_t at, float factor, float **entries) {
  Numbers c;
  const SnCode code = read_constant(r, node, at, &c);
  if (code != SN_OK) return code;
  char text[120];
  snprintf(text, sizeof text, "a constant of %d rows of %d numbers for %d entries, allowed is one row of 1 or %d",
           c.rows, c.columns, r->width, r->width);
  if (c.rows != 1 || (c.n != 1 && c.n != r->width)) return bad_node(r, node, text);
  float *x = *entries = sn_arena_alloc(&r->policy->arena, sizeof *x * (size_t)r->width);
  if (!x) return out_of_memory(r);
  for (int i = 0; i < r->width; ++i) x[i] = factor * c.x[c.n == 1 ? 0 : i];
  return SN_OK;
}

static SnCode fill_entries(Reading *r, float value, float **entries) {
  float *x = *entries = sn_arena_alloc(&r->policy->arena, sizeof *x * (size_t)r->width);
  if (!x) return out_of_memory(r);
  for (int i = 0; i < r->width; ++i) x[i] = value;
  return SN_OK;
}

// alpha x W + beta c, W (ninput, noutput).
static SnCode add_dense(Reading *r, const Node *node) {
  const bool gemm = strcmp(node->op_type, "Gemm") == 0, transposed = gemm && attribute_set(node, "transB");
  const float alpha = gemm ? attribute_float(node, "alpha", 1) : 1, beta = gemm ? attribute_float(node, "beta", 1) : 0;
  if (gemm && attribute_set(node, "transA")) return bad_node(r, node, "transA is set, allowed is 0");
  Numbers w;
  SnCode code = read_constant(r, node, 1, &w);
  if (code != SN_OK) return code;
  SnPolicyLayer layer = {
      .op = SN_POLICY_DENSE, .ninput = transposed ? w.columns : w.rows, .noutput = transposed ? w.rows : w.columns};
  char text[80];
  snprintf(text, sizeof text, "a matrix for %d entries, there are %d", layer.ninput, r->width);
  if (layer.ninput != r->width) return bad_node(r, node, text);
  layer.weight = sn_arena_alloc(&r->policy->arena, sizeof(float) * (size_t)w.n);
  if (!layer.weight) return out_of_memory(r);
  for (int k = 0; k < layer.ninput; ++k)
    for (int i = 0; i < layer.noutput; ++i) {
      const size_t to = (size_t)k * (size_t)layer.noutput + (size_t)i,
                   from = transposed ? (size_t)i * (size_t)layer.ninput + (size_t)k : to;
      layer.weight[to] = alpha * w.x[from];
    }
  r->width = layer.noutput;
  const bool biased = gemm && node->n_input > 2 && node->input[2][0];
  code = biased ? read_entries(r, node, 2, beta, &layer.bias) : fill_entries(r, 0, &layer.bias);
  return code == SN_OK ? add_layer(r, node, layer) : code;
}

// x + c, x - c, c - x, x c, x / c, c / x.
static SnCode add_arithmetic(Reading *r, const Node *node) {
  const char kind = node->op_type[0] == 'S' ? '-' : node->op_type[0];  // Add, Sub, Mul, Div
  const bool first = node->n_input == 2 && strcmp(node->input[0], r->value) == 0;
  const size_t constant = first ? 1 : 0;
  const bool sum = kind == 'A' || kind == '-';
  SnPolicyLayer layer = plain_layer(r, kind == 'D' && !first ? SN_POLICY_INVERSE : SN_POLICY_SCALE);
  float **read = sum ? &layer.bias : &layer.weight;
  SnCode code = read_entries(r, node, constant, kind == '-' && first ? -1 : 1, read);
  if (code == SN_OK && sum) code = fill_entries(r, kind == '-' && !first ? -1 : 1, &layer.weight);
  if (code == SN_OK && !sum) code = fill_entries(r, 0, &layer.bias);
  if (code != SN_OK) return code;
  for (int i = 0; kind == 'D' && first && i < r->width; ++i) {
    layer.weight[i] = 1 / layer.weight[i];
    if (!isfinite(layer.weight[i])) return bad_node(r, node, "a division by zero");
  }
  return add_layer(r, node, layer);
}

// A bound of Clip: an input of one number, or, before version 11, an attribute.
static SnCode read_bound(Reading *r, const Node *node, size_t at, const char *name, float *bound) {
  *bound = attribute_float(node, name, *bound);
  if (at >= node->n_input || !node->input[at][0]) return SN_OK;
  Numbers c;
  const SnCode code = read_constant(r, node, at, &c);
  if (code != SN_OK) return code;
  if (c.n != 1) return bad_node(r, node, "a bound of several numbers, allowed is one");
  *bound = c.x[0];
  return SN_OK;
}

static SnCode add_clip(Reading *r, const Node *node) {
  SnPolicyLayer layer = plain_layer(r, SN_POLICY_CLIP);
  layer.alpha = -INFINITY;
  layer.beta = INFINITY;
  SnCode code = read_bound(r, node, 1, "min", &layer.alpha);
  if (code == SN_OK) code = read_bound(r, node, 2, "max", &layer.beta);
  return code == SN_OK ? add_layer(r, node, layer) : code;
}

static SnCode add_activation(Reading *r, const Node *node, SnPolicyOp op) {
  SnPolicyLayer layer = plain_layer(r, op);
  layer.alpha = attribute_float(node, "alpha", op == SN_POLICY_LEAKY ? 0.01F : 1);
  if (!isfinite(layer.alpha)) return bad_node(r, node, "alpha is not finite");
  return add_layer(r, node, layer);
}

static SnCode add_nothing(Reading *r, const Node *node) {
  (void)r, (void)node;
  return SN_OK;
}

// ---- the graph ----

// Operations that are read. An activation has no function of its own.
static const struct {
  const char *name;
  SnCode (*add)(Reading *r, const Node *node);
  SnPolicyOp op;
} operations[] = {
    {"Gemm", add_dense, SN_POLICY_DENSE},
    {"MatMul", add_dense, SN_POLICY_DENSE},
    {"Add", add_arithmetic, SN_POLICY_SCALE},
    {"Sub", add_arithmetic, SN_POLICY_SCALE},
    {"Mul", add_arithmetic, SN_POLICY_SCALE},
    {"Div", add_arithmetic, SN_POLICY_SCALE},
    {"Clip", add_clip, SN_POLICY_CLIP},
    {"Identity", add_nothing, SN_POLICY_SCALE},
    {"Flatten", add_nothing, SN_POLICY_SCALE},
    {"Relu", NULL, SN_POLICY_RELU},
    {"LeakyRelu", NULL, SN_POLICY_LEAKY},
    {"Elu", NULL, SN_POLICY_ELU},
    {"Tanh", NULL, SN_POLICY_TANH},
    {"Sigmoid", NULL, SN_POLICY_SIGMOID},
    {"Softplus", NULL, SN_POLICY_SOFTPLUS},
};

// Whether a node reads the latest value: where it stands as its first input, or, of arithmetic, as its second.
static bool continues(const Reading *r, const Node *node, bool second) {
  if (node->n_input < 1 || node->n_output != 1) return false;
  if (strcmp(node->input[0], r->value) == 0) return true;
  return second && node->n_input == 2 && strcmp(node->input[1], r->value) == 0;
}

static SnCode add_node(Reading *r, const Node *node) {
  enum { COUNT = sizeof operations / sizeof operations[0] };
  const bool renames = is_operation(node, "Identity") && node->n_input == 1 && find_tensor(r->graph, node->input[0]);
  if (renames || is_operation(node, "Constant")) return SN_OK;
  int i = 0;
  while (i < COUNT && node->op_type && strcmp(node->op_type, operations[i].name) != 0) ++i;
  if (!node->op_type || i == COUNT || (node->domain && node->domain[0] && strcmp(node->domain, "ai.onnx") != 0))
    return bad_node(r, node,
                    "this operation is not known; known are Gemm, MatMul, Add, Sub, Mul, Div, Clip, Relu, LeakyRelu, "
                    "Elu, Tanh, Sigmoid, Softplus, Identity, Flatten, Constant");
  if (!continues(r, node, operations[i].add == add_arithmetic))
    return bad_node(r, node, "it does not go on from the output of the node before; a chain of nodes is wanted");
  const SnCode code = operations[i].add ? operations[i].add(r, node) : add_activation(r, node, operations[i].op);
  r->value = node->output[0];
  return code;
}

// The one input that is no constant.
static SnCode begin_chain(Reading *r) {
  const SinewOnnx__ValueInfoProto *input = NULL;
  int n = 0;
  for (size_t i = 0; i < r->graph->n_input; ++i) {
    const SinewOnnx__ValueInfoProto *x = r->graph->input[i];
    if (!x->name || find_tensor(r->graph, x->name)) continue;
    input = x;
    ++n;
  }
  if (n != 1 || r->graph->n_output != 1 || !r->graph->output[0]->name)
    return sn_fail(r->err, SN_ERR_FORMAT, "policy '%s': %d inputs and %zu outputs, allowed is one of each", r->file, n,
                   r->graph->n_output);
  const SinewOnnx__TypeProto__Tensor *type = input->type ? input->type->tensor_type : NULL;
  const SinewOnnx__TensorShapeProto *shape = type ? type->shape : NULL;
  const int64_t width = shape && shape->n_dim > 0 && shape->dim[shape->n_dim - 1]->has_dim_value
                            ? shape->dim[shape->n_dim - 1]->dim_value
                            : 0;
  if (width < 1 || width > SN_POLICY_MAX_WIDTH)
    return sn_fail(r->err, SN_ERR_FORMAT,
                   "policy '%s': the last size of its input '%.60s' is %lld, allowed are 1 to %d", r->file, input->name,
                   (long long)width, SN_POLICY_MAX_WIDTH);
  r->value = input->name;
  r->policy->ninput = r->policy->width = r->width = (int)width;
  return SN_OK;
}

// Each name is looked for among all.
static SnCode check_sizes(const Reading *r) {
  const Graph *g = r->graph;
  if (g->n_node <= SN_POLICY_MAX_NODES && g->n_initializer <= SN_POLICY_MAX_NODES && g->n_input <= SN_POLICY_MAX_NODES)
    return SN_OK;
  return sn_fail(r->err, SN_ERR_FORMAT,
                 "policy '%s': a graph of %zu nodes, %zu constants and %zu inputs, allowed are %d of each", r->file,
                 g->n_node, g->n_initializer, g->n_input, SN_POLICY_MAX_NODES);
}

static SnCode read_graph(Reading *r) {
  r->policy->layer = sn_arena_alloc(&r->policy->arena, sizeof *r->policy->layer * SN_POLICY_MAX_LAYERS);
  if (!r->policy->layer) return out_of_memory(r);
  SnCode code = check_sizes(r);
  if (code == SN_OK) code = begin_chain(r);
  for (r->node = 0; code == SN_OK && r->node < r->graph->n_node; ++r->node) code = add_node(r, r->graph->node[r->node]);
  if (code != SN_OK) return code;
  r->policy->noutput = r->width;
  if (strcmp(r->value, r->graph->output[0]->name) == 0) return SN_OK;
  return sn_fail(r->err, SN_ERR_FORMAT, "policy '%s': its output '%.60s' is not that of the last node", r->file,
                 r->graph->output[0]->name);
}

SnPolicy *sn_policy_parse(const void *bytes, size_t size, const char *file, SnError *err) {
  SnError local;
  Reading r = {.file = file, .err = err ? err : &local};
  SinewOnnx__ModelProto *model = sinew_onnx__model_proto__unpack(NULL, size, bytes);
  r.graph = model ? model->graph : NULL;
  r.policy = calloc(1, sizeof *r.policy);
  SnCode code = SN_OK;
  if (!r.policy)
    code = out_of_memory(&r);
  else if (!r.graph)
    code = sn_fail(r.err, SN_ERR_FORMAT, "policy '%s': no ONNX file, or one without a graph", file);
  else
    code = read_graph(&r);
  if (model) sinew_onnx__model_proto__free_unpacked(model, NULL);
  sn_arena_free(&r.constants);
  if (code == SN_OK) return r.policy;
  sn_policy_free(r.policy);
  return NULL;
}

SnPolicy *sn_policy_load(const char *file, SnError *err) {
  SnError why = {0};
  SnArena arena = {0};
  size_t size = 0;
  const char *bytes = sn_arena_file(&arena, file, SN_POLICY_MAX_BYTES, &size, &why);
  SnPolicy *policy = bytes ? sn_policy_parse(bytes, size, file, err) : NULL;
  if (!bytes) sn_fail(err, why.code, "policy %.1000s", why.text);
  sn_arena_free(&arena);
  return policy;
}
