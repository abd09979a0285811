// Worlds that own their memory and begin with little of it. They have capacities for a few contacts and rows instead of
// the most that the model can make (nconmax, nefcmax, nJmax). A step that does not fit is undone, the world grows, and
// the step is taken again. Every result is, bit for bit, that of a world with all of the model's capacities.
//
// The memory is in two parts. One holds what does not depend on the capacities: state, frames, forces, accelerations,
// cfd, warn. It stays where it is, so views of it are good as long as the world lives. The other one holds contacts,
// rows and their scratch (contact, efc_*, src_*, block_row, hessian_state) and is replaced when the world grows. Fetch
// those from `world` after every call. A world runs on the host, on one lane, in one thread at a time.
#ifndef SINEW_PHYSICS_STEP_GROWING_WORLD_H_
#define SINEW_PHYSICS_STEP_GROWING_WORLD_H_

#include "physics/world/adjoint.h"

// Lists the capacities that a world begins with, as far as the model has as many. Rows of equalities and of friction
// losses, which are always there, come on top of those for rows. Capacities that overflow double, up to the model's.
//
// Contacts, rows beside those, and entries of efc_J that models have under random controls, in the median and at most:
//   MyoHand 8, 43, 179 and 18, 85, 469; with two balls 10, 52, 258 and 19, 91, 492; with a die 11, 56, 276 and 29, 121,
//   1177; MyoArm 0, 14, 14 and 2, 20, 132. A heap of 16 boxes comes to 64 contacts and 322 rows.
enum { SN_GROWING_CONTACTS = 24, SN_GROWING_ROWS = 96, SN_GROWING_ENTRIES = 768 };
// Says how many pairs of geoms such a world collides at a time: on one lane, few take as long as many.
enum { SN_GROWING_PAIRS = 4 };

// Holds a world. The first four are for all to read; use `model`, not the caller's, wherever `world` goes.
typedef struct SnGrowingWorld {
  SnModel model;  // the caller's, whose arrays it shares, with the capacities that the world has now
  SnWorld world;
  SnLane lane;
  int grown;  // how often it has grown

  const SnModel *whole;  // the caller's model
  SnLaneShared lane_shared;
  SnAdjoint adjoint;     // lies in adjoint_memory
  void *fixed_memory;    // holds fields that stay, and `kept`
  void *growing_memory;  // holds fields that move
  void *adjoint_memory;  // NULL: not asked for since the world last grew
  void *kept;            // the fields of STATE before a step, which are one block of fixed_memory
  size_t kept_bytes;
} SnGrowingWorld;

// Makes a world at the model's reset state (sn_world_reset). The model must stay, and keep its options and what
// sn_model_need_all sets. The caller frees it with sn_growing_world_free. Returns NULL and sets err on failure:
// SN_ERR_MEMORY, SN_ERR_LIMIT.
SnGrowingWorld *sn_growing_world_create(const SnModel *m, SnError *err);
// Frees a world with its adjoint; NULL is allowed.
void sn_growing_world_free(SnGrowingWorld *g);

// Returns the bytes that the world takes, with its adjoint.
size_t sn_growing_world_bytes(const SnGrowingWorld *g);

// Goes on with another view of its model (sn_model_view_all), which must stay from now on.
void sn_growing_world_set_model(SnGrowingWorld *g, const SnModel *m);

// Takes one time step, as sn_step does. SN_WARN_CONTACT_FULL and SN_WARN_EFC_FULL mean the model's own capacities.
// Returns SN_ERR_MEMORY and sets err where the world cannot grow: the state and warn are those before the call.
SnCode sn_growing_world_step(SnGrowingWorld *g, SnError *err);
// Takes the last step back: state and controls are those before it, bit for bit. Outputs and warn stay.
void sn_growing_world_undo(SnGrowingWorld *g);
// Runs all stages without integration, as sn_forward does. Errors are those of sn_growing_world_step.
SnCode sn_growing_world_forward(SnGrowingWorld *g, SnError *err);

// Takes the step that sn_growing_world_forward has begun, called just before: both together are sn_growing_world_step,
// bit for bit. The accelerations must be finite. Errors are those of sn_growing_world_step.
SnCode sn_growing_world_integrate(SnGrowingWorld *g, SnError *err);

// Returns the world's adjoint, good until the world grows. The first call makes it, and so does the first one after the
// world grew: all zero. Returns NULL and sets err on failure: SN_ERR_MEMORY.
SnAdjoint *sn_growing_world_adjoint(SnGrowingWorld *g, SnError *err);
// Grows where the adjoint of a step did not fit: that of RK4 evaluates further states. Call it behind sn_step_vjp and
// sn_step_jacobian, at the state that sn_growing_world_forward has evaluated last. Sets *again when the world has
// grown: the adjoint is to be fetched and run again. The state has been evaluated anew then, to the same bits. Errors
// are those of sn_growing_world_step.
SnCode sn_growing_world_settle(SnGrowingWorld *g, bool *again, SnError *err);

#endif
