// Contacts from distance (CFD, Paulus et al.) as a planner's settings and a task describe them: SnCfd of
// physics/world/world.h.
#ifndef SINEW_PLANNER_ROLLOUT_CFD_H_
#define SINEW_PLANNER_ROLLOUT_CFD_H_

#include "physics/world/world.h"
#include "planner/task/task.h"

// Holds an SnCfd as a backend is asked for it: in doubles, whatever it computes in.
typedef struct SnCfdSettings {
  int on;                     // 0: MuJoCo's contacts, and nothing below is read but `surrogate`
  int surrogate;              // 1: adjoints carry contact points rigidly
  int friction;               // 1: rows at a distance have the pair's own condim; 0: one frictionless row a pair
  double solimp[SN_NIMP];     // impedance where bodies do not touch; solimp[2] is the reach [m], > 0
  double width;               // width of the softplus [m], > 0
  double smooth;              // length over which collision is smoothed [m]; 0: as it is
  const unsigned char *pair;  // 1: pair takes part (ncpair); NULL: all do
} SnCfdSettings;

// Returns the same in the number type of the engine; NULL: off. `pair` is kept as a pointer.
static inline SnCfd sn_cfd(const SnCfdSettings *s) {
  SnCfd to = {0};
  if (!s) return to;
  to = (SnCfd){.on = s->on,
               .surrogate = s->surrogate,
               .friction = s->friction,
               .smooth = (float)s->smooth,
               .width = (sn_real)s->width,
               .pair = s->pair};
  for (int k = 0; k < SN_NIMP; ++k) to.solimp[k] = (sn_real)s->solimp[k];
  return to;
}

// Returns whether a model can have the contacts from distance that settings ask for. Returns SN_ERR_UNSUPPORTED where
// it has too many pairs of geoms to list them, or contacts of the sigmoid.
SnCode sn_cfd_check(const SnModel *m, const SnSettings *s, SnError *err);

// Returns a flag for each pair of a model's list, cpair_geom: whether it takes part when these n bodies do; (ncpair),
// to free. A pair does when one of its geoms belongs to such a body, or to what hangs on it. All pairs do when n is 0.
// Returns NULL and err when out of memory.
unsigned char *sn_cfd_pairs_of(const SnModel *m, const int *body, int n, SnError *err);

// Returns such flags for the bodies that a task names under cfd_bodies. Returns NULL and err when a name is not in the
// model or memory runs out.
unsigned char *sn_cfd_pairs(const SnTask *task, const SnModel *m, SnError *err);

// Returns the contacts from distance that the settings ask for, `on` or not. `pair`, from sn_cfd_pairs, is kept as a
// pointer.
SnCfdSettings sn_cfd_settings(const SnSettings *s, const unsigned char *pair, bool on);

// Returns whether the two make the same worlds.
bool sn_cfd_equal(const SnCfdSettings *a, const SnCfdSettings *b);

// Returns whether rollouts are taken with contacts from distance.
bool sn_cfd_forward(const SnSettings *s);
// Returns whether derivatives are.
bool sn_cfd_backward(const SnSettings *s);

// Returns the largest step of the impedance at touch over the pairs that take part: |cfd_touch - solimp[0]| as it acts;
// 0 when nothing jumps. A user should know of one.
double sn_cfd_jump(const SnModel *m, const SnCfdSettings *cfd);

#endif
