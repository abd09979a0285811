// A task file, read by tables: see yaml.h. What a field means is documented in planner/tasks/README.md;
// what needs a model (names, sizes) is checked later, in cost_bind.c.
#include "planner/task/task_private.h"

#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "physics/base/control_character.h"
#include "planner/base/grid.h"

// The task and all that it points to live in one arena.
typedef struct TaskOwner {
  SnTask task;  // first: a pointer to it is a pointer to the owner
  SnArena arena;
} TaskOwner;

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

// ---- terms and measures ----

// What both have.
#define TERM_FIELDS                                                                                                \
  {.name = "name", .type = SN_YAML_TEXT, .required = true, .offset = offsetof(SnTerm, name)},                      \
      {.name = "residual",                                                                                         \
       .type = SN_YAML_CUSTOM,                                                                                     \
       .offset = offsetof(SnTerm, residual),                                                                       \
       .read = sn_task_read_residual},                                                                             \
      {.name = "target", .type = SN_YAML_CUSTOM, .offset = offsetof(SnTerm, target), .read = sn_task_read_target}, \
      {.name = "norm", .type = SN_YAML_CHOICE, .offset = offsetof(SnTerm, norm), .choices = SN_NORM_NAMES},        \
      {.name = "side", .type = SN_YAML_CHOICE, .offset = offsetof(SnTerm, side), .choices = SN_TERM_SIDES},        \
      {.name = "weights",                                                                                          \
       .type = SN_YAML_NUMBERS,                                                                                    \
       .offset = offsetof(SnTerm, each),                                                                           \
       .count = offsetof(SnTerm, neach)},                                                                          \
  {                                                                                                                \
    .name = "width", .type = SN_YAML_NUMBER, .offset = offsetof(SnTerm, width), .lo = 0, .hi = 1e6                 \
  }

static const SnYamlField term_fields[] = {
    TERM_FIELDS,
    {.name = "weight", .type = SN_YAML_NUMBER, .offset = offsetof(SnTerm, weight), .lo = 0, .hi = SN_TASK_MOST_WEIGHT},
    {.name = "terminal",
     .type = SN_YAML_NUMBER,
     .offset = offsetof(SnTerm, terminal),
     .lo = 0,
     .hi = SN_TASK_MOST_WEIGHT},
    {.name = "gate", .type = SN_YAML_CUSTOM, .offset = offsetof(SnTerm, gate), .read = sn_task_read_gate},
};

static const SnYamlField measure_fields[] = {
    TERM_FIELDS,
    {.name = "term", .type = SN_YAML_TEXT, .offset = offsetof(SnTerm, term)},
    {.name = "below", .type = SN_YAML_NUMBER, .required = true, .offset = offsetof(SnTerm, below), .lo = 0, .hi = 1e9},
    {.name = "during", .type = SN_YAML_NUMBER, .offset = offsetof(SnTerm, during), .lo = 0, .hi = 1e6},
};

// Names are texts of requests and of files of kept sessions: of so many bytes, and without control characters.
static void check_name(SnReader *r, const SnNode *name) {
  const unsigned char *text = (const unsigned char *)name->text;
  const size_t n = strlen(name->text);
  if (n > SN_TASK_MAX_NAME) sn_issue(r->issues, name->place, "name: %zu bytes, allowed are %d", n, SN_TASK_MAX_NAME);
  for (size_t i = 0; i < n; ++i) {
    if (!sn_control_length(text + i)) continue;
    sn_issue(r->issues, name->place, "name: byte %zu begins a control character, allowed is what can be printed", i);
    return;
  }
}

