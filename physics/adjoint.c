#include "physics/adjoint.h"

#include <string.h>

enum { ADJOINT_ALIGN = 64 };

size_t sn_adjoint_layout(const SnModel *m, SnAdjoint *a, void *base) {
  size_t offset = 0;
  char *p = base;
#define SN_FIELD(group, type, name, rows, cols)             \
  if (p) a->name = (type *)(void *)(p + offset);            \
  offset += sizeof(type) * (size_t)(rows) * (size_t)(cols); \
  offset = (offset + ADJOINT_ALIGN - 1) / ADJOINT_ALIGN * ADJOINT_ALIGN;
#include "physics/adjoint_fields.inc"
#undef SN_FIELD
  return offset;
}

size_t sn_adjoint_size(const SnModel *m) { return sn_adjoint_layout(m, NULL, NULL); }

void sn_adjoint_init(const SnModel *m, SnAdjoint *a, void *memory) {
  memset(memory, 0, sn_adjoint_size(m));
  sn_adjoint_layout(m, a, memory);
}
