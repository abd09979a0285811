// A task and a model make a cost: names are looked up, sizes checked, arrays laid out. All mistakes are
// reported, each with its place in the task's file.
#include "planner/cost/cost.h"
#include "physics/sensor/sensor.h"
#include "planner/cost/cost_private.h"

#include <stdlib.h>
#include <string.h>

typedef struct Binder {
  bool store;  // write into the cost; else only count and check
  const SnTask *task;
  const SnModel *m;
  SnCost *cost;
  SnIssues *issues;
  int missing;  // issues that are names which the model has not
} Binder;

// One item of an element.
typedef struct BoundItem {
  int type, id;
  int dof;     // QPOS, QPOS_QUAT: address in qvel
  int end[4];  // DISTANCE, COMPONENT
} BoundItem;

int sn_item_value_size(int type) { return type <= SN_ITEM_SENSOR_POINT ? 3 : (type <= SN_ITEM_SENSOR_QUAT ? 4 : 1); }

int sn_item_residual_size(int type) { return type <= SN_ITEM_SENSOR_QUAT ? 3 : 1; }

static int find_name(Binder *b, SnPlace place, SnNameKind kind, const char *name) {
  char why[SN_KNOWN_LIST];
  const int id = sn_model_find(b->m, kind, name);
  if (id < 0) {
    b->missing++;
    const bool lists = kind == SN_NAME_JNT || kind == SN_NAME_TENDON || kind == SN_NAME_ACTUATOR;
    const char *all = lists && strcmp(name, "all") == 0 ? "; without quotes, all stands for every one" : "";
    sn_issue(b->issues, place, "%s%s", sn_model_no_name(b->m, kind, name, why, sizeof why), all);
  }
  return id;
}

static int find_object(Binder *b, SnPlace place, SnObject object, const char *name) {
  static const SnNameKind kinds[] = {SN_NAME_SITE, SN_NAME_BODY, SN_NAME_GEOM};
  return find_name(b, place, kinds[object], name);
}

// ---- elements: each visit function hands its items to an array, which may be full ----

typedef struct ItemList {
  BoundItem *item;  // (capacity)
  int n, capacity;
} ItemList;

static void add_bound(ItemList *list, BoundItem item) {
  if (list->n < list->capacity) list->item[list->n] = item;
  ++list->n;
}

static void add_item(ItemList *list, int type, int id) { add_bound(list, (BoundItem){.type = type, .id = id}); }

static void add_joint_position(Binder *b, const SnElement *e, int j, ItemList *list) {
  const int type = b->m->jnt_type[j], adr = b->m->jnt_qposadr[j], dof = b->m->jnt_dofadr[j];
  if (type == SN_JNT_HINGE || type == SN_JNT_SLIDE)
    add_bound(list, (BoundItem){.type = SN_ITEM_QPOS, .id = adr, .dof = dof});
  else if (type == SN_JNT_BALL)
    add_bound(list, (BoundItem){.type = SN_ITEM_QPOS_QUAT, .id = adr, .dof = dof});
  else if (!e->all)
    sn_issue(b->issues, e->place, "joint_position: '%s' is a free joint; use position and orientation of its body",
             sn_model_name(b->m, SN_NAME_JNT, j));
}

static void add_joint_velocity(Binder *b, int j, ItemList *list) {
  static const int dofs[] = {6, 3, 1, 1};
  for (int k = 0; k < dofs[b->m->jnt_type[j]]; ++k) add_item(list, SN_ITEM_QVEL, b->m->jnt_dofadr[j] + k);
}

static void add_actuator(Binder *b, const SnElement *e, int i, ItemList *list) {
  const SnModel *m = b->m;
  if (e->quantity == SN_QTY_CONTROL || e->quantity == SN_QTY_CONTROL_RATE) {
    const int type = e->quantity == SN_QTY_CONTROL ? SN_ITEM_CTRL : SN_ITEM_CTRL_RATE;
    for (int k = 0; k < m->actuator_ctrlnum[i]; ++k) add_item(list, type, m->actuator_ctrladr[i] + k);
  } else if (m->actuator_actnum[i] > 0) {
    for (int k = 0; k < m->actuator_actnum[i]; ++k) add_item(list, SN_ITEM_ACT, m->actuator_actadr[i] + k);
  } else if (!e->all) {
    sn_issue(b->issues, e->place, "activation: actuator '%s' has none", sn_model_name(m, SN_NAME_ACTUATOR, i));
  }
}