static void check_term(SnReader *r, const SnNode *node, const SnTerm *t, bool measure) {
  const SnNode *name = sn_yaml_member(node, "name");
  if (name && name->kind == SN_NODE_SCALAR) check_name(r, name);
  const SnNode *norm = sn_yaml_member(node, "norm"), *width = sn_yaml_member(node, "width");
  const SnPlace place = norm ? norm->place : node->place;
  if (t->norm == SN_NORM_SMOOTH_ABS && !(t->width > 0))
    sn_issue(r->issues, place, "norm: smooth_abs needs a width above 0");
  if (!sn_yaml_member(node, "residual") && !t->term)
    sn_issue(r->issues, node->place,
             measure ? "measure: field 'residual' or 'term' is missing" : "term: field 'residual' is missing");
  if (t->term && (sn_yaml_member(node, "residual") || sn_yaml_member(node, "target")))
    sn_issue(r->issues, node->place, "measure: either 'term', or 'residual' and 'target'");
  sn_task_check_weights(r, node, t);
  if (t->norm == SN_NORM_SQUARED && width) sn_issue(r->issues, width->place, "width: the squared norm has none");
}

// Reads a list of terms; the name of a term must be its own.
static void read_terms(SnReader *r, const SnNode *node, bool measure, SnTerm **out, int *nout) {
  const char *what = measure ? "success" : "terms";
  if (node->kind != SN_NODE_LIST || node->n == 0 || node->n > SN_TASK_MAX_TERMS) {
    sn_issue(r->issues, node->place, "%s: a list of 1 to %d entries is wanted", what, SN_TASK_MAX_TERMS);
    return;
  }
  SnTerm *term = sn_arena_alloc(r->arena, sizeof *term * (size_t)node->n);
  if (!term) return;
  int n = 0;
  for (const SnNode *c = node->first; c; c = c->next, ++n) {
    SnTerm *t = &term[n];
    t->place = c->place;
    t->weight = measure ? 0 : 1;
    if (measure) t->norm = SN_NORM_EUCLIDEAN;
    sn_yaml_fill(r, c, measure ? "measure" : "term", measure ? measure_fields : term_fields,
                 measure ? COUNT(measure_fields) : COUNT(term_fields), t);
    if (c->kind == SN_NODE_MAP) check_term(r, c, t, measure);
    if (t->gate) t->gate->name = t->name;
    for (int i = 0; i < n; ++i)
      if (t->name && term[i].name && strcmp(term[i].name, t->name) == 0)
        sn_issue(r->issues, c->place, "%s: the name '%s' is taken", what, t->name);
  }
  *out = term;
  *nout = node->n;
}

static void read_cost_terms(SnReader *r, const SnNode *node, void *target) {
  SnTask *t = target;
  read_terms(r, node, false, &t->term, &t->nterm);
}

static void read_measures(SnReader *r, const SnNode *node, void *target) {
  SnTask *t = target;
  read_terms(r, node, true, &t->measure, &t->nmeasure);
}

const char *sn_task_no_term(const SnTask *task, const char *name, char *text, size_t size) {
  SnKnownNames known;
  sn_known_begin(&known, name, SN_TASK_NAMES);
  for (int k = 0; k < task->nterm; ++k)
    if (task->term[k].name) sn_known_add(&known, task->term[k].name);
  snprintf(text, size, "the task has no term '%.80s', it has %s%s", name, sn_known_list(&known), sn_known_near(&known));
  return text;
}

// Measures that look at what a term looks at take its residual and target, and unless they say so themselves the side
// and the weights of entries that count there.
static void link_measures(SnReader *r, SnTask *task) {
  for (int i = 0; i < task->nmeasure; ++i) {
    SnTerm *measure = &task->measure[i];
    if (!measure->term) continue;
    const SnTerm *term = NULL;
    for (int k = 0; k < task->nterm; ++k)
      if (task->term[k].name && strcmp(task->term[k].name, measure->term) == 0) term = &task->term[k];
    if (term) {
      measure->residual = term->residual;
      measure->target = term->target;
      if (measure->side == SN_TERM_BOTH) measure->side = term->side;
      if (measure->neach == 0) {
        measure->neach = term->neach;
        measure->each = term->each;
      }
    } else {
      char why[SN_KNOWN_LIST];
      sn_issue(r->issues, measure->place, "measure: %s", sn_task_no_term(task, measure->term, why, sizeof why));
    }
  }
}

