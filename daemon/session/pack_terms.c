// Terms of a cost: what each looks at, in words, and its targets along a trajectory.
#include <stdio.h>
#include <string.h>

#include "daemon/session/pack.h"

// ---- what a term looks at ----

// Says where the names of an element are looked up that is neither a pose nor a distance, and what kind of object they
// name.
static const struct {
  SnNameKind names;
  const char *kind;
} named[] = {[SN_QTY_JOINT_POSITION] = {SN_NAME_JNT, "joint"},
             [SN_QTY_JOINT_VELOCITY] = {SN_NAME_JNT, "joint"},
             [SN_QTY_ACTIVATION] = {SN_NAME_ACTUATOR, "actuator"},
             [SN_QTY_CONTROL] = {SN_NAME_ACTUATOR, "actuator"},
             [SN_QTY_CONTROL_RATE] = {SN_NAME_ACTUATOR, "actuator"},
             [SN_QTY_TENDON_LENGTH] = {SN_NAME_TENDON, "tendon"},
             [SN_QTY_SENSOR] = {SN_NAME_SENSOR, "sensor"}};

static const char *kind_of(const SnElement *e, int k) {
  static const char *const kinds[] = {[SN_OBJECT_SITE] = "site", [SN_OBJECT_BODY] = "body", [SN_OBJECT_GEOM] = "geom"};
  return e->quantity <= SN_QTY_DISTANCE ? kinds[e->object[e->quantity == SN_QTY_DISTANCE ? k : 0]]
                                        : named[e->quantity].kind;
}

// Of `all`: whether an object has what the element asks for, as sn_cost_create decides.
static bool takes_part(const SnModel *m, SnQuantity quantity, int i) {
  if (quantity == SN_QTY_JOINT_POSITION) return m->jnt_type[i] != SN_JNT_FREE;
  if (quantity == SN_QTY_ACTIVATION) return m->actuator_actnum[i] > 0;
  return true;
}

// Names all objects of an element, in the order of its numbers.
static Sinew__V1__ObjectName **pack_objects(SnScratch *scratch, const SnModel *m, const SnElement *e, size_t *count) {
  const int n = e->all ? sn_model_count(m, named[e->quantity].names) : e->nname;
  Sinew__V1__ObjectName **list = sn_scratch_alloc(scratch, ((size_t)n + 1) * sizeof *list);
  Sinew__V1__ObjectName *items = sn_scratch_alloc(scratch, ((size_t)n + 1) * sizeof *items);
  *count = 0;
  for (int i = 0; list && items && i < n; i++) {
    if (e->all && !takes_part(m, e->quantity, i)) continue;
    Sinew__V1__ObjectName *item = &items[*count];
    sinew__v1__object_name__init(item);
    item->kind = (char *)(uintptr_t)kind_of(e, i);
    item->name = e->all ? (char *)(uintptr_t)sn_model_name(m, named[e->quantity].names, i) : e->name[i];
    list[(*count)++] = item;
  }
  return list;
}

// ---- units ----

// Adds a unit to a list of several, unless it is there. No unit of a joint is a part of another.
static void add_unit(char *text, size_t size, const char *unit) {
  const size_t n = strlen(text);
  if (!strstr(text, unit)) snprintf(text + n, size - n, "%s%s", n ? ", " : "", unit);
}

// Of joints of several kinds.
static char *joint_unit(SnScratch *scratch, const SnModel *m, const SnElement *e) {
  static const char *const position[] = {"", "quaternion", "m", "rad"};
  static const char *const velocity[] = {"m/s", "rad/s", "m/s", "rad/s"};
  enum { SIZE = 64 };
  char *text = sn_scratch_alloc(scratch, SIZE);
  const int n = e->all ? m->njnt : e->nname;
  for (int i = 0; text && i < n; i++) {
    const int j = e->all ? i : sn_model_find(m, SN_NAME_JNT, e->name[i]), type = m->jnt_type[j];
    if (e->quantity == SN_QTY_JOINT_VELOCITY) {
      add_unit(text, SIZE, velocity[type]);
      if (type == SN_JNT_FREE) add_unit(text, SIZE, "rad/s");
    } else if (type != SN_JNT_FREE) {
      add_unit(text, SIZE, position[type]);
    }
  }
  return text;
}

