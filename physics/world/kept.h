// Keeps what the way back through a step reads of a world in few bytes: world_kept.inc. Takes as many contacts, rows
// and numbers of the solver's factor as are in use. Runs on the host alone.
//
// A world is kept in three parts: what does not depend on contacts, contacts with their rows, and the solution after
// sn_solve_finish. A view is a world whose fields point to kept ones. A whole world lends it the others: the state,
// which a view's owner writes, and scratch.
#ifndef SINEW_PHYSICS_WORLD_KEPT_H_
#define SINEW_PHYSICS_WORLD_KEPT_H_

#include "physics/world/world.h"

typedef enum SnKeptPart { SN_KEPT_BODY, SN_KEPT_ROWS, SN_KEPT_SOLUTION } SnKeptPart;

// Returns whether the way back can go through a kept world. Runge-Kutta makes worlds of its own on its way, and
// `implicit` writes velocities into the one that it has.
bool sn_world_can_keep(const SnModel *m);
// Returns whether the part SN_KEPT_BODY is the same whatever the contacts are.
bool sn_world_body_stands_alone(const SnModel *m);
// Returns the bytes of a part of this world, a multiple of 64.
size_t sn_world_kept_size(const SnModel *m, const SnWorld *w, SnKeptPart part);
// Returns about what a world takes at most in all three parts, unless it has very many rows.
size_t sn_world_kept_most(const SnModel *m);
// Copies a part of a world to memory of that size, 64-byte aligned.
void sn_world_keep(const SnModel *m, const SnWorld *w, SnKeptPart part, void *to);
// Points the fields of a part of w to what sn_world_keep has written. SN_KEPT_SOLUTION needs SN_KEPT_ROWS first.
void sn_world_view(const SnModel *m, SnWorld *w, SnKeptPart part, void *kept);

#endif
