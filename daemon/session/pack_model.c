// Descriptions of models and tasks: names, order, units and ranges of all that a controller fills or reads.
#include <stdio.h>

#include "daemon/session/pack.h"

typedef struct Quantities {
  Sinew__V1__Quantity **list, *items;
  size_t n;
} Quantities;

static Quantities begin(SnScratch *scratch, int capacity) {
  Quantities q = {0};
  if (capacity == 0) return q;
  q.list = sn_scratch_alloc(scratch, (size_t)capacity * sizeof *q.list);
  q.items = sn_scratch_alloc(scratch, (size_t)capacity * sizeof *q.items);
  if (!q.list || !q.items) q = (Quantities){0};
  return q;
}

// range NULL: not limited.
static void add(Quantities *q, const char *name, int address, int size, const char *unit, const sn_real *range) {
  if (!q->items) return;
  Sinew__V1__Quantity *item = &q->items[q->n];
  sinew__v1__quantity__init(item);
  item->name = (char *)name;
  item->address = (uint32_t)address;
  item->size = (uint32_t)size;
  item->unit = (char *)unit;
  item->limited = range != NULL;
  if (range) item->min = (double)range[0], item->max = (double)range[1];
  q->list[q->n++] = item;
}

static Quantities pack_qpos(SnScratch *scratch, const SnModel *m) {
  static const int size[] = {7, 4, 1, 1};
  static const char *const unit[] = {"m, quaternion", "quaternion", "m", "rad"};
  Quantities q = begin(scratch, m->njnt);
  for (int j = 0; j < m->njnt; j++) {
    int type = m->jnt_type[j];
    bool limited = m->jnt_limited[j] && (type == SN_JNT_SLIDE || type == SN_JNT_HINGE);
    add(&q, sn_model_name(m, SN_NAME_JNT, j), m->jnt_qposadr[j], size[type], unit[type],
        limited ? m->jnt_range + 2 * j : NULL);
  }
  return q;
}

static Quantities pack_qvel(SnScratch *scratch, const SnModel *m) {
  static const int size[] = {6, 3, 1, 1};
  static const char *const unit[] = {"m/s, rad/s", "rad/s", "m/s", "rad/s"};
  Quantities q = begin(scratch, m->njnt);
  for (int j = 0; j < m->njnt; j++)
    add(&q, sn_model_name(m, SN_NAME_JNT, j), m->jnt_dofadr[j], size[m->jnt_type[j]], unit[m->jnt_type[j]], NULL);
  return q;
}

// Activation of a muscle, whose dynamics clamps what lies outside.
static const sn_real muscle_range[2] = {0, 1};

static Quantities pack_act(SnScratch *scratch, const SnModel *m) {
  Quantities q = begin(scratch, m->nactuator);
  for (int i = 0; i < m->nactuator; i++) {
    if (m->actuator_actadr[i] < 0) continue;
    const sn_real *range = m->actuator_actlimited[i]                 ? m->actuator_actrange + 2 * i
                           : m->actuator_dyntype[i] == SN_DYN_MUSCLE ? muscle_range
                                                                     : NULL;
    add(&q, sn_model_name(m, SN_NAME_ACTUATOR, i), m->actuator_actadr[i], m->actuator_actnum[i], "1", range);
  }
  return q;
}

// One quantity a control: an actuator may have several.
static Quantities pack_ctrl(SnScratch *scratch, const SnModel *m) {
  Quantities q = begin(scratch, m->nu);
  for (int i = 0; i < m->nactuator; i++)
    for (int k = 0; k < m->actuator_ctrlnum[i]; k++) {
      int u = m->actuator_ctrladr[i] + k;
      add(&q, sn_model_name(m, SN_NAME_ACTUATOR, i), u, 1, "1", m->ctrl_limited[u] ? m->ctrl_range + 2 * u : NULL);
    }
  return q;
}

