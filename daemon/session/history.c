#include "daemon/session/session.h"

#include <stdlib.h>
#include <string.h>

SnVersion *sn_version_capture(const SnPlanner *planner, const SnSessionSettings *session) {
  const SnCost *cost = sn_planner_cost(planner);
  SnVersion *v = calloc(1, sizeof *v);
  if (!v) return NULL;
  v->planner = *sn_planner_settings(planner);
  v->session = *session;
  v->nterm = cost->nterm;
  v->term = calloc((size_t)cost->nterm + 1, sizeof *v->term);
  v->target = calloc((size_t)cost->ntarget + 1, sizeof *v->target);
  if (!v->term || !v->target) {
    sn_version_free(v);
    return NULL;
  }
  int used = 0;
  for (int i = 0; i < v->nterm; i++) {
    const bool set = sn_cost_target_is_set(cost, i);
    const int size = sn_cost_target_size(cost, i);
    v->term[i] = (SnVersionTerm){(double)cost->weight[i], (double)cost->terminal[i], set ? used : -1, size};
    if (!set) continue;
    sn_cost_target(cost, i, 0, v->target + used);
    used += size;
  }
  return v;
}

void sn_version_free(SnVersion *v) {
  if (!v) return;
  free(v->term);
  free(v->target);
  free(v);
}

SnCode sn_version_restore(const SnVersion *v, SnPlanner *planner, SnError *err) {
  SnCode code = sn_planner_configure(planner, &v->planner, err);
  for (int i = 0; code == SN_OK && i < v->nterm; i++) {
    const SnVersionTerm *t = &v->term[i];
    const char *name = sn_cost_name(sn_planner_cost(planner), i);
    code = sn_planner_set_weight(planner, name, t->weight, t->terminal, err);
    if (code != SN_OK) break;
    const bool set = t->target >= 0;
    code = sn_planner_set_target(planner, name, set ? v->target + t->target : NULL, set ? t->size : 0, err);
  }
  return code;
}

void sn_history_add(SnHistory *h, SnVersion *v, SnPlanner *planner) {
  v->number = ++h->newest;
  sn_version_free(h->version[v->number % SN_HISTORY]);
  h->version[v->number % SN_HISTORY] = v;
  sn_planner_set_version(planner, v->number);
}

const SnVersion *sn_history_find(const SnHistory *h, uint64_t number) {
  if (number == 0) number = h->newest;
  const SnVersion *v = h->version[number % SN_HISTORY];
  return v && v->number == number ? v : NULL;
}

uint64_t sn_history_oldest(const SnHistory *h) {
  const uint64_t dropped = h->newest > SN_HISTORY ? h->newest - SN_HISTORY : 0;
  return (dropped > h->before ? dropped : h->before) + 1;
}

void sn_history_free(SnHistory *h) {
  for (int i = 0; i < SN_HISTORY; i++) sn_version_free(h->version[i]);
  *h = (SnHistory){0};
}
