// What a term of a task looks at, and what it is compared with: elements and targets of a task file.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/task/task_private.h"

static const char object_choices[] = "site, body, geom";
#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

// ---- elements: {position: {site: NAME}}, {distance: [{site: A}, {body: B}]}, {control: all}, ... ----

// {site: NAME}, {body: NAME} or {geom: NAME}.
static void read_object(SnReader *r, const SnNode *node, const char *what, SnObject *object, char **name) {
  static const char *const kinds[] = {"site", "body", "geom"};
  if (node->kind == SN_NODE_MAP && node->n == 1)
    for (int k = 0; k < 3; ++k)
      if (strcmp(node->first->key, kinds[k]) == 0) {
        const char *text = sn_yaml_text(r, node->first, kinds[k]);
        *object = (SnObject)k;
        if (text) *name = sn_arena_text(r->arena, text, strlen(text));
        return;
      }
  SnKnownNames known;
  sn_known_begin(&known, node->kind == SN_NODE_MAP && node->n == 1 ? node->first->key : NULL, 0);
  for (int k = 0; k < 3; ++k) sn_known_add(&known, kinds[k]);
  sn_issue(r->issues, node->place, "%s: a map with one of %s is wanted, as {site: NAME}%s", what, object_choices,
           sn_known_near(&known));
}

static bool element_names(SnReader *r, SnElement *e, int n) {
  e->name = sn_arena_alloc(r->arena, sizeof *e->name * (size_t)(n > 0 ? n : 1));
  e->nname = e->name ? n : 0;
  return e->name != NULL;
}

// NAME, [NAME, ...] or all.
static void read_names(SnReader *r, const SnNode *node, const char *what, SnElement *e) {
  if (node->kind == SN_NODE_SCALAR && !node->quoted && strcmp(node->text, "all") == 0) {
    e->all = true;
    return;
  }
  if (node->kind == SN_NODE_MAP || (node->kind == SN_NODE_LIST && node->n == 0)) {
    sn_issue(r->issues, node->place, "%s: a name, a list of names or all is wanted", what);
    return;
  }
  if (!element_names(r, e, node->kind == SN_NODE_LIST ? node->n : 1)) return;
  int i = 0;
  for (const SnNode *c = node->kind == SN_NODE_LIST ? node->first : node; c && i < e->nname; c = c->next) {
    const char *text = sn_yaml_text(r, c, what);
    e->name[i++] = sn_arena_text(r->arena, text ? text : "", text ? strlen(text) : 0);
  }
}

// {sites: [A, B, ...]}, or bodies or geoms: their mean. Returns whether it is one.
static bool read_mean(SnReader *r, const SnNode *node, const char *what, SnElement *e) {
  static const char *const kinds[] = {"sites", "bodies", "geoms"};
  if (node->kind != SN_NODE_MAP || node->n != 1) return false;
  for (int k = 0; k < 3; ++k) {
    const SnNode *list = node->first;
    if (strcmp(list->key, kinds[k]) != 0) continue;
    if (e->quantity == SN_QTY_ORIENTATION)
      sn_issue(r->issues, list->key_place, "%s: %s have no mean of it, allowed is one of %s", what, kinds[k],
               object_choices);
    else if (list->kind != SN_NODE_LIST || list->n == 0 || list->n > SN_TASK_MAX_MEAN)
      sn_issue(r->issues, list->place, "%s: a list of 1 to %d names is wanted", kinds[k], SN_TASK_MAX_MEAN);
    else
      read_names(r, list, what, e);
    e->object[0] = (SnObject)k;
    return true;
  }
  return false;
}

