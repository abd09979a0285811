// Small models in MJCF that together use every kind of element that the engine supports.
#ifndef SINEW_TESTS_SUPPORT_SMALL_MODELS_H_
#define SINEW_TESTS_SUPPORT_SMALL_MODELS_H_

enum { SN_SMALL_MODELS = 3 };

// Returns model i, 0 <= i < SN_SMALL_MODELS.
const char *sn_small_model(int i);
// Returns a model with the noslip solver and exact diagonals: a finger with friction loss that pushes a box along a
// floor.
const char *sn_slipping_model(void);
// Returns trees that sleep, fall asleep and are woken within 150 steps.
const char *sn_sleeping_model(void);
// Returns one more model, for the adjoint. It has tendons that branch, with armature, damping and a muscle, gravity
// compensation, and actuators of joints at their limits.
const char *sn_branching_model(void);
// Returns one more: bodies of every convex shape on a height field.
const char *sn_terrain_model(void);
// Returns one with rangefinders that meet a mesh and a height field, and a zone that is a mesh.
const char *sn_ray_model(void);

#endif