static void add_sensor(Binder *b, const SnElement *e, int i, ItemList *list) {
  const SnModel *m = b->m;
  const bool own = m->sensor_type[i] == SN_SENS_USER;  // 0 whatever happens: no cost is meant to look at that
  const int dim = sn_sensor_supported(m, i) && !own ? m->sensor_dim[i] : 0;
  if (dim > 0 && sn_sensor_is_quat(m, i))
    add_item(list, SN_ITEM_SENSOR_QUAT, i);
  else if (dim == 1 || dim == 3)
    add_item(list, dim == 1 ? SN_ITEM_SENSOR : SN_ITEM_SENSOR_POINT, i);
  else if (!e->all)
    sn_cost_refuse_sensor(b->m, i, dim, e->place, b->issues);
}

static void add_object(Binder *b, const SnElement *e, int i, ItemList *list) {
  switch (e->quantity) {
    case SN_QTY_JOINT_POSITION:
      add_joint_position(b, e, i, list);
      break;
    case SN_QTY_JOINT_VELOCITY:
      add_joint_velocity(b, i, list);
      break;
    case SN_QTY_TENDON_LENGTH:
      add_item(list, SN_ITEM_TENDON, i);
      break;
    case SN_QTY_SENSOR:
      add_sensor(b, e, i, list);
      break;
    default:
      add_actuator(b, e, i, list);
      break;
  }
}

// Puts components of the point that an element looks at in the place of the point.
static void take_axes(Binder *b, const SnElement *e, const int *axis, int naxis, ItemList *list) {
  if (naxis == 0 || list->n == 0) return;
  const BoundItem point = list->item[0];
  if (list->n != 1 || sn_item_value_size(point.type) != 3) {
    sn_issue(b->issues, e->place, "axis: '%s' is no point of three numbers", e->nname ? e->name[0] : "all");
    return;
  }
  list->n = 0;
  for (int k = 0; k < naxis; ++k)
    add_bound(list, (BoundItem){.type = SN_ITEM_COMPONENT, .end = {point.type, point.id, axis[k]}});
}

// Adds the mean of the points of an element. Its list goes to the end of those of the cost.
static void add_mean(Binder *b, const SnElement *e, int type, ItemList *list) {
  SnCost *c = b->cost;
  int *member = b->store ? c->member + c->nmember : NULL;
  for (int k = 0; k < e->nname; ++k) {
    const int id = find_object(b, e->place, e->object[0], e->name[k]);
    if (member) member[2 + k] = id;
  }
  if (member) {
    member[0] = e->nname;
    member[1] = type;
  }
  add_item(list, SN_ITEM_MEAN, c->nmember);
  c->nmember += 2 + e->nname;
}

static void add_distance(Binder *b, const SnElement *e, ItemList *list) {
  BoundItem item = {.type = SN_ITEM_DISTANCE};
  for (int k = 0; k < 2; ++k) {
    item.end[2 * k] = SN_ITEM_SITE_POS + (int)e->object[k];
    item.end[2 * k + 1] = find_object(b, e->place, e->object[k], e->name[k]);
  }
  add_bound(list, item);
}

