// ONNX files of small chains, made node by node.
#ifndef SINEW_TESTS_PLANNER_POLICY_ONNX_MAKER_H_
#define SINEW_TESTS_PLANNER_POLICY_ONNX_MAKER_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/policy/onnx.pb-c.h"

enum { ONNX_MOST = 16 };

// Holds a file that is being made; values of the chain are called "v0" (the input), "v1", ...
typedef struct OnnxMaker {
  SinewOnnx__ModelProto model;
  SinewOnnx__GraphProto graph;
  SinewOnnx__NodeProto node[ONNX_MOST], *nodes[ONNX_MOST];
  SinewOnnx__TensorProto tensor[ONNX_MOST], *tensors[ONNX_MOST];
  SinewOnnx__AttributeProto attribute[ONNX_MOST], *attributes[ONNX_MOST];
  SinewOnnx__ValueInfoProto value[2], *values[2];
  SinewOnnx__TypeProto type;
  SinewOnnx__TypeProto__Tensor tensor_type;
  SinewOnnx__TensorShapeProto shape;
  SinewOnnx__TensorShapeProto__Dimension dim[2], *dims[2];
  char name[ONNX_MOST + 1][16], constant[ONNX_MOST][16];
  char *input[ONNX_MOST][3], *output[ONNX_MOST];
  int64_t size[ONNX_MOST][2];
} OnnxMaker;

static inline void onnx_begin(OnnxMaker *x, int width) {
  *x = (OnnxMaker){
      .model = SINEW_ONNX__MODEL_PROTO__INIT,
      .graph = SINEW_ONNX__GRAPH_PROTO__INIT,
      .value = {SINEW_ONNX__VALUE_INFO_PROTO__INIT, SINEW_ONNX__VALUE_INFO_PROTO__INIT},
      .type = SINEW_ONNX__TYPE_PROTO__INIT,
      .tensor_type = SINEW_ONNX__TYPE_PROTO__TENSOR__INIT,
      .shape = SINEW_ONNX__TENSOR_SHAPE_PROTO__INIT,
      .dim = {SINEW_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT, SINEW_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT}};
  x->model.graph = &x->graph;
  x->graph.node = x->nodes;
  x->graph.initializer = x->tensors;
  for (int i = 0; i <= ONNX_MOST; ++i) snprintf(x->name[i], sizeof x->name[i], "v%d", i);
  for (int i = 0; i < 2; ++i) x->values[i] = &x->value[i], x->dims[i] = &x->dim[i];
  x->value[0].name = x->name[0];
  x->value[0].type = &x->type;
  x->type.tensor_type = &x->tensor_type;
  x->tensor_type.shape = &x->shape;
  x->shape.dim = x->dims;
  x->shape.n_dim = 2;  // sizes of the batch, which is open, and of the input
  x->dim[1].has_dim_value = 1;
  x->dim[1].dim_value = width;
  x->graph.n_input = x->graph.n_output = 1;
  x->graph.input = &x->values[0];
  x->graph.output = &x->values[1];
}

// Adds a constant of rows by columns (rows 0: of one dimension), whose numbers are float. Returns its name.
static inline char *onnx_constant(OnnxMaker *x, int rows, int columns, float *number) {
  const size_t i = x->graph.n_initializer++;
  SinewOnnx__TensorProto *t = x->tensors[i] = &x->tensor[i];
  *t = (SinewOnnx__TensorProto)SINEW_ONNX__TENSOR_PROTO__INIT;
  snprintf(x->constant[i], sizeof x->constant[i], "c%zu", i);
  x->size[i][0] = rows > 0 ? rows : columns;
  x->size[i][1] = columns;
  t->name = x->constant[i];
  t->dims = x->size[i];
  t->n_dims = rows > 0 ? 2 : 1;
  t->has_data_type = 1;
  t->data_type = 1;
  t->float_data = number;
  t->n_float_data = (size_t)columns * (size_t)(rows > 0 ? rows : 1);
  return t->name;
}

// Adds a node that goes on from the latest value, with up to two more inputs behind that (NULL: none).
static inline SinewOnnx__NodeProto *onnx_node(OnnxMaker *x, char *op, char *second, char *third) {
  const size_t i = x->graph.n_node++;
  SinewOnnx__NodeProto *n = x->nodes[i] = &x->node[i];
  *n = (SinewOnnx__NodeProto)SINEW_ONNX__NODE_PROTO__INIT;
  n->op_type = op;
  x->input[i][0] = x->name[i];
  x->input[i][1] = second;
  x->input[i][2] = third;
  n->input = x->input[i];
  n->n_input = second ? (third ? 3 : 2) : 1;
  x->output[i] = x->name[i + 1];
  n->output = &x->output[i];
  n->n_output = 1;
  x->value[1].name = x->name[i + 1];
  n->attribute = &x->attributes[i];
  return n;
}

// Gives the node that was added last an attribute: a number, or an integer.
static inline void onnx_attribute(OnnxMaker *x, char *name, float number, int integer) {
  const size_t i = x->graph.n_node - 1;
  SinewOnnx__AttributeProto *a = x->attributes[i] = &x->attribute[i];
  *a = (SinewOnnx__AttributeProto)SINEW_ONNX__ATTRIBUTE_PROTO__INIT;
  a->name = name;
  a->has_f = a->has_i = 1;
  a->f = number;
  a->i = integer;
  x->node[i].n_attribute = 1;
}

// Returns the bytes of the file, for the caller to free.
static inline uint8_t *onnx_pack(const OnnxMaker *x, size_t *size) {
  uint8_t *bytes = malloc(sinew_onnx__model_proto__get_packed_size(&x->model) + 1);
  *size = bytes ? sinew_onnx__model_proto__pack(&x->model, bytes) : 0;
  return bytes;
}

// Writes u = K x + b, K (noutput, ninput), into a file. Returns whether that worked.
static inline int onnx_write_linear(const char *path, int ninput, int noutput, float *K, float *b) {
  static OnnxMaker x;
  size_t size;
  onnx_begin(&x, ninput);
  char *weight = onnx_constant(&x, noutput, ninput, K);
  onnx_node(&x, "Gemm", weight, onnx_constant(&x, 0, noutput, b));
  onnx_attribute(&x, "transB", 1, 1);
  uint8_t *bytes = onnx_pack(&x, &size);
  FILE *f = fopen(path, "wb");
  const int written = f && bytes && fwrite(bytes, 1, size, f) == size;
  free(bytes);
  return f && fclose(f) == 0 && written;
}

#endif
