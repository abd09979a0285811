// Tendons and actuation backwards on several lanes: every field of the adjoint has the bits of one lane.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "physics/actuator/actuator.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/step.h"
#include "tests/support/actuator_models.h"
#include "tests/support/gradcheck.h"
#include "tests/support/lanes.h"

typedef struct Run {
  SnGradWorld *g;
  sn_real *bar;  // of everything that the stages take, nbar numbers
  int nbar;
} Run;

// Copies n numbers that follow in the list of bars, around and around.
static void take(const Run *r, int *at, sn_real *to, int n, const SnLane *lane) {
  for (int i = 0; i < n; ++i)
    if ((*at + i) % lane->n == lane->id) to[i] = r->bar[(*at + i) % r->nbar];
  *at += n;
}

static void backwards(SnLane *lane, void *arg) {
  const Run *r = arg;
  const SnModel *m = r->g->m;
  SnWorld *w = &r->g->w;
  SnAdjoint *a = &r->g->a;
  int at = 0;
  sn_motion_propagate(m, w, a, lane);
  sn_adjoint_clear(m, a, lane);
  take(r, &at, a->act_next_bar, m->na, lane);
  take(r, &at, a->act_dot_bar, m->na, lane);
  take(r, &at, a->ten_length_bar, m->ntendon, lane);
  take(r, &at, a->ten_rate_bar, SN_NMOTION * m->ntendon, lane);
  take(r, &at, a->trn_length_bar, m->nout, lane);
  take(r, &at, a->trn_rate_bar, SN_NMOTION * m->nout, lane);
  SN_FOR(i, 3 * *w->ncon) a->con_pos_bar[i] = 0;
  SN_FOR(i, 9 * *w->ncon) a->con_frame_bar[i] = 0;
  SN_SYNC(lane);
  sn_next_activation_vjp(m, w, a, lane, m->opt.timestep);
  sn_next_bristles_vjp(m, w, a, lane, m->opt.timestep);
  sn_actuation_vjp(m, w, a, lane);
  sn_transmission_vjp(m, w, a, lane);
  sn_tendon_vjp(m, w, a, lane);
  sn_kinematics_vjp(m, w, a, lane);
}

static void same_bits(const char *model, const char *field, const void *a, const void *b, size_t bytes) {
  if (bytes && memcmp(a, b, bytes) != 0) fail_msg("%s: %s depends on the number of lanes", model, field);
}

static void check(SnOracle *o, const char *name) {
  const SnModel *m = o->m;
  SnGradWorld one, many;
  Run r = {&one, NULL, 997};
  r.bar = calloc((size_t)r.nbar, sizeof *r.bar);
  assert_non_null(r.bar);
  for (int i = 0; i < r.nbar; ++i) r.bar[i] = (sn_real)sn_oracle_uniform(o);
  sn_grad_world_init(&one, o);
  sn_grad_world_init(&many, o);
  SnGradWorld *world[2] = {&one, &many};
  for (int sample = 0; sample < 4; ++sample) {
    const uint64_t rng = o->rng;
    for (int k = 0; k < 2; ++k) {
      o->rng = rng;
      sn_oracle_randomize(o, 1);
      sn_grad_world_sample(world[k]);
      sn_grad_world_move(world[k], NULL);
      sn_forward(m, &world[k]->w, &world[k]->lane);
      sn_grad_world_motions(world[k]);
      r.g = world[k];
      sn_lanes_run(k == 0 ? 1 : 2 + sample, backwards, &r);
    }
#define SN_ADJOINT_FIELD(group, type, field, rows, cols) \
  same_bits(name, #field, one.a.field, many.a.field, sizeof(type) * (size_t)(rows) * (size_t)(cols));
#include "physics/world/adjoint_fields.inc"
#undef SN_ADJOINT_FIELD
  }
  free(r.bar);
  sn_grad_world_free(&one);
  sn_grad_world_free(&many);
}

static void xml_models(void **state) {
  (void)state;
  char adhesion[2000];
  snprintf(adhesion, sizeof adhesion, sn_adhesion_xml, "pyramidal");
  const char *const models[] = {sn_tendon_xml, sn_wrap_xml,        sn_actuator_xml, sn_controller_xml,
                                sn_motor_xml,  sn_orientation_xml, adhesion};
  for (size_t i = 0; i < sizeof models / sizeof *models; ++i) {
    char name[20];
    snprintf(name, sizeof name, "model %d", (int)i);
    SnOracle o;
    sn_oracle_load_string(&o, models[i]);
    check(&o, name);
    sn_oracle_free(&o);
  }
}

static void hand(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_myosuite(&o, "envs/myo/assets/hand/myohand_baoding.xml");
  check(&o, "myohand");
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(xml_models), cmocka_unit_test(hand)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
