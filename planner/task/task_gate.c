// The gate of a term: a number that its norm is multiplied by.
#include "physics/base/number_text.h"
#include "planner/task/task_private.h"

// What a gate is in the file, beside what it looks at.
typedef struct GateFields {
  SnTerm term;  // first: its fields have their own offsets
  double above, below, width;
  bool has_above, has_below, has_width, has_norm;
} GateFields;

void sn_task_check_weights(SnReader *r, const SnNode *node, const SnTerm *t) {
  for (int k = 0; k < t->neach; ++k)
    if (!(t->each[k] >= 0 && t->each[k] <= SN_TASK_MOST_WEIGHT))
      sn_issue(r->issues, sn_yaml_member(node, "weights")->place, "weights: %s is out of bounds, allowed is 0 to %g",
               sn_number_text(t->each[k]).text, SN_TASK_MOST_WEIGHT);
}

#define GATE_NUMBER(field)                                                         \
  {                                                                                \
    .name = #field, .type = SN_YAML_NUMBER, .offset = offsetof(GateFields, field), \
    .count = offsetof(GateFields, has_##field)                                     \
  }

static const SnYamlField gate_fields[] = {
    {.name = "residual",
     .type = SN_YAML_CUSTOM,
     .required = true,
     .offset = offsetof(SnTerm, residual),
     .read = sn_task_read_residual},
    {.name = "target", .type = SN_YAML_CUSTOM, .offset = offsetof(SnTerm, target), .read = sn_task_read_target},
    {.name = "norm",
     .type = SN_YAML_CHOICE,
     .offset = offsetof(SnTerm, norm),
     .count = offsetof(GateFields, has_norm),
     .choices = "squared|euclidean"},
    {.name = "side", .type = SN_YAML_CHOICE, .offset = offsetof(SnTerm, side), .choices = SN_TERM_SIDES},
    {.name = "weights", .type = SN_YAML_NUMBERS, .offset = offsetof(SnTerm, each), .count = offsetof(SnTerm, neach)},
    GATE_NUMBER(above),
    GATE_NUMBER(below),
    GATE_NUMBER(width),
};

static void check_gate(SnReader *r, const SnNode *node, const GateFields *g) {
  const SnNode *width = sn_yaml_member(node, "width");
  const bool sigmoid = g->has_above || g->has_below;
  if (g->has_above && g->has_below) sn_issue(r->issues, node->place, "gate: either 'above' or 'below'");
  if (sigmoid && !width)
    sn_issue(r->issues, node->place, "gate: '%s' needs the 'width' in which the gate opens",
             g->has_above ? "above" : "below");
  if (g->has_width && !(g->width >= 1e-9 && g->width <= 1e9))
    sn_issue(r->issues, width->place, "width: %s is out of bounds, allowed is 1e-09 to 1e+09",
             sn_number_text(g->width).text);
  if (!sigmoid && width) sn_issue(r->issues, width->place, "gate: 'width' is that of 'above' or 'below'");
  if (!sigmoid && !sn_yaml_member(node, "norm"))
    sn_issue(r->issues, node->place, "gate: 'above', 'below' or 'norm' is missing");
  if (!g->has_norm && (g->term.neach > 0 || g->term.side != SN_TERM_BOTH))
    sn_issue(r->issues, node->place, "gate: 'side' and 'weights' need a 'norm'");
  sn_task_check_weights(r, node, &g->term);
}

void sn_task_read_gate(SnReader *r, const SnNode *node, void *target) {
  GateFields g = {.term = {.place = node->place}};
  sn_yaml_fill(r, node, "gate", gate_fields, (int)(sizeof gate_fields / sizeof *gate_fields), &g);
  if (node->kind == SN_NODE_MAP) check_gate(r, node, &g);
  if (!g.has_norm) g.term.norm = SN_NORM_SIGNED;
  g.term.gate_side = g.has_above ? SN_TERM_ABOVE : (g.has_below ? SN_TERM_BELOW : SN_TERM_BOTH);
  g.term.gate_value = g.has_above ? g.above : g.below;
  g.term.gate_width = g.width;
  SnTerm *gate = sn_arena_alloc(r->arena, sizeof *gate);
  if (gate) *gate = g.term;
  *(SnTerm **)target = gate;
}
