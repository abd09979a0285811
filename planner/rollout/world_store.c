// One block of memory, filled from its begin. A world that has all three parts is ready for the way back. With contacts
// from distance the stages of contacts run again, on a view of the part that does not know them.
#include "planner/rollout/world_store.h"

#include <stdlib.h>

#include "physics/constraint/constraint.h"
#include "physics/step/step.h"
#include "physics/world/kept.h"

enum { PARTS = SN_KEPT_SOLUTION + 1 };

// Where the parts of a world are.
typedef struct KeptWorld {
  unsigned char *part[PARTS];  // the first NULL: not kept
} KeptWorld;

struct SnWorldStore {
  unsigned char *memory;
  size_t bytes, used;
  int nworld;
  KeptWorld *world;
};

size_t sn_world_store_size(const SnModel *m, int max_step) {
  return sn_world_can_keep(m) ? sn_world_kept_most(m) / 64 * 64 * ((size_t)max_step + 1) : 0;
}

SnWorldStore *sn_world_store_create(int max_step, size_t bytes) {
  SnWorldStore *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->bytes = bytes / 64 * 64;
  s->nworld = max_step + 1;
  s->memory = aligned_alloc(64, s->bytes + 64);
  s->world = calloc((size_t)s->nworld, sizeof *s->world);
  if (s->memory && s->world) return s;
  sn_world_store_free(s);
  return NULL;
}

void sn_world_store_free(SnWorldStore *s) {
  if (!s) return;
  free(s->memory);
  free(s->world);
  free(s);
}

void sn_world_store_clear(SnWorldStore *s) {
  s->used = 0;
  memset(s->world, 0, (size_t)s->nworld * sizeof *s->world);
}

// Keeps one part, where there is room.
static bool keep_part(SnWorldStore *s, const SnModel *m, const SnWorld *w, KeptWorld *to, SnKeptPart part) {
  const size_t bytes = sn_world_kept_size(m, w, part);
  if (bytes > s->bytes - s->used) return false;
  to->part[part] = s->memory + s->used;
  s->used += bytes;
  sn_world_keep(m, w, part, to->part[part]);
  return true;
}

void sn_world_store_keep(SnWorldStore *s, const SnModel *m, SnLane *lane, SnWorld *w, int t) {
  KeptWorld *to = &s->world[t];
  if (!sn_world_can_keep(m) || !keep_part(s, m, w, to, SN_KEPT_BODY) || !keep_part(s, m, w, to, SN_KEPT_ROWS)) return;
  sn_solve_again(m, w, lane);
  keep_part(s, m, w, to, SN_KEPT_SOLUTION);
}

// Debug builds: what is not kept is NaN.
static void poison(const SnModel *m, SnWorld *own) {
#if !defined(NDEBUG)
  for (int stage = SN_STAGE_KINEMATICS; stage <= SN_STAGE_INTEGRATE; ++stage) sn_world_poison(m, own, (SnStage)stage);
#else
  (void)m;
  (void)own;
#endif
}

bool sn_world_store_view(SnWorldStore *s, const SnModel *m, SnLane *lane, const SnRolloutVjp *b, int t, SnWorld *own,
                         SnWorld *view) {
  const KeptWorld *from = &s->world[t];
  const bool contacts = b->cfd.on || b->rollout->cfd.on;
  if (!from->part[SN_KEPT_BODY] || (contacts && !sn_world_body_stands_alone(m))) return false;
  poison(m, own);
  sn_rollout_vjp_set_state(m, lane, b, t, own);
  *view = *own;
  sn_world_view(m, view, SN_KEPT_BODY, from->part[SN_KEPT_BODY]);
  if (!contacts && from->part[SN_KEPT_ROWS]) {
    sn_world_view(m, view, SN_KEPT_ROWS, from->part[SN_KEPT_ROWS]);
    if (from->part[SN_KEPT_SOLUTION])
      sn_world_view(m, view, SN_KEPT_SOLUTION, from->part[SN_KEPT_SOLUTION]);
    else
      sn_solve(m, view, lane);
  } else {
    sn_forward_contacts(m, view, lane);
  }
  sn_rollout_vjp_finish(m, lane, b, t, view);
  return true;
}