// ---- the rest of a task ----

typedef struct NamedList {
  int n;
  SnNamedValue *value;
} NamedList;

// {NAME: number, ...}
static void read_named(SnReader *r, const SnNode *node, const char *what, double lo, double hi, NamedList *out) {
  if (node->kind != SN_NODE_MAP) {
    sn_issue(r->issues, node->place, "%s: a map of names and numbers is wanted", what);
    return;
  }
  out->value = sn_arena_alloc(r->arena, sizeof *out->value * (size_t)(node->n + 1));
  if (!out->value) return;
  for (const SnNode *c = node->first; c; c = c->next) {
    SnNamedValue *v = &out->value[out->n++];
    v->name = sn_arena_text(r->arena, c->key, strlen(c->key));
    v->place = c->key_place;
    v->value = sn_yaml_number(r, c, c->key, lo, hi, 0);
  }
}

// {JOINT: number, ...}
static void read_of_joints(SnReader *r, const SnNode *node, const char *what, SnNamedValue **value, int *n) {
  NamedList list = {0};
  read_named(r, node, what, 0, 0, &list);
  *value = list.value;
  *n = list.n;
}

static void read_joints(SnReader *r, const SnNode *node, void *target) {
  SnTask *t = target;
  read_of_joints(r, node, "joints", &t->joint, &t->njoint);
}

static void read_joint_velocities(SnReader *r, const SnNode *node, void *target) {
  SnTask *t = target;
  read_of_joints(r, node, "joint_velocities", &t->velocity, &t->nvelocity);
}

static void read_keyframe(SnReader *r, const SnNode *node, void *target) {
  SnTask *t = target;
  const char *text = sn_yaml_text(r, node, "keyframe");
  if (text) t->keyframe = sn_arena_text(r->arena, text, strlen(text));
  t->keyframe_place = node->place;
}

static void check_count(SnReader *r, const SnNode *node, const char *what, int n, int wanted) {
  if (n != 0 && n != wanted) sn_issue(r->issues, node->place, "%s: %d numbers, %d are wanted", what, n, wanted);
}

// bodies: {NAME: {position: [x, y, z], velocity: [x, y, z]}, ...}
static void read_bodies(SnReader *r, const SnNode *node, void *target) {
  static const SnYamlField fields[] = {
      {.name = "position",
       .type = SN_YAML_NUMBERS,
       .offset = offsetof(SnBodyState, position),
       .count = offsetof(SnBodyState, nposition)},
      {.name = "orientation",
       .type = SN_YAML_NUMBERS,
       .offset = offsetof(SnBodyState, orientation),
       .count = offsetof(SnBodyState, norientation)},
      {.name = "velocity",
       .type = SN_YAML_NUMBERS,
       .offset = offsetof(SnBodyState, velocity),
       .count = offsetof(SnBodyState, nvelocity)},
      {.name = "angular_velocity",
       .type = SN_YAML_NUMBERS,
       .offset = offsetof(SnBodyState, angular),
       .count = offsetof(SnBodyState, nangular)},
  };
  SnTask *t = target;
  if (node->kind != SN_NODE_MAP) {
    sn_issue(r->issues, node->place, "bodies: a map from names to positions and velocities is wanted");
    return;
  }
  t->body = sn_arena_alloc(r->arena, sizeof *t->body * (size_t)(node->n + 1));
  if (!t->body) return;
  for (const SnNode *c = node->first; c; c = c->next) {
    SnBodyState *b = &t->body[t->nbody++];
    b->name = sn_arena_text(r->arena, c->key, strlen(c->key));
    b->place = c->key_place;
    sn_yaml_fill(r, c, c->key, fields, COUNT(fields), b);
    check_count(r, c, "position", b->nposition, 3);
    check_count(r, c, "orientation", b->norientation, 4);
    check_count(r, c, "velocity", b->nvelocity, 3);
    check_count(r, c, "angular_velocity", b->nangular, 3);
  }
}

