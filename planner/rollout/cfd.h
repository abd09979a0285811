// Contacts from distance (CFD, Paulus et al.) as a planner's settings and a task describe them: SnCfd of
// physics/world/world.h.
#ifndef SINEW_PLANNER_ROLLOUT_CFD_H_
#define SINEW_PLANNER_ROLLOUT_CFD_H_

#include "physics/world/world.h"
#include "planner/task/task.h"

// Which pairs of a model's list (cpair_geom) take part in a task: those of which a geom belongs to one of the bodies
// that the task names under cfd_bodies, or to what hangs on them; all pairs when it names none. (ncpair), to free; NULL
// and err when a name is not in the model or memory runs out.
unsigned char *sn_cfd_pairs(const SnTask *task, const SnModel *m, SnError *err);

// The contacts from distance that the settings ask for, `on` or not; pair: from sn_cfd_pairs, kept as a pointer.
SnCfd sn_cfd_settings(const SnSettings *s, const unsigned char *pair, bool on);

// Whether the two make the same worlds.
bool sn_cfd_equal(const SnCfd *a, const SnCfd *b);

// Whether rollouts, and whether derivatives, are taken with contacts from distance.
bool sn_cfd_forward(const SnSettings *s);
bool sn_cfd_backward(const SnSettings *s);

// Largest step of the impedance at touch over the pairs that take part: |cfd_touch - solimp[0]| as it acts; 0 when
// nothing jumps. A user should know of one.
double sn_cfd_jump(const SnModel *m, const SnCfd *cfd);

#endif