static Quantities pack_mocap(SnScratch *scratch, const SnModel *m) {
  Quantities q = begin(scratch, m->nmocap);
  for (int b = 0; b < m->nbody; b++)
    if (m->body_mocapid[b] >= 0)
      add(&q, sn_model_name(m, SN_NAME_BODY, b), 7 * m->body_mocapid[b], 7, "m, quaternion", NULL);
  return q;
}

Sinew__V1__ModelDescription *sn_pack_model(SnScratch *scratch, const SnLoadedModel *loaded, const SnModel *m) {
  Sinew__V1__ModelDescription *d = sn_scratch_alloc(scratch, sizeof *d);
  if (!d) return NULL;
  sinew__v1__model_description__init(d);
  d->model = loaded->name;
  d->file = loaded->file;
  d->timestep = (double)m->opt.timestep;
  d->nq = (uint32_t)m->nq;
  d->nv = (uint32_t)m->nv;
  d->na = (uint32_t)m->na;
  d->nu = (uint32_t)m->nu;
  d->nmocap = (uint32_t)m->nmocap;
  d->nhistory = (uint32_t)sn_past_size(m);
  Quantities qpos = pack_qpos(scratch, m), qvel = pack_qvel(scratch, m), act = pack_act(scratch, m);
  Quantities ctrl = pack_ctrl(scratch, m), mocap = pack_mocap(scratch, m);
  d->qpos = qpos.list, d->n_qpos = qpos.n;
  d->qvel = qvel.list, d->n_qvel = qvel.n;
  d->act = act.list, d->n_act = act.n;
  d->ctrl = ctrl.list, d->n_ctrl = ctrl.n;
  d->mocap = mocap.list, d->n_mocap = mocap.n;
  return d;
}

static void pack_measure_descriptions(SnScratch *scratch, const SnTask *task, Sinew__V1__TaskDescription *d) {
  size_t n = (size_t)task->nmeasure;
  Sinew__V1__MeasureDescription **list = sn_scratch_alloc(scratch, (n + 1) * sizeof *list);
  Sinew__V1__MeasureDescription *items = sn_scratch_alloc(scratch, (n + 1) * sizeof *items);
  if (!list || !items) return;
  for (size_t i = 0; i < n; i++) {
    sinew__v1__measure_description__init(&items[i]);
    items[i].name = task->measure[i].name;
    items[i].below = task->measure[i].below;
    items[i].during = task->measure[i].during;
    list[i] = &items[i];
  }
  d->measures = list;
  d->n_measures = n;
}

static Sinew__V1__Plant *pack_plant(SnScratch *scratch, const SnTaskPlant *from) {
  Sinew__V1__Plant *plant = sn_scratch_alloc(scratch, sizeof *plant);
  if (!plant) return NULL;
  sinew__v1__plant__init(plant);
  plant->solref = from->solref;
  plant->n_solref = (size_t)from->nsolref;
  plant->solimp = from->solimp;
  plant->n_solimp = (size_t)from->nsolimp;
  return plant;
}

Sinew__V1__TaskDescription *sn_pack_task(SnScratch *scratch, const SnLoadedModel *loaded, const SnPlanner *planner) {
  const SnTask *task = sn_planner_task(planner);
  const SnModel *m = sn_planner_model(planner);
  Sinew__V1__TaskDescription *d = sn_scratch_alloc(scratch, sizeof *d);
  if (!d) return NULL;
  sinew__v1__task_description__init(d);
  d->task = task->name;
  d->text = task->description;
  d->model = sn_pack_model(scratch, loaded, m);
  d->initial = sn_pack_state(scratch, m, sn_planner_initial(planner));
  d->settings = sn_pack_settings(scratch, &task->settings);
  d->terms = sn_pack_term_descriptions(scratch, m, sn_planner_cost(planner), task, &d->n_terms);
  d->plant = pack_plant(scratch, &task->plant);
  pack_measure_descriptions(scratch, task, d);
  return d;
}