// initial: where the body starts.
static void read_initial(SnReader *r, const SnNode *node, void *target) {
  static const SnYamlField fields[] = {
      {.name = "keyframe", .type = SN_YAML_CUSTOM, .read = read_keyframe},
      {.name = "joints", .type = SN_YAML_CUSTOM, .read = read_joints},
      {.name = "joint_velocities", .type = SN_YAML_CUSTOM, .read = read_joint_velocities},
      {.name = "bodies", .type = SN_YAML_CUSTOM, .read = read_bodies},
      {.name = "activation", .type = SN_YAML_NUMBER, .offset = offsetof(SnTask, activation), .lo = 0, .hi = 1},
      {.name = "settle", .type = SN_YAML_NUMBER, .offset = offsetof(SnTask, settle), .lo = 0, .hi = 60},
  };
  sn_yaml_fill(r, node, "initial", fields, COUNT(fields), target);
}

// perturb.joints: one number for all joints, or a map of named ones.
static void read_perturb_joints(SnReader *r, const SnNode *node, void *target) {
  SnTask *t = target;
  NamedList list = {0};
  if (node->kind == SN_NODE_MAP)
    read_named(r, node, "joints", 0, 10, &list);
  else
    t->perturb_joints = sn_yaml_number(r, node, "joints", 0, 10, 0);
  t->perturb = list.value;
  t->nperturb = list.n;
}

static void read_perturb(SnReader *r, const SnNode *node, void *target) {
  static const SnYamlField fields[] = {
      {.name = "joints", .type = SN_YAML_CUSTOM, .read = read_perturb_joints},
      {.name = "bodies", .type = SN_YAML_NUMBER, .offset = offsetof(SnTask, perturb_bodies), .lo = 0, .hi = 100},
      {.name = "plan", .type = SN_YAML_NUMBER, .offset = offsetof(SnTask, perturb_plan), .lo = 0, .hi = 2},
  };
  sn_yaml_fill(r, node, "perturb", fields, COUNT(fields), target);
}

// plan: one number for all controls, a map of named ones, or the word keyframe.
static void read_plan(SnReader *r, const SnNode *node, void *target) {
  SnTask *t = target;
  NamedList list = {0};
  if (node->kind == SN_NODE_MAP)
    read_named(r, node, "plan", 0, 0, &list);
  else if (node->kind == SN_NODE_SCALAR && strcmp(node->text, "keyframe") == 0)
    t->plan_keyframe = true;
  else
    t->plan_initial = sn_yaml_number(r, node, "plan", 0, 0, 0);
  t->plan = list.value;
  t->nplan = list.n;
}

static void check_contacts(SnReader *r, const SnNode *node, int nsolref, int nsolimp) {
  if (nsolref != 0 && nsolref != 2)
    sn_issue(r->issues, sn_yaml_member(node, "solref")->place, "solref: 2 numbers are wanted");
  if (nsolimp != 0 && nsolimp != 5)
    sn_issue(r->issues, sn_yaml_member(node, "solimp")->place, "solimp: 5 numbers are wanted");
}