// All items of an element, in the order of its names (of the model, for `all`).
static void list_items(Binder *b, const SnElement *e, ItemList *list) {
  static const SnNameKind kinds[] = {[SN_QTY_JOINT_POSITION] = SN_NAME_JNT,    [SN_QTY_JOINT_VELOCITY] = SN_NAME_JNT,
                                     [SN_QTY_ACTIVATION] = SN_NAME_ACTUATOR,   [SN_QTY_CONTROL] = SN_NAME_ACTUATOR,
                                     [SN_QTY_CONTROL_RATE] = SN_NAME_ACTUATOR, [SN_QTY_TENDON_LENGTH] = SN_NAME_TENDON,
                                     [SN_QTY_SENSOR] = SN_NAME_SENSOR};
  static const char *const whats[] = {
      [SN_QTY_JOINT_POSITION] = "joint", [SN_QTY_JOINT_VELOCITY] = "joint",  [SN_QTY_ACTIVATION] = "actuator",
      [SN_QTY_CONTROL] = "actuator",     [SN_QTY_CONTROL_RATE] = "actuator", [SN_QTY_TENDON_LENGTH] = "tendon",
      [SN_QTY_SENSOR] = "sensor"};
  static const int first[] = {[SN_QTY_POSITION] = SN_ITEM_SITE_POS,
                              [SN_QTY_ORIENTATION] = SN_ITEM_SITE_QUAT,
                              [SN_QTY_VELOCITY] = SN_ITEM_SITE_VEL,
                              [SN_QTY_ANGULAR_VELOCITY] = SN_ITEM_SITE_ANGVEL};
  if (e->quantity < SN_QTY_DISTANCE && e->nname > 1) {
    add_mean(b, e, first[e->quantity] + (int)e->object[0], list);
  } else if (e->quantity < SN_QTY_DISTANCE) {
    add_item(list, first[e->quantity] + (int)e->object[0], find_object(b, e->place, e->object[0], e->name[0]));
  } else if (e->quantity == SN_QTY_DISTANCE) {
    add_distance(b, e, list);
  } else if (e->all) {
    for (int i = 0; i < sn_model_count(b->m, kinds[e->quantity]); ++i) add_object(b, e, i, list);
    if (list->n == 0) {
      b->missing++;
      sn_issue(b->issues, e->place, "the model has no %s for 'all'", whats[e->quantity]);
    }
  } else {
    for (int k = 0; k < e->nname; ++k) {
      const int i = find_name(b, e->place, kinds[e->quantity], e->name[k]);
      if (i >= 0) add_object(b, e, i, list);
    }
  }
}

// ---- targets ----

// Scratch for the items of one term and of its target.
typedef struct TermItems {
  ItemList value, target;
  int frame;
} TermItems;

// Returns the sensor that an item looks at, or -1.
static int sensor_of(const BoundItem *item) {
  const bool part = item->type == SN_ITEM_COMPONENT;
  const int type = part ? item->end[0] : item->type;
  const bool sensor = type == SN_ITEM_SENSOR || type == SN_ITEM_SENSOR_POINT || type == SN_ITEM_SENSOR_QUAT;
  return !sensor ? -1 : (part ? item->end[1] : item->id);
}

// Controls and sensors of forces are no function of the last state, in which no control acts.
static bool depends_on_control(const SnModel *m, const BoundItem *item) {
  return item->type == SN_ITEM_CTRL || item->type == SN_ITEM_CTRL_RATE ||
         (sensor_of(item) >= 0 && sn_sensor_stage(m, sensor_of(item)) > SN_STAGE_VELOCITY);
}

static bool any_depends_on_control(const SnModel *m, const TermItems *items) {
  bool depends = false;
  for (int k = 0; k < items->value.n; ++k) depends |= depends_on_control(m, &items->value.item[k]);
  for (int k = 0; k < items->target.n; ++k) depends |= depends_on_control(m, &items->target.item[k]);
  return depends;
}

// All items of the element that is the target. A point has the axes of the residual unless it names its own.
static void list_target(Binder *b, const SnTerm *t, ItemList *list) {
  const SnElement *e = &t->target.element;
  list_items(b, e, list);
  const bool point = list->n == 1 && sn_item_value_size(list->item[0].type) == 3;
  const SnElement *axes = e->naxis == 0 && point ? &t->residual : e;
  take_axes(b, e, axes->axis, axes->naxis, list);
}

// ---- layout ----

static void store_item(SnCost *c, const SnTerm *t, const TermItems *items, int k, int i, int term, int *res,
                       int *target) {
  const BoundItem *value = &items->value.item[k];
  const bool follows = t->target.kind == SN_TARGET_ELEMENT;
  c->item_term[i] = term;
  c->item_type[i] = value->type;
  c->item_id[i] = value->id;
  c->item_dof[2 * i] = value->dof;
  memcpy(c->item_end + 8 * i, value->end, sizeof value->end);
  if (follows && k < items->target.n) {
    const BoundItem *other = &items->target.item[k];
    c->item_other_type[i] = other->type;
    c->item_other_id[i] = other->id;
    c->item_dof[2 * i + 1] = other->dof;
    memcpy(c->item_end + 8 * i + 4, other->end, sizeof other->end);
  }
  c->item_frame[i] = items->frame;
  c->item_res[i] = *res;
  c->item_target[i] = *target;
  *res += sn_item_residual_size(value->type);
  *target += sn_item_value_size(value->type);
}

