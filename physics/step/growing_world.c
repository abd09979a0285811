// The memory of a world that grows. A step that overflows is noticed by its warnings, when it is over: what it kept of
// the state costs a copy of some hundred numbers, and it does not matter in which of its evaluations (four with
// Runge-Kutta) contacts or rows did not fit.
#include "physics/step/growing_world.h"

#include <stdlib.h>

#include "physics/step/step.h"
#include "physics/world/layout.h"

static size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Zeroed, 64-byte aligned memory of at least one line.
static void *zeroed(size_t bytes, SnError *err) {
  const size_t n = bytes ? round_up(bytes) : 64;
  void *p = aligned_alloc(64, n);
  if (p) return memset(p, 0, n);
  sn_fail(err, SN_ERR_MEMORY, "world: no memory for %zu bytes", n);
  return NULL;
}

// The bytes of the fields of STATE: they are one block, because fields lie in the order of their list.
static size_t state_bytes(const SnModel *m) {
  size_t bytes = 0;
#define SN_WORLD_FIELD(stage, type, name, rows, cols) \
  if (SN_STAGE_##stage == SN_STAGE_STATE) bytes += round_up(sizeof(type) * (size_t)(rows) * (size_t)(cols));
#include "physics/world/world_fields.inc"
#undef SN_WORLD_FIELD
  return bytes;
}

// The capacities that a world begins with.
static void begin_small(SnModel *m) {
  SnWorldLimit limit = {SN_GROWING_CONTACTS, SN_GROWING_ROWS, SN_GROWING_ENTRIES, SN_GROWING_PAIRS};
  sn_world_limit_add(m, m->src_size, m->src_nnz, &limit);
  sn_world_limit(m, &limit);
}

// Replaces the memory of the fields that move by one for the capacities of m, and takes them over. On failure the world
// is as it was.
static SnCode replace_memory(SnGrowingWorld *g, const SnModel *m, SnError *err) {
  SnLayout layout;
  const SnCode code = sn_world_place_growing(m, &layout, err);
  if (code != SN_OK) return code;
  void *memory = zeroed(layout.growing, err);
  if (!memory) return SN_ERR_MEMORY;
  free(g->growing_memory);
  free(g->adjoint_memory);
  g->growing_memory = memory;
  g->adjoint_memory = NULL;
  g->model = *m;
  sn_world_bind(&layout, &g->world, g->fixed_memory, memory);
  return SN_OK;
}

// Allocates and binds everything; on failure the caller frees what there is.
static SnCode make_world(SnGrowingWorld *g, const SnModel *whole, SnError *err) {
  SnModel m = *whole;
  SnLayout layout;
  begin_small(&m);
  const SnCode code = sn_world_place_growing(&m, &layout, err);
  if (code != SN_OK) return code;
  g->whole = whole;
  g->lane = (SnLane){.n = 1, .shared = &g->lane_shared};
  g->kept_bytes = state_bytes(&m);
  g->fixed_memory = zeroed(layout.bytes + g->kept_bytes, err);
  if (!g->fixed_memory) return SN_ERR_MEMORY;
  g->kept = (unsigned char *)g->fixed_memory + layout.bytes;
  return replace_memory(g, &m, err);
}

SnGrowingWorld *sn_growing_world_create(const SnModel *m, SnError *err) {
  SnGrowingWorld *g = zeroed(sizeof *g, err);
  if (!g) return NULL;
  if (make_world(g, m, err) != SN_OK) {
    sn_growing_world_free(g);
    return NULL;
  }
  sn_world_begin(&g->model, &g->world, &g->lane);
  sn_world_reset(&g->model, &g->world);
  return g;
}

void sn_growing_world_free(SnGrowingWorld *g) {
  if (!g) return;
  free(g->adjoint_memory);
  free(g->growing_memory);
  free(g->fixed_memory);
  free(g);
}

size_t sn_growing_world_bytes(const SnGrowingWorld *g) {
  SnLayout layout;
  const SnModel *m = &g->model;
  if (sn_world_place_growing(m, &layout, NULL) != SN_OK) return SN_TOO_LARGE;  // cannot be: the world is there
  const size_t adjoint = g->adjoint_memory ? sn_adjoint_size(m) : 0;
  return round_up(sizeof *g) + layout.bytes + g->kept_bytes + layout.growing + adjoint;
}

void sn_growing_world_set_model(SnGrowingWorld *g, const SnModel *m) {
  SnModel next = *m;
  next.nconmax = g->model.nconmax;
  next.nefcmax = g->model.nefcmax;
  next.nJmax = g->model.nJmax;
  next.ncollide = g->model.ncollide;
  g->model = next;
  g->whole = m;
}

static int twice(int capacity, int most) { return capacity > most / 2 ? most : 2 * capacity; }

// Doubles what a warning says is full, as far as the model has more, and takes that warning back.
static SnCode grow(SnGrowingWorld *g, bool *grown, SnError *err) {
  const SnModel *whole = g->whole;
  SnModel m = g->model;
  int made_larger = 0;
  if (*g->world.warn & SN_WARN_CONTACT_FULL && m.nconmax < whole->nconmax) {
    made_larger |= SN_WARN_CONTACT_FULL;
    m.nconmax = twice(m.nconmax, whole->nconmax);
  }
  if (*g->world.warn & SN_WARN_EFC_FULL && (m.nefcmax < whole->nefcmax || m.nJmax < whole->nJmax)) {
    made_larger |= SN_WARN_EFC_FULL;
    m.nefcmax = twice(m.nefcmax, whole->nefcmax);
    m.nJmax = twice(m.nJmax, whole->nJmax);
  }
  *grown = false;
  if (!made_larger) return SN_OK;
  const SnCode code = replace_memory(g, &m, err);
  if (code != SN_OK) return code;
  *grown = true;
  *g->world.warn &= ~made_larger;
  ++g->grown;
  return SN_OK;
}

// Runs sn_step or sn_forward from the state that the world is in, again and again until it fits.
static SnCode evaluate(SnGrowingWorld *g, void (*run)(const SnModel *, SnWorld *, SnLane *), SnError *err) {
  const int before = *g->world.warn;
  SnCode code = SN_OK;
  *g->world.warn = before & ~SN_WARN_FULL;
  memcpy(g->kept, g->world.time, g->kept_bytes);
  for (bool grown = true; grown;) {
    run(&g->model, &g->world, &g->lane);
    grown = false;
    if (!(*g->world.warn & SN_WARN_FULL)) break;
    code = grow(g, &grown, err);
    if (!grown && code == SN_OK) break;
    memcpy(g->world.time, g->kept, g->kept_bytes);
    *g->world.warn = before & ~SN_WARN_FULL;
  }
  *g->world.warn |= before & SN_WARN_FULL;
  return code;
}

SnCode sn_growing_world_step(SnGrowingWorld *g, SnError *err) { return evaluate(g, sn_step, err); }

void sn_growing_world_undo(SnGrowingWorld *g) { memcpy(g->world.time, g->kept, g->kept_bytes); }

SnCode sn_growing_world_forward(SnGrowingWorld *g, SnError *err) { return evaluate(g, sn_forward, err); }

SnCode sn_growing_world_integrate(SnGrowingWorld *g, SnError *err) {
  int *warn = g->world.warn;
  const int before = *warn;
  *warn = before & ~SN_WARN_FULL;
  sn_integrate(&g->model, &g->world, &g->lane);
  const bool fits = !(*warn & SN_WARN_FULL);
  *warn |= before & SN_WARN_FULL;
  if (fits) return SN_OK;
  *warn = before;  // a stage of RK4 needs more room: the whole step again
  sn_growing_world_undo(g);
  return sn_growing_world_step(g, err);
}

SnAdjoint *sn_growing_world_adjoint(SnGrowingWorld *g, SnError *err) {
  if (!g->adjoint_memory) {
    g->adjoint_memory = zeroed(sn_adjoint_size(&g->model), err);
    if (!g->adjoint_memory) return NULL;
    sn_adjoint_layout(&g->model, &g->adjoint, g->adjoint_memory);
  }
  return &g->adjoint;
}

SnCode sn_growing_world_settle(SnGrowingWorld *g, bool *again, SnError *err) {
  *again = false;
  if (!(*g->world.warn & SN_WARN_FULL)) return SN_OK;
  const SnCode code = grow(g, again, err);
  if (!*again) return code;
  sn_growing_world_undo(g);  // the evaluation has left its solution as the solver's next start
  return sn_growing_world_forward(g, err);
}
