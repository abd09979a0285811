// One block of memory, filled from its begin. A world that has all three parts is ready for the way back. With contacts
// from distance the stages of contacts run again, on a view of the part that does not know them, which alone is kept.
#include "planner/rollout/world_store.h"

#include <stdlib.h>

#include "physics/constraint/constraint.h"
#include "physics/step/step.h"
#include "physics/world/kept.h"

enum { PARTS = SN_KEPT_SOLUTION + 1, LINE = 64 };

// Where the parts of a world are.
typedef struct KeptWorld {
  unsigned char *part[PARTS];  // the first NULL: not kept
  size_t bytes;                // of all its parts, which lie one behind the other
  unsigned char *run;          // the chosen step from there; NULL: not kept
} KeptWorld;

struct SnWorldStore {
  unsigned char *memory;
  size_t bytes, used;
  int nworld;
  bool body_only;  // what depends on contacts is not kept
  KeptWorld *world;
};

size_t sn_world_store_size(const SnModel *m, int max_step) {
  return sn_world_can_keep(m) ? sn_world_kept_most(m) / LINE * LINE * ((size_t)max_step + 1) : 0;
}

SnWorldStore *sn_world_store_create(int max_step, size_t bytes) {
  SnWorldStore *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->bytes = bytes / LINE * LINE;
  s->nworld = max_step + 1;
  s->memory = aligned_alloc(LINE, s->bytes + LINE);
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

void sn_world_store_clear(SnWorldStore *s, bool contacts_made_anew) {
  s->body_only = contacts_made_anew;
  s->used = 0;
  memset(s->world, 0, (size_t)s->nworld * sizeof *s->world);
}

void sn_world_store_keep(SnWorldStore *s, const SnModel *m, SnLane *lane, SnWorld *w, int t) {
  const int parts = s->body_only ? SN_KEPT_BODY + 1 : PARTS;
  KeptWorld *to = &s->world[t];
  size_t bytes[PARTS], sum = 0;
  if (!sn_world_can_keep(m) || sn_world_kept_size(m, w, SN_KEPT_BODY) > s->bytes - s->used) return;
  if (!s->body_only) sn_solve_again(m, w, lane);
  for (int k = 0; k < parts; ++k) sum += bytes[k] = sn_world_kept_size(m, w, (SnKeptPart)k);
  if (sum > s->bytes - s->used) return;
  unsigned char *at = s->memory + s->used;
  s->used += sum;
  to->bytes = sum;
  for (int k = 0; k < parts; ++k) {
    sn_world_keep(m, w, (SnKeptPart)k, at);
    to->part[k] = at;
    at += bytes[k];
  }
}

void sn_world_store_keep_run(SnWorldStore *s, const SnHorizon *h, int t) {
  const size_t bytes = (sn_horizon_run_bytes(h) + LINE - 1) / LINE * LINE;
  if (bytes == 0 || bytes > s->bytes - s->used) return;
  s->world[t].run = s->memory + s->used;
  s->used += bytes;
  sn_horizon_save_run(h, s->world[t].run);
}

const void *sn_world_store_run(const SnWorldStore *s, int t) { return s->world[t].run; }

bool sn_world_store_whole(const SnWorldStore *s, int t) { return s->world[t].part[SN_KEPT_SOLUTION] != NULL; }

// Asks for the memory of the state that comes next on the way back, so that it is near when its turn comes.
static void fetch_ahead(const SnWorldStore *s, int t) {
  if (t < 0 || !s->world[t].part[SN_KEPT_BODY]) return;
  const unsigned char *at = s->world[t].part[SN_KEPT_BODY];
  for (size_t k = 0; k < s->world[t].bytes; k += LINE) __builtin_prefetch(at + k, 0, 2);
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
  fetch_ahead(s, t - 1);
  sn_rollout_vjp_set_state(m, lane, b, t, own);
  *view = *own;
  sn_world_view(m, view, SN_KEPT_BODY, from->part[SN_KEPT_BODY]);
  if (!contacts && from->part[SN_KEPT_SOLUTION]) {
    sn_world_view(m, view, SN_KEPT_ROWS, from->part[SN_KEPT_ROWS]);
    sn_world_view(m, view, SN_KEPT_SOLUTION, from->part[SN_KEPT_SOLUTION]);
  } else {
    sn_forward_contacts(m, view, lane);
  }
  sn_rollout_vjp_finish(m, lane, b, t, view);
  return true;
}