static void read_quantity(SnReader *r, const SnNode *node, SnElement *e) {
  const char *what = node->key;
  if (e->quantity < SN_QTY_DISTANCE && read_mean(r, node, what, e)) return;
  if (e->quantity < SN_QTY_DISTANCE) {
    if (element_names(r, e, 1)) read_object(r, node, what, &e->object[0], &e->name[0]);
  } else if (e->quantity == SN_QTY_DISTANCE) {
    if (node->kind != SN_NODE_LIST || node->n != 2) {
      sn_issue(r->issues, node->place, "distance: a list of two objects is wanted, as [{site: A}, {site: B}]");
    } else if (element_names(r, e, 2)) {
      read_object(r, node->first, what, &e->object[0], &e->name[0]);
      read_object(r, node->first->next, what, &e->object[1], &e->name[1]);
    }
  } else if (e->quantity == SN_QTY_SENSOR) {
    if (node->kind == SN_NODE_LIST) {
      sn_issue(r->issues, node->place, "sensor: the name of one sensor is wanted, several need a term each");
      return;
    }
    const char *text = sn_yaml_text(r, node, what);
    if (text && element_names(r, e, 1)) e->name[0] = sn_arena_text(r->arena, text, strlen(text));
  } else {
    read_names(r, node, what, e);
  }
}

// Adds one of x, y, z to the components of an element.
static void read_one_axis(SnReader *r, const SnNode *node, SnElement *e) {
  static const char names[] = "xyz";
  const char *text = node->kind == SN_NODE_SCALAR ? node->text : "";
  const char *found = text[0] && !text[1] ? strchr(names, text[0]) : NULL;
  bool again = false;
  for (int k = 0; found && k < e->naxis; ++k) again |= e->axis[k] == (int)(found - names);
  if (!found || again)
    sn_issue(r->issues, node->place, again ? "axis: '%s' stands twice" : "axis: '%s' is unknown, allowed is x, y, z",
             text);
  else
    e->axis[e->naxis++] = (int)(found - names);
}

// axis: z, or a list.
static void read_axis(SnReader *r, const SnNode *node, SnElement *e) {
  const SnQuantity q = e->quantity;
  if (q != SN_QTY_POSITION && q != SN_QTY_VELOCITY && q != SN_QTY_ANGULAR_VELOCITY && q != SN_QTY_SENSOR)
    sn_issue(r->issues, node->place,
             "axis: %s has none; allowed is position, velocity, angular_velocity, or a sensor of three numbers",
             sn_quantity_name(q));
  else if (node->kind == SN_NODE_MAP || (node->kind == SN_NODE_LIST && node->n == 0))
    sn_issue(r->issues, node->place, "axis: one of x, y, z or a list of them is wanted");
  else if (node->kind == SN_NODE_LIST)
    for (const SnNode *c = node->first; c; c = c->next) read_one_axis(r, c, e);
  else
    read_one_axis(r, node, e);
}

static const char *const quantity_keys[] = {"position", "orientation",    "velocity",       "angular_velocity",
                                            "distance", "joint_position", "joint_velocity", "activation",
                                            "control",  "control_rate",   "tendon_length",  "sensor"};
static const char quantity_choices[] =
    "position, orientation, velocity, angular_velocity, distance, joint_position, joint_velocity, activation, control, "
    "control_rate, tendon_length, sensor";

const char *sn_quantity_name(SnQuantity quantity) { return quantity_keys[quantity]; }

// Index of a quantity by its key, or -1.
static int quantity_index(const char *key) {
  for (int q = 0; q < COUNT(quantity_keys); ++q)
    if (strcmp(quantity_keys[q], key) == 0) return q;
  return -1;
}

static void add_quantities(SnKnownNames *known) {
  for (int q = 0; q < COUNT(quantity_keys); ++q) sn_known_add(known, quantity_keys[q]);
}

void sn_task_read_residual(SnReader *r, const SnNode *node, void *target) {
  SnElement *e = target;
  e->place = node->place;
  const SnNode *quantity = NULL, *axis = NULL, *other = NULL;
  for (const SnNode *c = node->kind == SN_NODE_MAP ? node->first : NULL; c; c = c->next) {
    if (strcmp(c->key, "axis") == 0)
      axis = c;
    else if (!quantity && quantity_index(c->key) >= 0)
      quantity = c;
    else
      other = c;
  }
  if (!quantity || other) {
    SnKnownNames known;
    sn_known_begin(&known, other && quantity_index(other->key) < 0 ? other->key : NULL, 0);
    add_quantities(&known);
    sn_known_add(&known, "axis");
    sn_issue(r->issues, node->place, "residual: a map with one of %s is wanted, and axis where one component counts%s",
             quantity_choices, sn_known_near(&known));
    return;
  }
  e->quantity = (SnQuantity)quantity_index(quantity->key);
  read_quantity(r, quantity, e);
  if (axis) read_axis(r, axis, e);
}

