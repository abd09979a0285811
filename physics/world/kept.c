#include "physics/world/kept.h"

// Entries of efc_J in use.
static int kept_entries(const SnWorld *w) {
  const int last = w->nefc[0] - 1;
  return last < 0 ? 0 : w->efc_J_rowadr[last] + w->efc_J_rownnz[last];
}

// Supernodes of the factor of H; none without rows, but under `discrete`.
static int kept_supers(const SnModel *m, const SnWorld *w) {
  return w->nefc[0] > 0 || sn_has_metric(m) ? w->hessian_nsuper[0] : 0;
}

// Numbers of the factor.
static int kept_factor(const SnModel *m, const SnWorld *w) {
  const int *last = w->hessian_super + 4 * (kept_supers(m, w) - 1);
  return kept_supers(m, w) == 0 ? 0 : last[3] + last[1] * (last[1] + last[2]);
}

static size_t kept_bytes(size_t element, int count) { return (element * (size_t)count + 15) / 16 * 16; }
static size_t whole_lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

bool sn_world_can_keep(const SnModel *m) {
  return m->opt.integrator != SN_INT_RK4 && m->opt.integrator != SN_INT_IMPLICIT;
}

bool sn_world_body_stands_alone(const SnModel *m) {
  if (m->nadhesive > 0) return false;
  for (int i = 0; i < m->nactuator; ++i)
    if (m->actuator_trntype[i] == SN_TRN_BODY) return false;
  return true;
}

size_t sn_world_kept_size(const SnModel *m, const SnWorld *w, SnKeptPart wanted) {
  size_t bytes = 0;
#define SN_WORLD_KEPT(part, name, count) \
  if (SN_KEPT_##part == wanted) bytes += kept_bytes(sizeof *w->name, count);
#include "physics/world/world_kept.inc"
  return whole_lines(bytes);
}

size_t sn_world_kept_most(const SnModel *m) {
  enum { ROWS = 256, CONTACTS = 64 };
  const int nefc = sn_mini(m->nefcmax, ROWS), width = sn_mini(m->nv, 32);
  const size_t row = 12 * sizeof(sn_real) + 8 * sizeof(int) + (size_t)width * (sizeof(sn_real) + sizeof(int));
  const size_t factor = (size_t)m->nv * (size_t)m->nv * (sizeof(sn_real) + sizeof(int));
  return sn_world_kept_size(m, NULL, SN_KEPT_BODY) + (size_t)nefc * row + factor +
         (size_t)sn_mini(m->nconmax, CONTACTS) * sizeof(SnContact) + 1024;
}

void sn_world_keep(const SnModel *m, const SnWorld *w, SnKeptPart wanted, void *to) {
  unsigned char *at = to;
#define SN_WORLD_KEPT(part, name, count)                        \
  if (SN_KEPT_##part == wanted) {                               \
    const int n = count;                                        \
    if (n > 0) memcpy(at, w->name, sizeof *w->name *(size_t)n); \
    at += kept_bytes(sizeof *w->name, n);                       \
  }
#include "physics/world/world_kept.inc"
}

void sn_world_view(const SnModel *m, SnWorld *w, SnKeptPart wanted, void *kept) {
  unsigned char *at = kept;
#define SN_WORLD_KEPT(part, name, count)  \
  if (SN_KEPT_##part == wanted) {         \
    const int n = count;                  \
    if (n > 0) w->name = (void *)at;      \
    at += kept_bytes(sizeof *w->name, n); \
  }
#include "physics/world/world_kept.inc"
}
