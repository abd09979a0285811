// Contacts from distance as a planner's settings and a task describe them: the softened world (physics/world/world.h,
// SnSoft).
#ifndef SINEW_PLANNER_ROLLOUT_CFD_H_
#define SINEW_PLANNER_ROLLOUT_CFD_H_

#include "physics/world/world.h"
#include "planner/task/task.h"

// Which pairs of a model's list (cpair_geom) take part in a task: those of which a geom belongs to one of the bodies
// that the task names under cfd_bodies, or to what hangs on them; all pairs when it names none. (ncpair), to free; NULL
// and err when a name is not in the model or memory runs out.
unsigned char *sn_soft_pairs(const SnTask *task, const SnModel *m, SnError *err);

// The softening that the settings ask for, `on` or not; pair: from sn_soft_pairs, kept as a pointer.
SnSoft sn_soft_settings(const SnSettings *s, const unsigned char *pair, bool on);

// Whether two softenings make the same worlds.
bool sn_soft_equal(const SnSoft *a, const SnSoft *b);

// Whether rollouts, and whether derivatives, are taken in the softened world.
bool sn_soft_forward(const SnSettings *s);
bool sn_soft_backward(const SnSettings *s);

// Largest step of the impedance at touch over the pairs that take part: |cfd_touch - solimp[0]| as it acts; 0 when
// nothing jumps. A user should know of one.
double sn_soft_jump(const SnModel *m, const SnSoft *soft);

#endif
