#include "daemon/wire/memory_guard_private.h"

#include "daemon/base/memory.h"

// What a dropped listener has held is free within FREE_TIME seconds, and telemetry and records stay closed for
// PUBLISHED_PAUSE. Memory that has grown by GROWTH since the drop grows elsewhere. Until then free memory is given back
// every TRIM_TIME.
#define FREE_TIME 1.0
#define TRIM_TIME 0.1
#define PUBLISHED_PAUSE 5.0
enum { GROWTH = 32 << 20, INTERVAL_MS = 50, SHORT_INTERVAL_MS = 10 };

void sn_memory_guard_init(SnMemoryGuard *g, const SnConfig *config) {
  *g = (SnMemoryGuard){.limit = sn_memory_limit(config->memory_megabytes)};
}

static unsigned long long megabytes(uint64_t bytes) { return (unsigned long long)(bytes >> 20); }

static void drop(SnMemoryGuard *g, SnSockets *s, const char *what, double now) {
  sn_log_event(s->log, SN_LOG_ERROR, "memory: %llu MB in use, %llu MB are allowed; all connections for %s are dropped",
               megabytes(g->used), megabytes(g->limit), what);
  g->seen = g->used;
  g->dropped = now;
  g->drops++;
}

// Telemetry and records: controllers do not notice.
static void drop_published(SnMemoryGuard *g, SnSockets *s, double now) {
  drop(g, s, "telemetry and records", now);
  sn_sockets_drop(s, &s->telemetry, PUBLISHED_PAUSE);
  sn_sockets_drop(s, &s->records, PUBLISHED_PAUSE);
  g->state = SN_GUARD_PUBLISHED_DROPPED;
}

static void drop_requests(SnMemoryGuard *g, SnSockets *s, double now) {
  drop(g, s, s->router.name, now);
  sn_sockets_drop(s, &s->router, 0);
  g->state = SN_GUARD_ALL_DROPPED;
}

// Where memory is held by sessions and models, dropping connections does not help: the next time comes only when more
// has been added to that.
static void accept_what_is_held(SnMemoryGuard *g, SnSockets *s) {
  sn_log_event(s->log, SN_LOG_ERROR, "memory: %llu MB remain in use without connections", megabytes(g->used));
  g->held = g->used;
  g->state = SN_GUARD_CALM;
}

// Whether it is time to give to the system what the socket library's threads have freed since a drop.
static bool give_back(SnMemoryGuard *g, double now) {
  if (g->dropped == 0 || now > g->dropped + 2 * FREE_TIME || now < g->trimmed + TRIM_TIME) return false;
  g->trimmed = now;
  return true;
}

static void look(SnMemoryGuard *g, SnSockets *s, double now) {
  g->used = sn_resident_memory();
  if (g->used <= g->limit) {
    g->held = 0;
    g->state = SN_GUARD_CALM;
    return;
  }
  const bool waited = now - g->dropped > FREE_TIME || g->used > g->seen + GROWTH;
  if (g->state == SN_GUARD_CALM && (g->held == 0 || g->used > g->held + g->held / 8)) {
    if (s->telemetry.socket || s->records.socket)
      drop_published(g, s, now);
    else
      drop_requests(g, s, now);
  } else if (g->state == SN_GUARD_PUBLISHED_DROPPED && waited) {
    drop_requests(g, s, now);
  } else if (g->state == SN_GUARD_ALL_DROPPED && now - g->dropped > FREE_TIME) {
    accept_what_is_held(g, s);
  }
}

bool sn_memory_guard_check(SnMemoryGuard *g, SnSockets *s, double now) {
  const bool trim = give_back(g, now);
  look(g, s, now);
  return trim;
}

int sn_memory_guard_interval(const SnMemoryGuard *g) {
  return g->used > g->limit / 2 ? SHORT_INTERVAL_MS : INTERVAL_MS;
}
