// Where a planner's rollouts are computed, and what happens when that device is lost: the planner loads itself on the
// fallback and goes on. What it keeps, controls, state, settings, lies with the planner; what is lost is the work under
// way and what Adam remembers.
#include <stdio.h>

#include "planner/planner_private.h"

static SnCode load(SnPlanner *p, SnBackend *b, SnError *err) {
  SnBackendModel *device = sn_backend_load_as(b, p->m, p->in_force.cost, p->horizon, &p->def.settings, err);
  if (!device) return err->code;
  p->device.backend = b;
  p->device.model = device;
  return SN_OK;
}

SnCode sn_planner_load(SnPlanner *p, SnError *err) {
  SnBackend *b = p->def.backend, *fallback = p->def.fallback;
  char text[200];
  if (!fallback || !sn_backend_lost(b, text, sizeof text)) {
    const SnCode code = load(p, b, err);
    if (code == SN_OK || !fallback || !sn_backend_lost(b, text, sizeof text)) return code;
  }
  p->device.lost = true;
  return load(p, fallback, err);
}

// Moves to the fallback; on failure everything stays where it is.
static SnCode move(SnPlanner *p, SnError *err) {
  SnBackend *from = p->device.backend;
  SnBackendModel *left = p->device.model;
  if (!p->def.fallback || from == p->def.fallback) return sn_fail(err, SN_ERR_STATE, "there is no fallback");
  SnCode code = load(p, p->def.fallback, err);
  if (code != SN_OK) return code;
  if (p->iterations.optimizer) code = sn_planner_reserve(p, p->iterations.optimizer, &p->in_force.settings, err);
  if (code != SN_OK) {
    sn_backend_unload(p->device.backend, p->device.model);
    p->device.backend = from;
    p->device.model = left;
    return code;
  }
  sn_planner_evaluate_move(p);
  sn_backend_unload(from, left);
  return SN_OK;
}

bool sn_planner_watch(SnPlanner *p) {
  char reason[120];
  SnError err = {0};
  if (p->device.stranded || !sn_backend_lost(p->device.backend, reason, sizeof reason)) return !p->device.stranded;
  sn_planner_drop_batch(p);
  sn_planner_forget_plan(p);
  p->device.lost = true;
  p->iterations.measured = false;
  const char *name = sn_backend_name(p->device.backend);
  p->device.stranded = move(p, &err) != SN_OK;
  if (p->device.stranded)
    snprintf(p->result.remark, sizeof p->result.remark, "%s is lost: %s; %.80s", name, reason, err.text);
  else
    snprintf(p->result.remark, sizeof p->result.remark, "%s is lost: %s; %s goes on", name, reason,
             sn_backend_name(p->device.backend));
  return !p->device.stranded;
}
