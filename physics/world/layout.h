// Layouts: where the fields of a world or an adjoint lie. They take one block of memory; worlds that grow take two. A
// layout is made on the host, once for a model. Binding fields to memory by it is cheap, and done wherever the world is
// stepped.
#ifndef SINEW_PHYSICS_WORLD_LAYOUT_H_
#define SINEW_PHYSICS_WORLD_LAYOUT_H_

#include "physics/world/adjoint.h"

// Gives what fields begin at multiples of [bytes]: cache lines, or what any access needs, where every byte counts.
enum { SN_LAYOUT_LINE = 64, SN_LAYOUT_DENSE = 16 };

// Says where each field lies.
typedef struct SnLayout {
  size_t bytes, growing;             // sizes of both memories, multiples of 64; growing 0: there is none
  uint32_t place[SN_LAYOUT_FIELDS];  // offset of each field, in the order of its list; bit 0: in the growing memory
} SnLayout;

// Lays out a world in one memory, with fields at multiples of `align` bytes. With SN_LAYOUT_LINE the layout is that of
// sn_world_layout. Returns SN_ERR_LIMIT when it takes 4 GiB or more.
SnCode sn_world_place(const SnModel *m, size_t align, SnLayout *layout, SnError *err);
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
// Lays out a world of which two memories of the host hold one part each. The growing one has the fields whose size
// depends on the capacities for contacts and rows (nconmax, nefcmax, nJmax). All other fields have places that do not
// depend on them: step/growing_world.h replaces the one memory and keeps the other. Errors are those of sn_world_place.
SnCode sn_world_place_growing(const SnModel *m, SnLayout *layout, SnError *err);
// Lays out an adjoint as sn_world_place does a world, with SN_LAYOUT_LINE.
SnCode sn_adjoint_place(const SnModel *m, SnLayout *layout, SnError *err);

// Describes a field of a layout, for people and tests.
typedef struct SnLayoutField {
  const char *name;
  size_t bytes;
} SnLayoutField;
// Describe field i of the list that a layout is in the order of. Return false behind the last one.
bool sn_world_field(const SnModel *m, int i, SnLayoutField *field);
bool sn_adjoint_field(const SnModel *m, int i, SnLayoutField *field);

#if !defined(__CUDACC__)
// Point the fields into memory (64-byte aligned; growing may be NULL where the layout has none). One lane calls them.
void sn_world_bind(const SnLayout *layout, SnWorld *w, void *memory, void *growing);
void sn_adjoint_bind(const SnLayout *layout, SnAdjoint *a, void *memory);
#endif

#endif