// ---- targets ----

typedef struct KeyframeRows {
  int n, width;  // width -1: rows of different lengths
  double *value;
} KeyframeRows;

typedef struct KeyframeFields {
  int ntime;
  double *time;
  KeyframeRows rows;
  int interpolation;
  bool repeat;
} KeyframeFields;

// A list of rows; a row is a number or a list of numbers.
static void read_rows(SnReader *r, const SnNode *node, void *target) {
  KeyframeRows *rows = target;
  if (node->kind != SN_NODE_LIST || node->n == 0) {
    sn_issue(r->issues, node->place, "values: a list with one entry a time is wanted");
    return;
  }
  rows->n = node->n;
  rows->width = node->first->kind == SN_NODE_LIST ? node->first->n : 1;
  rows->value = sn_arena_alloc(r->arena, sizeof(double) * (size_t)(rows->n * rows->width + 1));
  if (!rows->value) return;
  int k = 0;
  for (const SnNode *row = node->first; row; row = row->next) {
    const int width = row->kind == SN_NODE_LIST ? row->n : 1;
    if (width != rows->width || width == 0) {
      sn_issue(r->issues, row->place, "values: %d entries, the first row has %d", width, rows->width);
      return;
    }
    for (const SnNode *c = row->kind == SN_NODE_LIST ? row->first : row; c && k < rows->n * width; c = c->next) {
      rows->value[k++] = sn_yaml_number(r, c, "values", 0, 0, 0);
      if (row->kind != SN_NODE_LIST) break;
    }
  }
}

static void read_keyframes(SnReader *r, const SnNode *node, SnTarget *t) {
  static const SnYamlField fields[] = {
      {.name = "times",
       .type = SN_YAML_NUMBERS,
       .required = true,
       .offset = offsetof(KeyframeFields, time),
       .count = offsetof(KeyframeFields, ntime)},
      {.name = "values",
       .type = SN_YAML_CUSTOM,
       .required = true,
       .offset = offsetof(KeyframeFields, rows),
       .read = read_rows},
      {.name = "interpolation",
       .type = SN_YAML_CHOICE,
       .offset = offsetof(KeyframeFields, interpolation),
       .choices = "zero|linear|cubic"},
      {.name = "repeat", .type = SN_YAML_BOOL, .offset = offsetof(KeyframeFields, repeat)},
  };
  KeyframeFields k = {.interpolation = SN_SPLINE_LINEAR};
  sn_yaml_fill(r, node, "keyframes", fields, COUNT(fields), &k);
  t->kind = SN_TARGET_KEYFRAMES;
  t->ntime = k.ntime;
  t->time = k.time;
  t->key = k.rows.value;
  t->nvalue = k.rows.width;
  t->interpolation = (SnSplineKind)k.interpolation;
  t->repeat = k.repeat;
  if (k.ntime > 0 && k.rows.n > 0 && k.ntime != k.rows.n)
    sn_issue(r->issues, node->place, "keyframes: %d times but %d values", k.ntime, k.rows.n);
  for (int i = 1; i < k.ntime; ++i)
    if (!(k.time[i] > k.time[i - 1])) {
      sn_issue(r->issues, node->place, "keyframes: times must ascend, %g follows %g", k.time[i], k.time[i - 1]);
      break;
    }
  if (k.repeat && k.ntime == 1) sn_issue(r->issues, node->place, "keyframes: one time cannot repeat");
}