static void read_options(SnReader *r, const SnNode *node, void *target) {
#define OPTION_NUMBER(field, low, high)                                               \
  {                                                                                   \
    .name = #field, .type = SN_YAML_NUMBER, .offset = offsetof(SnTaskOptions, field), \
    .count = offsetof(SnTaskOptions, has_##field), .lo = low, .hi = high              \
  }
#define OPTION_INTEGER(field, low, high)                                               \
  {                                                                                    \
    .name = #field, .type = SN_YAML_INTEGER, .offset = offsetof(SnTaskOptions, field), \
    .count = offsetof(SnTaskOptions, has_##field), .lo = low, .hi = high               \
  }
  static const SnYamlField fields[] = {
      OPTION_NUMBER(timestep, 1e-5, 1),
      OPTION_NUMBER(tolerance, 0, 1),
      OPTION_NUMBER(ls_tolerance, 0, 1),
      OPTION_NUMBER(ccd_tolerance, 0, 1),
      OPTION_NUMBER(impratio, 1e-6, 1e6),
      OPTION_INTEGER(iterations, 1, 10000),
      OPTION_INTEGER(ls_iterations, 1, 10000),
      OPTION_INTEGER(ccd_iterations, 1, 10000),
      {.name = "integrator",
       .type = SN_YAML_CHOICE,
       .offset = offsetof(SnTaskOptions, integrator),
       .count = offsetof(SnTaskOptions, has_integrator),
       .choices = SN_TASK_INTEGRATORS},
      {.name = "contact",
       .type = SN_YAML_CHOICE,
       .offset = offsetof(SnTaskOptions, contact),
       .count = offsetof(SnTaskOptions, has_contact),
       .choices = SN_TASK_CONTACTS},
      OPTION_NUMBER(contact_width, 1e-6, 1),
      OPTION_NUMBER(contact_stiffness, 0, 1),
      OPTION_NUMBER(contact_restitution, 0, 1),
      {.name = "solref",
       .type = SN_YAML_NUMBERS,
       .offset = offsetof(SnTaskOptions, solref),
       .count = offsetof(SnTaskOptions, nsolref)},
      {.name = "solimp",
       .type = SN_YAML_NUMBERS,
       .offset = offsetof(SnTaskOptions, solimp),
       .count = offsetof(SnTaskOptions, nsolimp)},
  };
  SnTaskOptions *o = target;
  sn_yaml_fill(r, node, "options", fields, COUNT(fields), o);
  check_contacts(r, node, o->nsolref, o->nsolimp);
}

// plant: contacts of the simulated robot.
static void read_plant(SnReader *r, const SnNode *node, void *target) {
  static const SnYamlField fields[] = {
      {.name = "solref",
       .type = SN_YAML_NUMBERS,
       .offset = offsetof(SnTaskPlant, solref),
       .count = offsetof(SnTaskPlant, nsolref)},
      {.name = "solimp",
       .type = SN_YAML_NUMBERS,
       .offset = offsetof(SnTaskPlant, solimp),
       .count = offsetof(SnTaskPlant, nsolimp)},
  };
  SnTaskPlant *p = target;
  sn_yaml_fill(r, node, "plant", fields, COUNT(fields), p);
  check_contacts(r, node, p->nsolref, p->nsolimp);
}

// A text; a list of texts stands for them joined by commas, as a grid is written.
static void read_text_setting(SnReader *r, const SnNode *node, SnSettings *s, int i) {
  char joined[4 * SN_SETTING_TEXT_SIZE] = "";
  const bool list = node->kind == SN_NODE_LIST;
  SnError err;
  for (const SnNode *c = list ? node->first : node; c; c = list ? c->next : NULL) {
    const size_t used = strlen(joined);
    const char *text = c->kind == SN_NODE_SCALAR ? c->text : sn_yaml_text(r, c, node->key);
    if (!text) return;
    snprintf(joined + used, sizeof joined - used, "%s%s", used ? "," : "", text);
  }
  if (sn_settings_set_name(s, i, joined, &err) != SN_OK) sn_issue(r->issues, node->place, "%s", err.text);
}

// What settings say only together.
static void check_settings(SnReader *r, const SnNode *node, const SnSettings *s) {
  SnGrid grid;
  SnError err;
  if (s->knots > s->horizon)
    sn_issue(r->issues, node->place, "knots: %d is more than the %d steps of the horizon", s->knots, s->horizon);
  if (sn_grid_parse(s->grid, s->horizon, &grid, &err) != SN_OK) sn_issue(r->issues, node->place, "%s", err.text);
}

// settings: rows of the planner's own table.
static void read_settings(SnReader *r, const SnNode *node, void *target) {
  SnSettings *s = target;
  if (node->kind != SN_NODE_MAP) {
    sn_issue(r->issues, node->place, "settings: a map is wanted");
    return;
  }
  for (const SnNode *c = node->first; c; c = c->next) {
    const int i = sn_settings_find(c->key);
    SnError err;
    SnCode code = SN_OK;
    if (i < 0) {
      SnKnownNames known;
      sn_settings_known(c->key, &known);
      sn_yaml_unknown(r->issues, c, "settings", &known);
    } else if (sn_settings_info(i)->type == SN_SETTING_TYPE_TEXT) {
      read_text_setting(r, c, s, i);
    } else if (sn_settings_info(i)->type == SN_SETTING_TYPE_CHOICE) {
      const char *text = sn_yaml_text(r, c, c->key);
      if (text) code = sn_settings_set_name(s, i, text, &err);
    } else {
      const int before = r->issues->count;
      const double x = sn_yaml_number(r, c, c->key, 0, 0, 0);
      if (r->issues->count == before) code = sn_settings_set(s, i, x, &err);
    }
    if (code != SN_OK) sn_issue(r->issues, c->place, "%s", err.text);
  }
  check_settings(r, node, s);
}

static void read_model(SnReader *r, const SnNode *node, void *target) {
  SnTask *t = target;
  const char *text = sn_yaml_text(r, node, "model");
  if (text) t->model = sn_arena_text(r->arena, text, strlen(text));
  t->model_place = node->place;
}

// policy: a file beside the task's.
static void read_policy(SnReader *r, const SnNode *node, void *target) {
  static const char ending[] = ".onnx";
  SnTask *t = target;
  const char *name = sn_yaml_text(r, node, "policy");
  const size_t n = name ? strlen(name) : 0;
  if (!name) return;
  if (strchr(name, '/') || name[0] == '.' || n < sizeof ending || strcmp(name + n + 1 - sizeof ending, ending) != 0) {
    sn_issue(r->issues, node->place, "policy: '%s', allowed is the name of a file beside this one that ends with %s",
             name, ending);
    return;
  }
  t->policy_place = node->place;
  t->policy = sn_task_path_beside(r->arena, r->issues->file, name, "");
}

static void read_cfd_bodies(SnReader *r, const SnNode *node, void *target) {
  SnTask *t = target;
  const bool list = node->kind == SN_NODE_LIST;
  const int n = list ? node->n : 1;
  t->cfd_body = sn_arena_alloc(r->arena, sizeof *t->cfd_body * (size_t)(n + 1));
  if (!t->cfd_body) return;
  for (const SnNode *c = list ? node->first : node; c; c = list ? c->next : NULL) {
    const char *text = sn_yaml_text(r, c, "cfd_bodies");
    if (!text) continue;
    t->cfd_body[t->ncfd_body].name = sn_arena_text(r->arena, text, strlen(text));
    t->cfd_body[t->ncfd_body++].place = c->place;
  }
}

// base, variables: task_base.c and task_variables.c have taken them out.
static void read_taken(SnReader *r, const SnNode *node, void *target) { (void)r, (void)node, (void)target; }

static const SnYamlField task_fields[] = {
    {.name = "base", .type = SN_YAML_CUSTOM, .read = read_taken},
    {.name = "description", .type = SN_YAML_TEXT, .offset = offsetof(SnTask, description)},
    {.name = "model", .type = SN_YAML_CUSTOM, .required = true, .read = read_model},
    {.name = "options", .type = SN_YAML_CUSTOM, .offset = offsetof(SnTask, options), .read = read_options},
    {.name = "plant", .type = SN_YAML_CUSTOM, .offset = offsetof(SnTask, plant), .read = read_plant},
    {.name = "initial", .type = SN_YAML_CUSTOM, .read = read_initial},
    {.name = "perturb", .type = SN_YAML_CUSTOM, .read = read_perturb},
    {.name = "plan", .type = SN_YAML_CUSTOM, .read = read_plan},
    {.name = "settings", .type = SN_YAML_CUSTOM, .offset = offsetof(SnTask, settings), .read = read_settings},
    {.name = "policy", .type = SN_YAML_CUSTOM, .read = read_policy},
    {.name = "cfd_bodies", .type = SN_YAML_CUSTOM, .read = read_cfd_bodies},
    {.name = "terms", .type = SN_YAML_CUSTOM, .required = true, .read = read_cost_terms},
    {.name = "success", .type = SN_YAML_CUSTOM, .read = read_measures},
    {.name = "variables", .type = SN_YAML_CUSTOM, .read = read_taken},
};

// Name of a task: the file's name without folders and ending.
static char *file_stem(SnArena *arena, const char *file) {
  const char *slash = strrchr(file, '/');
  const char *name = slash ? slash + 1 : file;
  const char *dot = strrchr(name, '.');
  return sn_arena_text(arena, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

// The tree of a text, and in the task the text of the whole tree; NULL when a mistake was added.
static SnNode *read_all(TaskOwner *owner, const char *text, size_t size, SnArena *tree, SnIssues *issues) {
  bool changed = false;
  const bool fits = size <= SN_TASK_MAX_BYTES;
  SnNode *root = fits ? sn_task_read_tree(text, size, tree, &owner->arena, issues, &changed) : NULL;
  const char *all = root && changed ? sn_yaml_write(root, SN_TASK_MAX_BYTES, tree) : text;
  if (root && all) owner->task.text = sn_arena_text(&owner->arena, all, changed ? strlen(all) : size);
  if (!fits || (!all && !tree->failed)) sn_issue(issues, (SnPlace){0}, "larger than %d bytes", SN_TASK_MAX_BYTES);
  return root;
}

SnTask *sn_task_parse(const char *text, size_t size, const char *file, SnError *err) {
  SnIssues issues;
  sn_issues_begin(&issues, file, err);
  TaskOwner *owner = calloc(1, sizeof *owner);
  if (!owner) {
    sn_fail(err, SN_ERR_MEMORY, "%s: out of memory", file);
    return NULL;
  }
  SnTask *task = &owner->task;
  task->settings = sn_default_settings();
  task->description = sn_arena_text(&owner->arena, "", 0);
  task->file = sn_arena_text(&owner->arena, file, strlen(file));
  task->name = file_stem(&owner->arena, file);
  issues.file = task->file ? task->file : file;
  SnArena tree = {0};
  SnNode *root = read_all(owner, text, size, &tree, &issues);
  if (root) {
    SnReader reader = {.arena = &owner->arena, .issues = &issues};
    sn_yaml_fill(&reader, root, "task", task_fields, COUNT(task_fields), task);
    link_measures(&reader, task);
    if (task->plan_keyframe && !task->keyframe)
      sn_issue(&issues, sn_yaml_member(root, "plan")->place, "plan: the controls of a keyframe want initial.keyframe");
  }
  if ((owner->arena.failed || tree.failed) && !issues.memory) sn_issue_memory(&issues, (SnPlace){0});
  sn_arena_free(&tree);
  if (sn_issues_end(&issues, SN_ERR_FORMAT) == SN_OK) return task;
  sn_task_free(task);
  return NULL;
}

SnTask *sn_task_load(const char *file, SnError *err) {
  SnArena arena = {0};
  size_t size = 0;
  char *text = sn_task_load_text(file, &arena, &size, err);
  SnTask *task = text ? sn_task_parse(text, size, file, err) : NULL;
  sn_arena_free(&arena);
  return task;
}

SnCode sn_task_model_fault(const SnTask *task, SnCode code, const char *why, SnError *err) {
  const SnPlace *place = &task->model_place;
  const char *file = place->file ? place->file : task->file;
  return sn_fail(err, code, "%s:%d:%d: model: %s", file, place->line, place->column, why);
}

void sn_task_free(SnTask *task) {
  if (!task) return;
  TaskOwner *owner = (TaskOwner *)task;
  sn_arena_free(&owner->arena);
  free(owner);
}
