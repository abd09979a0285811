// One block of memory, filled from its begin. A world that has all three parts is ready for the way back. With contacts
// from distance the stages of contacts run again, on a view of the part that does not know them, which alone is kept.
//
// A rollout and a thread that follows it may fill the store together. Each state is kept by the one who claims it
// first. The rollout leaves a state to its follower unless that one is behind by more than LAG states, because what the
// follower takes is made again from the state, at a price, and the rollout has it at hand.
#include "planner/rollout/world_store.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "physics/constraint/constraint.h"
#include "physics/step/step.h"
#include "physics/world/kept.h"

enum { PARTS = SN_KEPT_SOLUTION + 1, LAG = 2, LINE = 64 };

// Where the parts of a world are.
typedef struct KeptWorld {
  unsigned char *part[PARTS];  // the first NULL: not kept
  size_t bytes;                // of all its parts, which lie one behind the other
  atomic_bool claimed;         // somebody keeps it, or has found no room
} KeptWorld;

struct SnWorldStore {
  unsigned char *memory;
  size_t bytes;
  int nworld;
  bool body_only;  // what depends on contacts is not kept
  KeptWorld *world;
  atomic_size_t used;
  atomic_int rolled;    // states that the rollout has come through
  atomic_int followed;  // first state that the follower has not come through
  atomic_bool followed_now;
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
  atomic_store(&s->used, 0);
  atomic_store(&s->rolled, 0);
  atomic_store(&s->followed, 0);
  atomic_store(&s->followed_now, false);
  for (int t = 0; t < s->nworld; ++t) {
    memset(s->world[t].part, 0, sizeof s->world[t].part);
    atomic_store_explicit(&s->world[t].claimed, false, memory_order_relaxed);
  }
}

// Memory for so many bytes, a multiple of LINE; NULL: there is no room.
static unsigned char *take_bytes(SnWorldStore *s, size_t bytes) {
  size_t used = atomic_load(&s->used);
  do {
    if (bytes > s->bytes - used) return NULL;
  } while (!atomic_compare_exchange_weak(&s->used, &used, used + bytes));
  return s->memory + used;
}

// Keeps a world whose solution is finished, as many parts as are asked for.
static void keep_world(SnWorldStore *s, const SnModel *m, const SnWorld *w, int t) {
  const int parts = s->body_only ? SN_KEPT_BODY + 1 : PARTS;
  KeptWorld *to = &s->world[t];
  size_t bytes[PARTS];
  to->bytes = 0;
  for (int k = 0; k < parts; ++k) to->bytes += bytes[k] = sn_world_kept_size(m, w, (SnKeptPart)k);
  unsigned char *at = take_bytes(s, to->bytes);
  for (int k = 0; k < parts && at; ++k) {
    sn_world_keep(m, w, (SnKeptPart)k, at);
    to->part[k] = at;
    at += bytes[k];
  }
}

// Whether the caller is the one who keeps state t.
static bool claim(SnWorldStore *s, int t) { return !atomic_exchange(&s->world[t].claimed, true); }

void sn_world_store_keep(SnWorldStore *s, const SnModel *m, SnLane *lane, SnWorld *w, int t) {
  const bool left = atomic_load(&s->followed_now) && t - atomic_load(&s->followed) < LAG;
  if (sn_world_can_keep(m) && !left && claim(s, t)) {
    if (!s->body_only) sn_solve_again(m, w, lane);
    keep_world(s, m, w, t);
  }
  atomic_store_explicit(&s->rolled, t + 1, memory_order_release);
}

bool sn_world_store_can_follow(const SnWorldStore *s, const SnModel *m) {
  return sn_world_can_keep(m) && !s->body_only;
}

void sn_world_store_begin_follow(SnWorldStore *s, bool begin) { atomic_store(&s->followed_now, begin); }

bool sn_world_store_follow(SnWorldStore *s, const SnModel *m, SnLane *lane, const SnRolloutVjp *b, SnWorld *own) {
  int t = atomic_load(&s->followed);
  const int rolled = atomic_load_explicit(&s->rolled, memory_order_acquire);
  while (t < rolled && !claim(s, t)) ++t;
  atomic_store(&s->followed, t);
  if (t >= rolled) return false;
  sn_rollout_vjp_recompute(m, lane, b, t, own);
  keep_world(s, m, own, t);
  atomic_store(&s->followed, t + 1);
  return true;
}

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
