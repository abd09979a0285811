#include "planner/rollout/cfd.h"

#include <math.h>
#include <stdlib.h>

// True when body b is `top` or hangs on it.
static bool hangs_on(const SnModel *m, int b, int top) {
  while (b > top) b = m->body_parentid[b];
  return b == top;
}

unsigned char *sn_cfd_pairs_of(const SnModel *m, const int *body, int n, SnError *err) {
  unsigned char *pair = calloc((size_t)m->ncpair + 1, 1), *chosen = calloc((size_t)m->nbody, 1);
  if (!pair || !chosen) {
    sn_fail(err, SN_ERR_MEMORY, "contacts from distance: out of memory");
    free(pair);
    free(chosen);
    return NULL;
  }
  for (int k = 0; k < n; ++k)
    for (int b = 0; b < m->nbody; ++b) chosen[b] |= hangs_on(m, b, body[k]);
  for (int p = 0; p < m->ncpair; ++p) {
    const int *g = m->cpair_geom + 2 * p;
    pair[p] = n == 0 || chosen[m->geom_bodyid[g[0]]] || chosen[m->geom_bodyid[g[1]]];
  }
  free(chosen);
  return pair;
}

unsigned char *sn_cfd_pairs(const SnTask *task, const SnModel *m, SnError *err) {
  int *body = calloc((size_t)task->ncfd_body + 1, sizeof *body);
  char why[SN_KNOWN_LIST];
  SnIssues issues;
  sn_issues_begin(&issues, task->file, err);
  if (!body) sn_issue_memory(&issues, (SnPlace){0});
  for (int k = 0; body && k < task->ncfd_body; ++k) {
    const SnNamedPlace *name = &task->cfd_body[k];
    body[k] = sn_model_find(m, SN_NAME_BODY, name->name);
    if (body[k] < 0)
      sn_issue(&issues, name->place, "cfd_bodies: %s", sn_model_no_name(m, SN_NAME_BODY, name->name, why, sizeof why));
  }
  unsigned char *pair =
      sn_issues_end(&issues, SN_ERR_FORMAT) == SN_OK ? sn_cfd_pairs_of(m, body, task->ncfd_body, err) : NULL;
  free(body);
  return pair;
}

SnCfdSettings sn_cfd_settings(const SnSettings *s, const unsigned char *pair, bool on) {
  const SnCfdSettings cfd = {.on = on,
                             .surrogate = s->contact_gradient,
                             .friction = s->cfd_friction,
                             .solimp = {s->cfd_far, s->cfd_touch, s->cfd_reach, s->cfd_midpoint, s->cfd_power},
                             .width = s->cfd_softplus,
                             .smooth = s->cfd_smooth,
                             .pair = pair};
  return cfd;
}

bool sn_cfd_equal(const SnCfdSettings *a, const SnCfdSettings *b) {
  if (a->on != b->on) return false;
  if (!a->on) return true;
  bool same = a->friction == b->friction && a->width == b->width && a->smooth == b->smooth && a->pair == b->pair;
  for (int i = 0; i < SN_NIMP; ++i) same = same && a->solimp[i] == b->solimp[i];
  return same;
}

bool sn_cfd_forward(const SnSettings *s) { return s->cfd == SN_CFD_FORWARD; }
bool sn_cfd_backward(const SnSettings *s) { return s->cfd != SN_CFD_NONE; }

SnCode sn_cfd_check(const SnModel *m, const SnSettings *s, SnError *err) {
  if (!sn_cfd_backward(s)) return SN_OK;
  if (sn_has_sigmoid(m))
    return sn_fail(
        err, SN_ERR_UNSUPPORTED,
        "contacts from distance: option 'contact' of the model is sigmoid, whose contacts act from a distance "
        "themselves; switch cfd off, or set contact to mujoco");
  if (!m->unlisted) return SN_OK;
  return sn_fail(
      err, SN_ERR_UNSUPPORTED,
      "contacts from distance: the model has too many pairs of geoms (more than 200000) to look at all of them; "
      "switch cfd off, or let fewer geoms collide");
}

double sn_cfd_jump(const SnModel *m, const SnCfdSettings *cfd) {
  double jump = 0;
  for (int p = 0; p < m->ncpair; ++p) {
    if (cfd->pair && !cfd->pair[p]) continue;
    // d0 stands behind margin, friction, solref and solreffriction
    const double d0 = (double)m->conparam[SN_NCONPARAM * m->cpair_param[p] + 10];
    jump = fmax(jump, fabs(cfd->solimp[1] - fmin(fmax(d0, 1e-4), 0.9999)));
  }
  return jump;
}
