// Worlds of the states of one rollout, kept for the way back (physics/world/kept.h), and its chosen steps. A rollout
// writes them as it goes; what does not fit is made again from the state. The bits are the same.
#ifndef SINEW_PLANNER_ROLLOUT_WORLD_STORE_H_
#define SINEW_PLANNER_ROLLOUT_WORLD_STORE_H_

#include "physics/step/horizon.h"
#include "planner/rollout/rollout_vjp.h"

typedef struct SnWorldStore SnWorldStore;

// Reserves `bytes` for the worlds of max_step + 1 states; nothing is allocated later. Returns NULL when out of memory.
SnWorldStore *sn_world_store_create(int max_step, size_t bytes);
void sn_world_store_free(SnWorldStore *s);
// Returns how many bytes a store needs for all worlds of such rollouts, unless there are very many contacts.
size_t sn_world_store_size(const SnModel *m, int max_step);
// Forgets all worlds. Keeps only what does not depend on contacts from now on, if the way back makes them anew.
void sn_world_store_clear(SnWorldStore *s, bool contacts_made_anew);

// Keeps the world of state t, whose stages have run, and finishes its solution, unless there is no room left. The step
// itself may have been taken; of the world sn_solve_again's fields are changed.
void sn_world_store_keep(SnWorldStore *s, const SnModel *m, SnLane *lane, SnWorld *w, int t);
// Keeps the chosen step from state t, the last run of h, unless there is no room left.
void sn_world_store_keep_run(SnWorldStore *s, const SnHorizon *h, int t);
// Returns that run, for sn_horizon_load_run; NULL: it is not kept.
const void *sn_world_store_run(const SnWorldStore *s, int t);
// Returns whether sn_world_store_view of state t computes nothing, unless contacts are from distance.
bool sn_world_store_whole(const SnWorldStore *s, int t);

// Makes `view` the world of state t as sn_rollout_vjp_recompute does, from kept fields; the others are those of `own`,
// a whole world. Returns false, having done nothing, where the world is not kept, or not of use to b.
bool sn_world_store_view(SnWorldStore *s, const SnModel *m, SnLane *lane, const SnRolloutVjp *b, int t, SnWorld *own,
                         SnWorld *view);

#endif
