// Gives an oracle's engine, not its MuJoCo, contacts of the sigmoid.
#ifndef SINEW_TESTS_SUPPORT_SIGMOID_MODEL_H_
#define SINEW_TESTS_SUPPORT_SIGMOID_MODEL_H_

#include <math.h>
#include <stdlib.h>

#include "tests/support/oracle.h"

// Makes the model and the world of an oracle anew with these options.
static inline void sn_oracle_set_options(SnOracle *o, const SnOption *opt) {
  const sn_real none[SN_NIMP] = {(sn_real)NAN, (sn_real)NAN, (sn_real)NAN, (sn_real)NAN, (sn_real)NAN};
  SnError err = {0};
  SnModel *m = sn_model_with_options(o->m, opt, none, none, &err);
  if (!m) fail_msg("%s", err.text);
  sn_model_free(o->m);
  free(o->memory);
  o->m = m;
  o->memory = aligned_alloc(64, sn_world_size(m));
  assert_non_null(o->memory);
  sn_world_init(m, &o->w, o->memory);
}

// Does it for contacts of this width [m], stiffness and restitution.
static inline void sn_oracle_sigmoid(SnOracle *o, double width, double stiffness, double restitution) {
  SnOption opt = o->m->opt;
  opt.contact = SN_CONTACT_SIGMOID;
  opt.contact_width = (sn_real)width;
  opt.contact_stiffness = (sn_real)stiffness;
  opt.contact_restitution = (sn_real)restitution;
  sn_oracle_set_options(o, &opt);
}

#endif