static char *unit_of(SnScratch *scratch, const SnModel *m, const SnElement *e) {
  switch (e->quantity) {
    case SN_QTY_POSITION:
    case SN_QTY_DISTANCE:
    case SN_QTY_TENDON_LENGTH:
      return "m";
    case SN_QTY_ORIENTATION:
      return "quaternion";
    case SN_QTY_VELOCITY:
      return "m/s";
    case SN_QTY_ANGULAR_VELOCITY:
      return "rad/s";
    case SN_QTY_ACTIVATION:
    case SN_QTY_CONTROL:
      return "1";
    case SN_QTY_CONTROL_RATE:
      return "1/s";
    case SN_QTY_SENSOR:
      return "";
    case SN_QTY_JOINT_POSITION:
    case SN_QTY_JOINT_VELOCITY:
      break;
  }
  return joint_unit(scratch, m, e);
}

// ---- descriptions ----

// Returns the names of the axes that count, "xz" for two; "": all.
static char *axes_of(SnScratch *scratch, const SnElement *e) {
  char *text = sn_scratch_alloc(scratch, 4);
  for (int k = 0; text && k < e->naxis; k++) text[k] = "xyz"[e->axis[k]];
  return text ? text : "";
}

static char *text_of(const char *text) { return (char *)(uintptr_t)text; }

// Returns the kind of a target.
static char *target_kind(const SnTarget *target) {
  static const char *const kinds[] = {[SN_TARGET_VALUE] = "value",
                                      [SN_TARGET_ELEMENT] = "element",
                                      [SN_TARGET_SINUSOID] = "sinusoid",
                                      [SN_TARGET_KEYFRAMES] = "keyframes"};
  return text_of(kinds[target->kind]);
}

// Returns what a term is multiplied by, or NULL.
static Sinew__V1__GateDescription *describe_gate(SnScratch *scratch, const SnModel *m, const SnTerm *gate,
                                                 char **norms) {
  static const char *const sides[] = {[SN_TERM_BOTH] = "", [SN_TERM_ABOVE] = "above", [SN_TERM_BELOW] = "below"};
  Sinew__V1__GateDescription *out = gate ? sn_scratch_alloc(scratch, sizeof *out) : NULL;
  if (!out) return NULL;
  sinew__v1__gate_description__init(out);
  out->quantity = text_of(sn_quantity_name(gate->residual.quantity));
  out->objects = pack_objects(scratch, m, &gate->residual, &out->n_objects);
  out->axis = axes_of(scratch, &gate->residual);
  out->norm = gate->norm == SN_NORM_SIGNED ? "" : norms[gate->norm];
  out->side = text_of(sides[gate->gate_side]);
  out->value = gate->gate_value;
  out->width = gate->gate_width;
  if (gate->target.kind != SN_TARGET_VALUE || gate->target.nvalue > 0) out->target_kind = target_kind(&gate->target);
  if (!(out->unit = unit_of(scratch, m, &gate->residual))) out->unit = "";
  return out;
}

static void describe(SnScratch *scratch, const SnModel *m, const SnTerm *t, char **norms,
                     Sinew__V1__TermDescription *out) {
  static char *const sides[] = {[SN_TERM_BOTH] = "both", [SN_TERM_ABOVE] = "above", [SN_TERM_BELOW] = "below"};
  const SnTarget *g = &t->target;
  out->name = t->name;
  out->weight = t->weight;
  out->terminal_weight = t->terminal;
  out->quantity = text_of(sn_quantity_name(t->residual.quantity));
  out->objects = pack_objects(scratch, m, &t->residual, &out->n_objects);
  out->norm = norms[t->norm];
  out->width = t->width;
  out->target_kind = target_kind(g);
  if (g->kind == SN_TARGET_ELEMENT) {
    out->target_follows = !g->at_start;
    out->target_objects = pack_objects(scratch, m, &g->element, &out->n_target_objects);
  }
  if (g->frame) out->frame = g->frame;
  out->axis = axes_of(scratch, &t->residual);
  out->side = sides[t->side];
  out->n_weights = (size_t)t->neach;
  out->weights = t->each;
  out->gate = describe_gate(scratch, m, t->gate, norms);
  if (!(out->unit = unit_of(scratch, m, &t->residual))) out->unit = "";
}

