// Chosen steps: from a state of a rollout to the next, and back, by Runge-Kutta steps of chosen sizes
// (physics/step/horizon.h). They take the place of the step of the model's integrator. On the CPU, on one lane.
//
// Controls are held between two states, so one integration over the horizon has a step that ends at each state anyway.
// Each stretch is a run of its own here. It depends on the state, the controls and the acceleration there alone. So the
// way back makes it again where it was not kept, to the same bits, and a rollout may pause at every state.
#ifndef SINEW_PLANNER_ROLLOUT_CHOSEN_STEP_H_
#define SINEW_PLANNER_ROLLOUT_CHOSEN_STEP_H_

#include "physics/step/horizon.h"
#include "planner/rollout/rollout_vjp.h"
#include "planner/task/settings.h"

// Returns whether the settings ask for chosen steps; then *to says how they are made.
bool sn_chosen_settings(const SnSettings *s, SnHorizonSettings *to);

// Makes what a thread needs for chosen steps of a model, which must stay; nothing is allocated later. back: for
// sn_chosen_step_vjp, too. Free it with sn_horizon_free. Returns NULL and sets err on failure.
SnHorizon *sn_chosen_create(const SnModel *m, const SnHorizonSettings *settings, bool back, SnError *err);

// Returns the model whose sn_forward gives the accelerations of the motion between states. It is `m`, but that of the
// steps where the integrator of `m` is `discrete`, whose accelerations are those of a whole step. h may be NULL: there
// are no chosen steps.
const SnModel *sn_chosen_model(const SnHorizon *h, const SnModel *m);

// Moves a world, whose stages have run, by `duration` [s] under its controls, in at most `most` steps, rejected ones
// included. *tried (may be NULL) gets how many there were. Returns false, and leaves the world, where these do not
// suffice or the motion diverges.
bool sn_chosen_step(SnHorizon *h, SnWorld *w, sn_real duration, int most, int *tried);

// Goes back over chosen step t of a rollout, from b->state_bar. kept: its run (sn_horizon_save_run); NULL: it is made
// again. Writes what comes of it into state_bar and ctrl_bar of `state`. Returns false where it is not finite.
bool sn_chosen_step_vjp(SnHorizon *h, const SnRolloutVjp *b, int t, const void *kept, const SnRolloutVjpState *state);

#endif