// Whether two items of a list may look at the same number: several sensors, or a name that stands twice.
static bool may_coincide(const ItemList *list) {
  for (int i = 0; i < list->n; ++i)
    for (int j = 0; j < i; ++j) {
      const BoundItem *x = &list->item[i], *y = &list->item[j];
      if ((sensor_of(x) >= 0 && sensor_of(y) >= 0) || (x->type == y->type && x->id == y->id)) return true;
    }
  return false;
}

static bool uses_rate(const ItemList *list) {
  for (int k = 0; k < list->n; ++k)
    if (list->item[k].type == SN_ITEM_CTRL_RATE) return true;
  return false;
}

// Notes what the items of a term ask the evaluation for.
static void note_uses(const SnModel *m, const ItemList *list, SnCost *c) {
  if (uses_rate(list)) c->uses_rate = 1;
  for (int k = 0; k < list->n; ++k) {
    const int sensor = sensor_of(&list->item[k]);
    if (sensor >= 0 && sn_sensor_uses_actuators(m, sensor)) c->uses_force = 1;
    if (sensor >= 0 && sn_sensor_stage(m, sensor) == SN_STAGE_SOLVER) c->uses_acceleration = 1;
  }
}

// What a term is compared with must be of its size and unit, and so must lists of numbers. `size`: of the value.
static void check_sizes(Binder *b, const SnTerm *t, const TermItems *items, int size) {
  bool same = items->value.n == items->target.n, rotation = false;
  for (int k = 0; same && k < items->value.n; ++k)
    same = sn_item_value_size(items->value.item[k].type) == sn_item_value_size(items->target.item[k].type);
  for (int k = 0; k < items->value.n; ++k) rotation |= sn_item_value_size(items->value.item[k].type) == 4;
  sn_cost_check_goal(t, size, rotation, b->issues);
  if (t->target.kind == SN_TARGET_ELEMENT) sn_cost_check_pair(t, b->m, same, b->issues);
}

static const int sides[] = {[SN_TERM_BOTH] = 0, [SN_TERM_ABOVE] = 1, [SN_TERM_BELOW] = -1};

// Stores what a term makes of its residual, which has the entries from the next one to `end`.
static void store_penalty(SnCost *c, const SnTerm *t, int i, int end) {
  c->term_norm[i] = (int)t->norm;
  c->term_width[i] = (sn_real)t->width;
  c->term_side[i] = sides[t->side];
  for (int k = c->nres; k < end; ++k) c->res_weight[k] = t->neach > 0 ? (sn_real)t->each[k - c->nres] : 1;
}

// Looks for mistakes of term i, whose names are all there. Its value has `size` entries, its residual nres.
static void check_term(Binder *b, int i, const TermItems *items, int size, int nres) {
  const SnCost *c = b->cost;
  const SnTerm *t = c->owner->term[i], *gated = i >= c->nall ? c->owner->term[c->owner->gated[i - c->nall]] : t;
  const bool measure = i >= c->nterm && i < c->nall;
  check_sizes(b, t, items, size);
  if (t->norm == SN_NORM_SIGNED && nres != 1)
    sn_issue(b->issues, t->place, "gate of '%s': its residual has %d numbers, 'norm' or 'axis' makes one of them",
             t->name, nres);
  if (t->neach > 0 && t->neach != nres)
    sn_issue(b->issues, t->place, "weights of '%s': %d numbers, the residual has %d", t->name, t->neach, nres);
  if (measure && (uses_rate(&items->value) || uses_rate(&items->target)))
    sn_issue(b->issues, t->place, "success: '%s' looks at control_rate, which a state alone does not have", t->name);
  if (gated->terminal > 0 && any_depends_on_control(b->m, items))
    sn_issue(b->issues, t->place, "terminal: %s '%s' depends on the control, and none acts at the end of the horizon",
             gated == t ? "term" : "gate of", t->name);
}

