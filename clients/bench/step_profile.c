#include "clients/bench/step_profile_private.h"

#include <stdio.h>
#include <stdlib.h>

#include "clients/base/statistics.h"
#include "clients/reference/mujoco_reference.h"
#include "physics/actuator/actuator.h"
#include "physics/collision/collision.h"
#include "physics/constraint/constraint.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/step.h"

typedef void Stage(const SnModel *m, SnWorld *w, SnLane *lane);

static const struct {
  const char *name;
  Stage *run;
} stages[] = {
    {"kinematics", sn_kinematics},
    {"com_pos", sn_com_pos},
    {"tendon", sn_tendon},
    {"make_M", sn_make_M},
    {"factor_M", sn_factor_M},
    {"collision", sn_collision},
    {"make_constraint", sn_make_constraint},
    {"transmission", sn_transmission},
    {"velocity", sn_velocity},
    {"passive", sn_passive},
    {"reference_constraint", sn_reference_constraint},
    {"bias", sn_bias},
    {"actuation", sn_actuation},
    {"solve", sn_solve},
    {"integrate", sn_integrate},
};
enum { STAGES = sizeof stages / sizeof *stages };

// Means over all states: each of our stages run once more on its own inputs, and MuJoCo's own timers [us]; counts of
// contacts, rows and iterations.
struct StepProfile {
  double ours[STAGES], theirs[mjNTIMER];
  double contacts, rows, iterations, mujoco_iterations;
};

static mjtNum timer_clock(void) { return sn_now_us(); }

// Adds what a step from MuJoCo's state takes.
static void add_step(StepProfile *p, SnOracle *o) {
  sn_oracle_copy_state(o);
  sn_forward(o->m, &o->w, &o->lane);
  p->contacts += o->w.ncon[0];
  p->rows += o->w.nefc[0];
  p->iterations += o->w.solver_niter[0];
  for (int i = 0; i < STAGES; ++i) {
    sn_oracle_copy_state(o);
    const double t = sn_now_us();
    stages[i].run(o->m, &o->w, &o->lane);
    p->ours[i] += sn_now_us() - t;
  }
  for (int i = 0; i < mjNTIMER; ++i) o->d->timer[i].duration = 0;
  mj_step(o->mj, o->d);
  for (int i = 0; i < o->d->nisland || i == 0; ++i) p->mujoco_iterations += i < mjNISLAND ? o->d->solver_niter[i] : 0;
  for (int i = 0; i < mjNTIMER; ++i) p->theirs[i] += o->d->timer[i].duration;
}

StepProfile *step_profile_create(const mjModel *mj, const mjtNum *state, int count) {
  StepProfile *p = calloc(1, sizeof *p);
  mjModel *copy = p ? mj_copyModel(NULL, mj) : NULL;
  SnOracle o;
  if (!copy || sn_oracle_open(&o, copy, NULL) != SN_OK) {
    free(p);
    return NULL;
  }
  const size_t size = (size_t)mj_stateSize(mj, mjSTATE_INTEGRATION);
  mjcb_time = timer_clock;
  for (int k = 0; k < count; ++k) {
    mj_setState(o.mj, o.d, state + (size_t)k * size, mjSTATE_INTEGRATION);
    add_step(p, &o);
  }
  mjcb_time = NULL;
  sn_oracle_free(&o);
  for (int i = 0; i < STAGES; ++i) p->ours[i] /= count;
  for (int i = 0; i < mjNTIMER; ++i) p->theirs[i] /= count;
  p->contacts /= count;
  p->rows /= count;
  p->iterations /= count;
  p->mujoco_iterations /= count;
  return p;
}

void step_profile_free(StepProfile *p) { free(p); }

void step_profile_add(cJSON *root, const StepProfile *p) {
  cJSON *ours = cJSON_AddObjectToObject(root, "sinew_stages_us"),
        *theirs = cJSON_AddObjectToObject(root, "mujoco_timers_us");
  for (int i = 0; i < STAGES; ++i) cJSON_AddNumberToObject(ours, stages[i].name, p->ours[i]);
  for (int i = 0; i < mjNTIMER; ++i) cJSON_AddNumberToObject(theirs, mjTIMERSTRING[i], p->theirs[i]);
  cJSON_AddNumberToObject(root, "contacts", p->contacts);
  cJSON_AddNumberToObject(root, "rows", p->rows);
  cJSON_AddNumberToObject(root, "sinew_iterations", p->iterations);
  cJSON_AddNumberToObject(root, "mujoco_iterations", p->mujoco_iterations);
}

void step_profile_print(const StepProfile *p) {
  printf("\n%.1f contacts, %.1f rows, %.2f Newton iterations (MuJoCo %.2f)\n\n", p->contacts, p->rows, p->iterations,
         p->mujoco_iterations);
  double sum = 0;
  for (int i = 0; i < STAGES; ++i) sum += p->ours[i];
  for (int i = 0; i < STAGES; ++i)
    printf("  %-22s %8.2f us  %5.1f %%\n", stages[i].name, p->ours[i], 100 * p->ours[i] / sum);
  printf("\nMuJoCo's own timers (a timer includes those of its parts)\n");
  for (int i = 0; i < mjNTIMER; ++i) printf("  %-22s %8.2f us\n", mjTIMERSTRING[i], p->theirs[i]);
}
