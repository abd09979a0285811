// Layouts: where the fields of a world or an adjoint lie. They take one block of memory, or two: as far as fields fit,
// shared memory of a GPU's block, and global memory for the rest. Worlds that grow take two as well. A layout is made
// on the host, once for a model and a size of shared memory. Binding fields to memory by it is cheap, and done wherever
// the world is stepped.
#ifndef SINEW_PHYSICS_WORLD_LAYOUT_H_
#define SINEW_PHYSICS_WORLD_LAYOUT_H_

#include "physics/world/adjoint.h"

enum { SN_LAYOUT_FIELDS = 192 };  // capacity; layout.c asserts that there is enough

// Says where each field lies.
typedef struct SnLayout {
  size_t shared, global;             // bytes of each memory, multiples of 64
  uint32_t place[SN_LAYOUT_FIELDS];  // offset of each field, in the order of its list; bit 0: in the shared memory
} SnLayout;

// Lays out a world with at most `shared` bytes of shared memory: the fields that are touched most often for their size
// (layout_ranks.inc). With shared 0 the layout is that of sn_world_layout. Returns SN_ERR_LIMIT when it takes 4 GiB or
// more.
SnCode sn_world_place(const SnModel *m, size_t shared, SnLayout *layout, SnError *err);
// Gives capacities of a world that are lower than the model's own.
typedef struct SnWorldLimit {
  int contacts;
  int rows, entries;  // constraint rows and entries of efc_J
  int pairs;          // pairs that the narrow phase takes at a time; no result depends on it
} SnWorldLimit;

// Adds rows and entries of equalities and friction losses, which are always there. Takes src_size and src_nnz of the
// model as `size` and `nnz`; its own arrays are not looked at.
void sn_world_limit_add(const SnModel *m, const int *size, const int *nnz, SnWorldLimit *limit);
// Lowers the capacities in the header of a model that are larger; its arrays are not looked at. A world that has more
// then is told of by SN_WARN_CONTACT_FULL and SN_WARN_EFC_FULL.
void sn_world_limit(SnModel *m, const SnWorldLimit *limit);
// Lays out a world of which two memories of the host hold one part each. The `shared` one has the fields whose size
// depends on the capacities for contacts and rows (nconmax, nefcmax, nJmax). All other fields have places that do not
// depend on them: step/growing_world.h replaces the one memory and keeps the other. Errors are those of sn_world_place.
SnCode sn_world_place_growing(const SnModel *m, SnLayout *layout, SnError *err);
// Lays out an adjoint as sn_world_place does a world.
SnCode sn_adjoint_place(const SnModel *m, size_t shared, SnLayout *layout, SnError *err);

// Describes a field of a layout, for people and tests.
typedef struct SnLayoutField {
  const char *name;
  size_t bytes;
  int rank;  // from layout_ranks.inc: the higher, the sooner in shared memory
} SnLayoutField;
// Describe field i of the list that a layout is in the order of. Return false behind the last one.
bool sn_world_field(const SnModel *m, int i, SnLayoutField *field);
bool sn_adjoint_field(const SnModel *m, int i, SnLayoutField *field);

// Point the fields into memory (both 64-byte aligned; shared may be NULL where the layout needs none). One lane calls
// them.
SN_FUNC void sn_world_bind(const SnLayout *layout, SnWorld *w, void *shared, void *global);
SN_FUNC void sn_adjoint_bind(const SnLayout *layout, SnAdjoint *a, void *shared, void *global);

#endif