// Ties gate i to its term.
static void store_gate(SnCost *c, int i, bool running_only) {
  const SnTerm *gate = c->owner->term[i];
  const int term = c->owner->gated[i - c->nall];
  c->term_gate[term] = i;
  c->gate_side[term] = sides[gate->gate_side];
  c->gate_value[term] = (sn_real)gate->gate_value;
  c->gate_width[term] = (sn_real)gate->gate_width;
  c->owner->running_only[term] |= running_only;
}

// Writes term i, whose items are found, into the arrays.
static void store_term(Binder *b, int i, const TermItems *items) {
  SnCost *c = b->cost;
  const SnTerm *t = c->owner->term[i];
  const bool counts = i < c->nterm || i >= c->nall;
  int res = c->nres, target = c->ntarget;
  c->term_item[i] = c->nitem;
  c->term_res[i] = c->nres;
  c->term_target[i] = c->ntarget;
  c->term_serial[i] = may_coincide(&items->value) || may_coincide(&items->target);
  if (counts) {
    note_uses(b->m, &items->value, c);
    note_uses(b->m, &items->target, c);
  }
  if (i < c->nall) {
    c->term_gate[i] = -1;
    c->owner->running_only[i] = any_depends_on_control(b->m, items);
  } else {
    store_gate(c, i, any_depends_on_control(b->m, items));
  }
  c->term_follows[i] = t->target.kind == SN_TARGET_ELEMENT && !t->target.at_start;
  for (int k = 0; k < items->value.n; ++k) store_item(c, t, items, k, c->nitem + k, i, &res, &target);
  store_penalty(c, t, i, res);
}

// Adds term i to the arrays, or only counts and checks.
static void bind_term(Binder *b, int i, TermItems *items) {
  SnCost *c = b->cost;
  const SnTerm *t = c->owner->term[i];
  const int mistakes = b->issues->count;
  int res = 0, size = 0;
  items->value.n = items->target.n = 0;
  items->frame = -1;
  list_items(b, &t->residual, &items->value);
  take_axes(b, &t->residual, t->residual.axis, t->residual.naxis, &items->value);
  if (t->target.kind == SN_TARGET_ELEMENT) list_target(b, t, &items->target);
  if (t->target.frame) items->frame = find_name(b, t->target.place, SN_NAME_BODY, t->target.frame);
  for (int k = 0; k < items->value.n && k < items->value.capacity; ++k) {
    res += sn_item_residual_size(items->value.item[k].type);
    size += sn_item_value_size(items->value.item[k].type);
  }
  if (b->store)
    store_term(b, i, items);
  else if (b->issues->count == mistakes)
    check_term(b, i, items, size, res);
  c->nitem += items->value.n;
  c->nres += res;
  c->ntarget += size;
}

static void bind_all(Binder *b, TermItems *items, bool store) {
  SnCost *c = b->cost;
  b->store = store;
  c->nitem = c->nres = c->ntarget = c->nmember = 0;
  for (int i = 0; i < c->nall + c->ngate; ++i) bind_term(b, i, items);
}

// Joints that have a single number, by name.
static void check_joints(Binder *b, const SnNamedValue *value, int n) {
  const SnModel *m = b->m;
  for (int i = 0; i < n; ++i) {
    const int j = find_name(b, value[i].place, SN_NAME_JNT, value[i].name);
    if (j >= 0 && m->jnt_type[j] != SN_JNT_HINGE && m->jnt_type[j] != SN_JNT_SLIDE)
      sn_issue(b->issues, value[i].place, "joint '%s' is no hinge or slide joint", value[i].name);
  }
}

// Things of the task outside its terms that name parts of the model.
static void check_names(Binder *b) {
  const SnTask *t = b->task;
  const SnModel *m = b->m;
  if (t->keyframe) {
    char *end = NULL;
    const long k = strtol(t->keyframe, &end, 10);
    const bool index = *end == 0 && k >= 0 && k < m->nkey;
    if (!index) find_name(b, t->keyframe_place, SN_NAME_KEY, t->keyframe);
  }
  const SnNamedValue *const lists[] = {t->joint, t->perturb, t->velocity};
  const int counts[] = {t->njoint, t->nperturb, t->nvelocity};
  for (int i = 0; i < 3; ++i) check_joints(b, lists[i], counts[i]);
  for (int i = 0; i < t->nbody; ++i) {
    const int body = find_name(b, t->body[i].place, SN_NAME_BODY, t->body[i].name);
    if (body >= 0 && (m->body_jntnum[body] != 1 || m->jnt_type[m->body_jntadr[body]] != SN_JNT_FREE))
      sn_issue(b->issues, t->body[i].place, "body '%s' has no free joint", t->body[i].name);
  }
  for (int i = 0; i < t->nplan; ++i) find_name(b, t->plan[i].place, SN_NAME_ACTUATOR, t->plan[i].name);
}

