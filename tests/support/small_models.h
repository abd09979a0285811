// Small models in MJCF that together use every kind of element that the engine supports.
#ifndef SINEW_TESTS_SUPPORT_SMALL_MODELS_H_
#define SINEW_TESTS_SUPPORT_SMALL_MODELS_H_

enum { SN_ZOO_MODELS = 3 };

// Model i, 0 <= i < SN_ZOO_MODELS.
const char *sn_zoo_model(int i);
// One more, for the adjoint: tendons that branch, with armature, damping and a muscle, gravity compensation and
// actuators of joints at their limits.
const char *sn_zoo_branches(void);

#endif
