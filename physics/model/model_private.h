// Between the files of the model: the parts of sn_model_check (model_check*.c) and of sn_model_setup (setup_*.c).
#ifndef SINEW_PHYSICS_MODEL_MODEL_PRIVATE_H_
#define SINEW_PHYSICS_MODEL_MODEL_PRIVATE_H_

#include "physics/model/model.h"

// ---- checks ----

// Checks the sizes against their caps. Returns SN_OK, or SN_ERR_LIMIT and a text that names the size.
SnCode sn_model_check_sizes(const SnModel *m, SnError *err);

// Checks bodies, joints, degrees of freedom and patterns, as a part of sn_model_check.
SnCode sn_model_check_tree(const SnModel *m, SnError *err);
// Checks everything else, as a part of sn_model_check.
SnCode sn_model_check_parts(const SnModel *m, SnError *err);

// Writes one complaint, "model: body_parentid[3] is 7: must come before its child". Returns SN_ERR_FORMAT.
SnCode sn_model_complain(SnError *err, const char *field, int i, double value, const char *rule);

// ---- tables made at load ----

// Makes a copy without what sn_model_setup makes. Returns NULL and err when out of memory.
SnModel *sn_model_copy_arrays(const SnModel *m, SnError *err);

// Allocates memory that lives as long as the model, zeroed, 64-byte aligned. Returns NULL when out of memory. Only the
// parts of sn_model_setup call it.
void *sn_model_alloc(SnModel *m, size_t bytes);

// Compute one part each of the sizes and arrays of setup_sizes.inc and setup_fields.inc, in setup_<part>.c. model.c
// calls them in this order.
// Returns the body of an entry of a tendon's path; -1: a pulley, which is on none.
int sn_wrap_body(const SnModel *m, int entry);

SnCode sn_setup_tree(SnModel *m, SnError *err);        // links, levels, inertia pattern
SnCode sn_setup_collision(SnModel *m, SnError *err);   // pair list, nconmax
SnCode sn_setup_tendon(SnModel *m, SnError *err);      // segments of paths, which dofs stretch them
SnCode sn_setup_pose(SnModel *m, SnError *err);        // frames in links, masses of links
SnCode sn_setup_passive(SnModel *m, SnError *err);     // springs, dampers, gravity compensation
SnCode sn_setup_fluid(SnModel *m, SnError *err);       // parts that a fluid pushes
SnCode sn_setup_actuator(SnModel *m, SnError *err);    // sparsity of actuator_moment
SnCode sn_setup_needs(SnModel *m, SnError *err);       // frames and points that a step computes
SnCode sn_setup_ray(SnModel *m, SnError *err);         // trees of triangles
SnCode sn_setup_sensor(SnModel *m, SnError *err);      // tendons that act on sensors of force
SnCode sn_setup_constraint(SnModel *m, SnError *err);  // nefcmax, nJmax

#endif