static void *take(SnArena *arena, size_t size, int n) { return sn_arena_alloc(arena, size * (size_t)(n + 1)); }

static bool allocate(SnCost *c, SnArena *a) {
  SnCostOwner *o = c->owner;
  bool ok = true;
#define SN_COST_FIELD(type, name, rows, cols) ok &= (c->name = take(a, sizeof(type), (int)((rows) * (cols)))) != NULL;
#include "planner/cost/cost_fields.inc"
  ok &= (o->captured = take(a, sizeof(double), c->ntarget)) != NULL;
  ok &= (o->given = take(a, sizeof(double), c->ntarget)) != NULL;
  ok &= (o->overridden = take(a, sizeof(bool), c->nall + c->ngate)) != NULL;
  ok &= (o->running_only = take(a, sizeof(bool), c->nall)) != NULL;
  ok &= (o->row = take(a, sizeof(double), c->ntarget)) != NULL;
  return ok;
}

static void set_weights(SnCost *c, const SnTask *task) {
  for (int i = 0; i < c->nterm; ++i) {
    c->weight[i] = (sn_real)task->term[i].weight;
    c->terminal[i] = (sn_real)task->term[i].terminal;
  }
}

// Lists terms, measures and gates, in this order.
static bool list_terms(SnCost *c, const SnTask *task) {
  SnCostOwner *o = c->owner;
  c->nterm = task->nterm;
  c->nall = task->nterm + task->nmeasure;
  o->term = take(&o->arena, sizeof *o->term, c->nall + c->nterm);
  o->gated = take(&o->arena, sizeof *o->gated, c->nterm);
  if (!o->term || !o->gated) return false;
  for (int i = 0; i < c->nall; ++i) o->term[i] = i < c->nterm ? &task->term[i] : &task->measure[i - c->nterm];
  for (int i = 0; i < c->nterm; ++i) {
    if (!task->term[i].gate) continue;
    o->gated[c->ngate] = i;
    o->term[c->nall + c->ngate++] = task->term[i].gate;
  }
  return true;
}

// Counts, allocates, stores. items: scratch that is large enough for any term.
static SnCode bind(Binder *b, TermItems *items, SnError *err) {
  SnCost *c = b->cost;
  if (!list_terms(c, b->task)) return sn_fail(err, SN_ERR_MEMORY, "task %s: out of memory", b->task->name);
  check_names(b);
  bind_all(b, items, false);
  const bool only_names = b->issues->count == b->missing;  // else sizes, units or kinds, too, do not fit the model
  const SnCode code = sn_issues_end(b->issues, only_names ? SN_ERR_NOT_FOUND : SN_ERR_FORMAT);
  if (code != SN_OK) return code;
  if (!allocate(c, &c->owner->arena)) return sn_fail(err, SN_ERR_MEMORY, "task %s: out of memory", b->task->name);
  bind_all(b, items, true);
  c->term_item[c->nall + c->ngate] = c->nitem;
  c->term_res[c->nall + c->ngate] = c->nres;
  c->term_target[c->nall + c->ngate] = c->ntarget;
  set_weights(c, b->task);
  return SN_OK;
}