static void read_sinusoid(SnReader *r, const SnNode *node, SnTarget *t) {
  static const SnYamlField fields[] = {
      {.name = "center",
       .type = SN_YAML_NUMBERS,
       .required = true,
       .offset = offsetof(SnTarget, value),
       .count = offsetof(SnTarget, nvalue)},
      {.name = "amplitude",
       .type = SN_YAML_NUMBERS,
       .required = true,
       .offset = offsetof(SnTarget, amplitude),
       .count = offsetof(SnTarget, namplitude)},
      {.name = "phase",
       .type = SN_YAML_NUMBERS,
       .offset = offsetof(SnTarget, phase),
       .count = offsetof(SnTarget, nphase)},
      {.name = "period",
       .type = SN_YAML_NUMBER,
       .required = true,
       .offset = offsetof(SnTarget, period),
       .lo = 1e-3,
       .hi = 1e6},
  };
  t->kind = SN_TARGET_SINUSOID;
  t->period = 1;
  sn_yaml_fill(r, node, "sinusoid", fields, COUNT(fields), t);
}

static void read_value(SnReader *r, const SnNode *node, SnTarget *t) {
  static const SnYamlField field = {.name = "value",
                                    .type = SN_YAML_NUMBERS,
                                    .offset = offsetof(SnTarget, value),
                                    .count = offsetof(SnTarget, nvalue)};
  SnNode wrapper = {.kind = SN_NODE_MAP, .place = node->place, .n = 1}, member = *node;
  member.key = "value";
  member.next = NULL;
  wrapper.first = &member;
  t->kind = SN_TARGET_VALUE;
  sn_yaml_fill(r, &wrapper, "target", &field, 1, t);
}

// One member of a target's map. Returns 1 when it says what the target is, 0 when it adds to that.
static int read_target_member(SnReader *r, const SnNode *c, SnTarget *t) {
  const int q = quantity_index(c->key);
  if (q >= 0) {
    t->kind = SN_TARGET_ELEMENT;
    t->element.place = c->key_place;
    t->element.quantity = (SnQuantity)q;
    read_quantity(r, c, &t->element);
  } else if (strcmp(c->key, "value") == 0) {
    read_value(r, c, t);
  } else if (strcmp(c->key, "sinusoid") == 0) {
    read_sinusoid(r, c, t);
  } else if (strcmp(c->key, "keyframes") == 0) {
    read_keyframes(r, c, t);
  } else if (strcmp(c->key, "frame") == 0) {
    const char *text = sn_yaml_text(r, c, "frame");
    if (text) t->frame = sn_arena_text(r->arena, text, strlen(text));
    return 0;
  } else if (strcmp(c->key, "at") == 0) {
    if (c->kind == SN_NODE_SCALAR && strcmp(c->text, "start") == 0)
      t->at_start = true;
    else
      sn_issue(r->issues, c->place, "at: allowed is start");
    return 0;
  } else if (strcmp(c->key, "axis") == 0) {
    return 0;  // read when the quantity is known
  } else {
    SnKnownNames known;
    sn_known_begin(&known, c->key, 0);
    sn_known_add_choices(&known, "value|sinusoid|keyframes|frame|at|axis");
    add_quantities(&known);
    sn_yaml_unknown(r->issues, c, "target", &known);
    return 0;
  }
  return 1;
}

void sn_task_read_target(SnReader *r, const SnNode *node, void *target) {
  SnTarget *t = target;
  t->place = node->place;
  if (node->kind != SN_NODE_MAP) {
    read_value(r, node, t);
    return;
  }
  int kinds = 0;
  const int before = r->issues->count;
  for (const SnNode *c = node->first; c; c = c->next) kinds += read_target_member(r, c, t);
  if (kinds != 1 && r->issues->count == before)
    sn_issue(r->issues, node->place, "target: exactly one of value, sinusoid, keyframes, %s is wanted",
             quantity_choices);
  const SnNode *axis = sn_yaml_member(node, "axis");
  if (axis && t->kind == SN_TARGET_ELEMENT)
    read_axis(r, axis, &t->element);
  else if (axis)
    sn_issue(r->issues, axis->place, "target: 'axis' needs another element");
  if (t->at_start && t->kind != SN_TARGET_ELEMENT)
    sn_issue(r->issues, node->place, "target: 'at: start' needs another element");
  if (t->frame && t->kind == SN_TARGET_ELEMENT && !t->at_start)
    sn_issue(r->issues, node->place, "target: an element that moves has no frame; add 'at: start' to fix its place");
}
