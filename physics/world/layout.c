// Memory of worlds and adjoints. Fields of the global memory start at cache lines, in the order of their list; those of
// the shared one, where every byte counts, at what any access needs.
#include "physics/world/layout.h"

enum {
#define SN_WORLD_FIELD(stage, type, name, rows, cols) WORLD_FIELD_##name,
#include "physics/world/world_fields.inc"
#undef SN_WORLD_FIELD
  WORLD_FIELD_warn,
  WORLD_FIELDS
};
enum {
#define SN_ADJOINT_FIELD(group, type, name, rows, cols) ADJOINT_FIELD_##name,
#include "physics/world/adjoint_fields.inc"
#undef SN_ADJOINT_FIELD
  ADJOINT_FIELDS
};
static_assert((int)WORLD_FIELDS <= (int)SN_LAYOUT_FIELDS, "capacity of a layout");
static_assert((int)ADJOINT_FIELDS <= (int)SN_LAYOUT_FIELDS, "capacity of a layout");

#if !defined(__CUDACC__)
enum { SHARED_ALIGN = 16, GLOBAL_ALIGN = 64 };

typedef struct LayoutFields {
  int n;
  const char *name[SN_LAYOUT_FIELDS];
  uint64_t bytes[SN_LAYOUT_FIELDS];
  int rank[SN_LAYOUT_FIELDS];  // of layout_ranks.inc; -1: none
} LayoutFields;

static void layout_add(LayoutFields *f, const char *name, size_t element, int rows, int cols) {
  f->name[f->n] = name;
  f->rank[f->n] = -1;
  f->bytes[f->n++] = (uint64_t)element * (uint64_t)rows * (uint64_t)cols;
}

static void layout_world(const SnModel *m, LayoutFields *f) {
  f->n = 0;
#define SN_WORLD_FIELD(stage, type, name, rows, cols) layout_add(f, #name, sizeof(type), rows, cols);
#include "physics/world/world_fields.inc"
#undef SN_WORLD_FIELD
  layout_add(f, "warn", sizeof(int), 1, 1);
#define SN_WORLD_RANK(value, name) f->rank[WORLD_FIELD_##name] = value;
#include "physics/world/layout_ranks.inc"
#undef SN_WORLD_RANK
}

static void layout_adjoint(const SnModel *m, LayoutFields *f) {
  f->n = 0;
#define SN_ADJOINT_FIELD(group, type, name, rows, cols) layout_add(f, #name, sizeof(type), rows, cols);
#include "physics/world/adjoint_fields.inc"
#undef SN_ADJOINT_FIELD
#define SN_ADJOINT_RANK(value, name) f->rank[ADJOINT_FIELD_##name] = value;
#include "physics/world/layout_ranks.inc"
#undef SN_ADJOINT_RANK
}

#if !defined(SN_PACK)
static bool layout_field(const LayoutFields *f, int i, SnLayoutField *field) {
  if (i < 0 || i >= f->n) return false;
  *field = (SnLayoutField){f->name[i], (size_t)f->bytes[i], f->rank[i]};
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

// Whether field a comes before field b where there is little room; of equal ones the earlier.
static bool layout_before(const LayoutFields *f, int a, int b) {
  if (f->rank[a] != f->rank[b]) return f->rank[a] > f->rank[b];
  return f->bytes[a] < f->bytes[b];
}

// Which fields go into `capacity` bytes of shared memory: in their order, those that are too large left out.
static void layout_choose(const LayoutFields *f, uint64_t capacity, bool *shared) {
  bool seen[SN_LAYOUT_FIELDS] = {false};
  uint64_t used = 0;
  for (int k = 0; k < f->n; ++k) shared[k] = false;
  if (capacity < SHARED_ALIGN) return;  // on a processor there is none, and nothing to sort
  for (;;) {
    int best = -1;
    for (int k = 0; k < f->n; ++k)
      if (!seen[k] && f->bytes[k] && (best < 0 || layout_before(f, k, best))) best = k;
    if (best < 0) return;
    seen[best] = true;
    const uint64_t bytes = round_up(f->bytes[best], SHARED_ALIGN);
    shared[best] = used + bytes <= capacity;
    if (shared[best]) used += bytes;
  }
}

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

static SnCode layout_make(const char *what, const LayoutFields *f, const bool *in_shared, SnLayout *layout,
                          SnError *err) {
  uint64_t shared = 0, global = 0;
  memset(layout, 0, sizeof *layout);
  for (int k = 0; k < f->n; ++k) {
    layout->place[k] = in_shared[k] ? (uint32_t)shared | 1u : (uint32_t)global;
    if (in_shared[k])
      shared += round_up(f->bytes[k], SHARED_ALIGN);
    else
      global += round_up(f->bytes[k], GLOBAL_ALIGN);
  }
  layout->shared = (size_t)round_up(shared, GLOBAL_ALIGN);
  layout->global = (size_t)global;
  if (shared < UINT32_MAX && global < UINT32_MAX) return SN_OK;
  const unsigned long long total = shared + global;
  return sn_fail(err, SN_ERR_LIMIT, "%s: takes %llu bytes of memory, 4 GiB are the most", what, total);
}

// Of `capacity` bytes of shared memory whole lines are used.
static SnCode layout_make_ranked(const char *what, const LayoutFields *f, size_t capacity, SnLayout *layout,
                                 SnError *err) {
  bool in_shared[SN_LAYOUT_FIELDS];
  layout_choose(f, capacity / GLOBAL_ALIGN * GLOBAL_ALIGN, in_shared);
  return layout_make(what, f, in_shared, layout, err);
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

SnCode sn_world_place(const SnModel *m, size_t shared, SnLayout *layout, SnError *err) {
  LayoutFields f;
  layout_world(m, &f);
  return layout_make_ranked("world", &f, shared, layout, err);
}

SnCode sn_world_place_growing(const SnModel *m, SnLayout *layout, SnError *err) {
  LayoutFields f;
  bool growing[SN_LAYOUT_FIELDS];
  layout_world(m, &f);
  layout_choose_growing(m, &f, growing);
  return layout_make("world", &f, growing, layout, err);
}
#endif

SnCode sn_adjoint_place(const SnModel *m, size_t shared, SnLayout *layout, SnError *err) {
  LayoutFields f;
  layout_adjoint(m, &f);
  return layout_make_ranked("adjoint", &f, shared, layout, err);
}
#endif

// Where field i is.
SN_INLINE void *layout_at(const SnLayout *layout, int i, void *shared, void *global) {
  const uint32_t place = layout->place[i];
  unsigned char *base = (unsigned char *)((place & 1u) ? shared : global);
  return base ? base + (place & ~1u) : NULL;
}

#if !defined(SN_PACK)
SN_FUNC void sn_world_bind(const SnLayout *layout, SnWorld *w, void *shared, void *global) {
#define SN_WORLD_FIELD(stage, type, name, rows, cols) \
  w->name = (type *)layout_at(layout, WORLD_FIELD_##name, shared, global);
#include "physics/world/world_fields.inc"
#undef SN_WORLD_FIELD
  w->warn = (int *)layout_at(layout, WORLD_FIELD_warn, shared, global);
}
#endif

SN_FUNC void sn_adjoint_bind(const SnLayout *layout, SnAdjoint *a, void *shared, void *global) {
  a->host = NULL;
#define SN_ADJOINT_FIELD(group, type, name, rows, cols) \
  a->name = (type *)layout_at(layout, ADJOINT_FIELD_##name, shared, global);
#include "physics/world/adjoint_fields.inc"
#undef SN_ADJOINT_FIELD
}