SnCost *sn_cost_create(const SnTask *task, const SnModel *m, SnError *err) {
  SnCost *c = calloc(1, sizeof *c);
  SnCostOwner *owner = calloc(1, sizeof *owner);
  const int capacity = m->nq + m->nv + m->na + m->nu + m->ntendon + m->nsensordata + SN_TASK_MAX_ITEMS;
  TermItems items = {{calloc((size_t)capacity, sizeof(BoundItem)), 0, capacity},
                     {calloc((size_t)capacity, sizeof(BoundItem)), 0, capacity},
                     -1};
  SnCode code = SN_ERR_MEMORY;
  if (c && owner && items.value.item && items.target.item) {
    SnIssues issues;
    sn_issues_begin(&issues, task->file, err);
    c->owner = owner;
    owner->task = task;
    Binder b = {.task = task, .m = m, .cost = c, .issues = &issues};
    code = bind(&b, &items, err);
  } else {
    sn_fail(err, SN_ERR_MEMORY, "task %s: out of memory", task->name);
  }
  free(items.value.item);
  free(items.target.item);
  if (code == SN_OK) return c;
  if (owner) sn_arena_free(&owner->arena);
  free(owner);
  free(c);
  return NULL;
}

const SnCost *sn_cost_none(void) {
  static int first[1];
  static sn_real number[1];
  static const SnCost none = {.weight = number,
                              .terminal = number,
                              .term_norm = first,
                              .term_width = number,
                              .term_side = first,
                              .res_weight = number,
                              .term_item = first,
                              .term_res = first,
                              .term_target = first,
                              .term_gate = first,
                              .term_follows = first,
                              .member = first,
                              .term_serial = first};
  return &none;
}

SnCode sn_cost_view(const SnCost *cost, SnCostView *view, SnError *err) {
  if (sizeof(sn_real) != sizeof(double))
    return sn_fail(err, SN_ERR_UNSUPPORTED, "a program whose numbers are floats hands no cost to a backend's library");
  int n = 0;
#define SN_COST_SIZE(name) view->size[n++] = cost->name;
#include "planner/cost/cost_fields.inc"
  n = 0;
#define SN_COST_FIELD(type, name, rows, cols) view->field[n++] = cost->name;
#include "planner/cost/cost_fields.inc"
  view->parts = (SnParts){SN_COST_NSIZE, 0, SN_COST_NFIELD, view->size, NULL, view->field};
  return SN_OK;
}

void sn_cost_free(SnCost *cost) {
  if (!cost) return;
  sn_arena_free(&cost->owner->arena);
  free(cost->owner);
  free(cost);
}

// Returns the sensor without gradient that item i looks at (other: its target), or -1.
static int lacks_gradient(const SnCost *c, const SnModel *m, int i, bool other) {
  BoundItem item = {.type = other ? c->item_other_type[i] : c->item_type[i],
                    .id = other ? c->item_other_id[i] : c->item_id[i]};
  memcpy(item.end, c->item_end + 8 * i + (other ? 4 : 0), sizeof item.end);
  const int sensor = sensor_of(&item);
  return sensor >= 0 && !sn_sensor_differentiable(m, sensor) ? sensor : -1;
}

SnCode sn_cost_check_gradient(const SnCost *cost, const SnModel *m, SnError *err) {
  char text[600] = "";
  for (int i = 0; i < cost->nitem; ++i) {
    const int term = cost->item_term[i];
    if (term >= cost->nterm && term < cost->nall) continue;
    const bool other = cost->owner->term[term]->target.kind == SN_TARGET_ELEMENT;
    int sensor = lacks_gradient(cost, m, i, false);
    if (sensor < 0 && other) sensor = lacks_gradient(cost, m, i, true);
    if (sensor < 0) continue;
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s '%s': sensor '%s' has no gradient", used ? "\n" : "",
             term < cost->nterm ? "term" : "gate of", sn_cost_name(cost, term),
             sn_model_name(m, SN_NAME_SENSOR, sensor));
  }
  return text[0] ? sn_fail(err, SN_ERR_UNSUPPORTED, "%s", text) : SN_OK;
}

const char *sn_cost_name(const SnCost *cost, int i) { return cost->owner->term[i]->name; }

int sn_cost_find(const SnCost *cost, const char *name) {
  for (int i = 0; i < cost->nall; ++i)
    if (strcmp(sn_cost_name(cost, i), name) == 0) return i;
  return -1;
}

SnCode sn_cost_no_term(const SnCost *cost, const char *name, SnError *err) {
  char why[SN_KNOWN_LIST];
  return sn_fail(err, SN_ERR_NOT_FOUND, "%s", sn_task_no_term(cost->owner->task, name, why, sizeof why));
}