Sinew__V1__TermDescription **sn_pack_term_descriptions(SnScratch *scratch, const SnModel *m, const SnCost *cost,
                                                       const SnTask *task, size_t *count) {
  const size_t n = (size_t)task->nterm;
  Sinew__V1__TermDescription **list = sn_scratch_alloc(scratch, n * sizeof *list),
                             *items = sn_scratch_alloc(scratch, n * sizeof *items);
  size_t known;
  char **norms = sn_pack_choices(scratch, SN_NORM_NAMES, &known);
  *count = 0;
  if (!list || !items || !norms) return NULL;
  for (size_t i = 0; i < n; i++) {
    sinew__v1__term_description__init(&items[i]);
    describe(scratch, m, &task->term[i], norms, &items[i]);
    items[i].target_size = (uint32_t)sn_cost_target_size(cost, (int)i);
    list[i] = &items[i];
  }
  *count = n;
  return list;
}

Sinew__V1__GateValue **sn_pack_gates(SnScratch *scratch, const SnPlan *plan, size_t *count) {
  const size_t n = (size_t)plan->ngate;
  Sinew__V1__GateValue **list = sn_scratch_alloc(scratch, (n + 1) * sizeof *list),
                       *items = sn_scratch_alloc(scratch, (n + 1) * sizeof *items);
  *count = 0;
  if (!list || !items) return NULL;
  for (size_t k = 0; k < n; k++) {
    sinew__v1__gate_value__init(&items[k]);
    items[k].name = text_of(sn_cost_name(plan->cost, plan->cost->nall + (int)k));
    items[k].number = plan->gate_number[k];
    items[k].factor = plan->gate_factor[k];
    list[k] = &items[k];
  }
  *count = n;
  return list;
}

// ---- targets ----

// Fills in the target of term i out of rows of targets of all terms.
static void pack_target(SnScratch *scratch, const SnCost *cost, int i, const sn_real *table, size_t rows,
                        Sinew__V1__TermTarget *out) {
  const size_t size = (size_t)sn_cost_target_size(cost, i);
  sinew__v1__term_target__init(out);
  out->name = (char *)(uintptr_t)sn_cost_name(cost, i);
  out->size = (uint32_t)size;
  if (!(out->target = sn_scratch_alloc(scratch, (rows * size + 1) * sizeof *out->target))) return;
  out->n_target = rows * size;
  for (size_t row = 0; row < rows; row++)
    for (size_t k = 0; k < size; k++)
      out->target[row * size + k] = (double)table[row * (size_t)cost->ntarget + (size_t)cost->term_target[i] + k];
}

void sn_pack_targets(SnScratch *scratch, const SnCost *cost, const sn_real *table, size_t rows,
                     Sinew__V1__Trajectory *out) {
  const size_t n = (size_t)cost->nterm;
  Sinew__V1__TermTarget **list = sn_scratch_alloc(scratch, (n + 1) * sizeof *list);
  Sinew__V1__TermTarget *items = sn_scratch_alloc(scratch, (n + 1) * sizeof *items);
  if (!list || !items) return;
  for (int i = 0; i < cost->nterm; i++) {
    if (cost->term_follows[i]) continue;
    pack_target(scratch, cost, i, table, rows, &items[out->n_targets]);
    list[out->n_targets] = &items[out->n_targets];
    out->n_targets++;
  }
  out->targets = list;
}
