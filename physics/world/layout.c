// Memory of worlds and adjoints: fields in the order of their list.
#include "physics/world/layout.h"

static_assert((int)SN_NWORLD <= (int)SN_LAYOUT_FIELDS, "capacity of a layout");
static_assert((int)SN_NADJOINT <= (int)SN_LAYOUT_FIELDS, "capacity of a layout");

#if !defined(__CUDACC__)
typedef struct LayoutFields {
  int n;
  const char *name[SN_LAYOUT_FIELDS];
  uint64_t bytes[SN_LAYOUT_FIELDS];
} LayoutFields;

static void layout_add(LayoutFields *f, const char *name, size_t element, int rows, int cols) {
  f->name[f->n] = name;
  f->bytes[f->n++] = (uint64_t)element * (uint64_t)rows * (uint64_t)cols;
}

static void layout_world(const SnModel *m, LayoutFields *f) {
  f->n = 0;
#define SN_WORLD_FIELD(stage, type, name, rows, cols) layout_add(f, #name, sizeof(type), rows, cols);
#include "physics/world/world_fields.inc"
#undef SN_WORLD_FIELD
  layout_add(f, "warn", sizeof(int), 1, 1);
}

static void layout_adjoint(const SnModel *m, LayoutFields *f) {
  f->n = 0;
#define SN_ADJOINT_FIELD(group, type, name, rows, cols) layout_add(f, #name, sizeof(type), rows, cols);
#include "physics/world/adjoint_fields.inc"
#undef SN_ADJOINT_FIELD
}

#if !defined(SN_PACK)
static bool layout_field(const LayoutFields *f, int i, SnLayoutField *field) {
  if (i < 0 || i >= f->n) return false;
  *field = (SnLayoutField){f->name[i], (size_t)f->bytes[i]};
  return true;
}

bool sn_world_field(const SnModel *m, int i, SnLayoutField *field) {
  LayoutFields f;
  layout_world(m, &f);
  return layout_field(&f, i, field);
}

bool sn_adjoint_field(const SnModel *m, int i, SnLayoutField *field) {
  LayoutFields f;
  layout_adjoint(m, &f);
  return layout_field(&f, i, field);
}
#endif

static uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// Which fields go into the memory of a world that is replaced when it grows: those that larger capacities make larger.
static void layout_choose_growing(const SnModel *m, const LayoutFields *f, bool *growing) {
  LayoutFields larger;
  SnModel with_more = *m;
  ++with_more.nconmax;
  ++with_more.nefcmax;
  ++with_more.nJmax;
  layout_world(&with_more, &larger);
  for (int k = 0; k < f->n; ++k) growing[k] = larger.bytes[k] > f->bytes[k];
}

// Fields begin at multiples of `align` bytes, those that grow close together. `growing` may be NULL: none does.
static SnCode layout_make(const char *what, const LayoutFields *f, size_t align, const bool *growing, SnLayout *layout,
                          SnError *err) {
  uint64_t bytes[2] = {0, 0};
  memset(layout, 0, sizeof *layout);
  for (int k = 0; k < f->n; ++k) {
    const int part = growing && growing[k];
    layout->place[k] = (uint32_t)bytes[part] | (uint32_t)part;
    bytes[part] += round_up(f->bytes[k], part ? SN_LAYOUT_DENSE : align);
  }
  layout->bytes = (size_t)round_up(bytes[0], SN_LAYOUT_LINE);
  layout->growing = (size_t)round_up(bytes[1], SN_LAYOUT_LINE);
  if (bytes[0] < UINT32_MAX && bytes[1] < UINT32_MAX) return SN_OK;
  const unsigned long long total = bytes[0] + bytes[1];
  return sn_fail(err, SN_ERR_LIMIT, "%s: takes %llu bytes of memory, 4 GiB are the most", what, total);
}

#if !defined(SN_PACK)
void sn_world_limit_add(const SnModel *m, const int *size, const int *nnz, SnWorldLimit *limit) {
  int64_t rows = limit->rows, entries = limit->entries;
  for (int s = 0; s < m->nsrc_fl; ++s) {
    rows += size[s];
    entries += (int64_t)size[s] * nnz[s];
  }
  limit->rows = rows < m->nefcmax ? (int)rows : m->nefcmax;
  limit->entries = entries < m->nJmax ? (int)entries : m->nJmax;
}

void sn_world_limit(SnModel *m, const SnWorldLimit *limit) {
  m->nconmax = sn_mini(m->nconmax, limit->contacts);
  m->nefcmax = sn_mini(m->nefcmax, limit->rows);
  m->nJmax = sn_mini(m->nJmax, limit->entries);
  m->ncollide = sn_mini(m->ncollide, limit->pairs);
}

SnCode sn_world_place(const SnModel *m, size_t align, SnLayout *layout, SnError *err) {
  LayoutFields f;
  layout_world(m, &f);
  return layout_make("world", &f, align, NULL, layout, err);
}

SnCode sn_world_place_growing(const SnModel *m, SnLayout *layout, SnError *err) {
  LayoutFields f;
  bool growing[SN_LAYOUT_FIELDS];
  layout_world(m, &f);
  layout_choose_growing(m, &f, growing);
  return layout_make("world", &f, SN_LAYOUT_LINE, growing, layout, err);
}
#endif

SnCode sn_adjoint_place(const SnModel *m, SnLayout *layout, SnError *err) {
  LayoutFields f;
  layout_adjoint(m, &f);
  return layout_make("adjoint", &f, SN_LAYOUT_LINE, NULL, layout, err);
}

// Where field i is.
static void *layout_at(const SnLayout *layout, int i, void *memory, void *growing) {
  const uint32_t place = layout->place[i];
  unsigned char *base = (unsigned char *)((place & 1u) ? growing : memory);
  return base ? base + (place & ~1u) : NULL;
}

#if !defined(SN_PACK)
void sn_world_bind(const SnLayout *layout, SnWorld *w, void *memory, void *growing) {
#define SN_WORLD_FIELD(stage, type, name, rows, cols) \
  w->name = (type *)layout_at(layout, SN_WORLD_##name, memory, growing);
#include "physics/world/world_fields.inc"
#undef SN_WORLD_FIELD
  w->warn = (int *)layout_at(layout, SN_WORLD_warn, memory, growing);
}
#endif

void sn_adjoint_bind(const SnLayout *layout, SnAdjoint *a, void *memory) {
  a->host = NULL;
#define SN_ADJOINT_FIELD(group, type, name, rows, cols) \
  a->name = (type *)layout_at(layout, SN_ADJOINT_##name, memory, NULL);
#include "physics/world/adjoint_fields.inc"
#undef SN_ADJOINT_FIELD
}
#endif
