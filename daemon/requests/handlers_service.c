// Hello, health and statistics: answered by the event loop at once.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/memory.h"
#include "daemon/requests/handlers_private.h"
#include "daemon/requests/roles_private.h"
#include "physics/base/clock.h"

// The address of what is published, for a peer who can connect to it and may: with a key that is a tcp address.
static char *published_for(const SnPeer *peer, char *address, SnRole least) {
  static char none[] = "";
  return !*peer->key || (peer->role >= least && !strncmp(address, "tcp://", 6)) ? address : none;
}

SnCode sn_handle_hello(SnDaemon *d, SnJob *job, SnError *err) {
  SnScratch scratch = {0};
  Sinew__V1__Limits limits = SINEW__V1__LIMITS__INIT;
  limits.message_bytes = (uint64_t)d->config.message_bytes;
  limits.sessions = (uint32_t)d->config.sessions;
  limits.horizon = (uint32_t)d->config.horizon;
  limits.models = (uint32_t)d->config.loaded;
  limits.queue = (uint32_t)d->config.queue;
  Sinew__V1__HelloReply out = SINEW__V1__HELLO_REPLY__INIT;
  out.protocol = SN_PROTOCOL;
  out.version = SN_VERSION;
  out.planners = sn_pack_choices(&scratch, sn_settings_info(sn_settings_find("planner"))->choices, &out.n_planners);
  SnDeviceView device = sn_backends_view(&d->scheduler.backends);
  char *backends[] = {device.name, "cpu"};
  out.backends = backends + !device.present;
  out.n_backends = device.present ? 2 : 1;
  out.number = sn_pack_number_type();
  out.limits = &limits;
  out.telemetry = published_for(job->route.peer, d->config.telemetry, SN_ROLE_WATCH);
  out.records = published_for(job->route.peer, d->config.records, SN_ROLE_ADMIN);
  out.role = (char *)(uintptr_t)sn_role_name(job->route.peer->role);
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  reply.body_case = SINEW__V1__REPLY__BODY_HELLO;
  reply.hello = &out;
  sn_log_event(&d->log, SN_LOG_DEBUG, "hello: client '%s'", job->request->hello->client);
  SnCode code = scratch.failed ? sn_fail(err, SN_ERR_MEMORY, "out of memory") : SN_OK;
  if (code == SN_OK) sn_answer(d, job, &reply);
  sn_scratch_free(&scratch);
  return code;
}

// The device on the wire; NULL where there is none. Texts are those of the view.
static Sinew__V1__Device *pack_device(SnScratch *scratch, SnDeviceView *view) {
  Sinew__V1__Device *out = view->present ? sn_scratch_alloc(scratch, sizeof *out) : NULL;
  if (!out) return NULL;
  sinew__v1__device__init(out);
  out->backend = view->name;
  out->text = view->text;
  out->memory_used = view->memory.used;
  out->memory_budget = view->memory.budget;
  out->memory_total = view->memory.total;
  out->lost = view->lost;
  out->reason = view->reason;
  if (view->lost) out->lost_for = sn_clock_now() - view->lost_at;
  return out;
}

SnCode sn_handle_health(SnDaemon *d, SnJob *job, SnError *err) {
  char text[512];
  SnScratch scratch = {0};
  SnDeviceView view = sn_backends_view(&d->scheduler.backends);
  Sinew__V1__Health out = SINEW__V1__HEALTH__INIT;
  double now = sn_clock_now();
  out.planner_age = now - atomic_load(&d->scheduler.alive);
  bool stalled = out.planner_age > d->config.stall;
  out.device = pack_device(&scratch, &view);
  out.state = SINEW__V1__HEALTH__STATE__READY;
  snprintf(text, sizeof text, "ready");
  if (view.lost) {
    out.state = SINEW__V1__HEALTH__STATE__DEGRADED;
    snprintf(text, sizeof text, "plans are made on the CPU: the device of %s was lost %.1f s ago: %s", view.name,
             now - view.lost_at, view.reason);
  }
  if (stalled) {
    out.state = SINEW__V1__HEALTH__STATE__STALLED;
    snprintf(text, sizeof text, "the planner has been busy with one slice for %.1f s", out.planner_age);
  }
  out.text = text;
  out.uptime = now - d->started;
  out.sessions = (uint32_t)sn_sessions_count(&d->sessions);
  out.models = (uint32_t)sn_models_count(&d->models);
  out.memory_bytes = sn_resident_memory();
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  reply.body_case = SINEW__V1__REPLY__BODY_HEALTH;
  reply.health = &out;
  SnCode code = scratch.failed ? sn_fail(err, SN_ERR_MEMORY, "out of memory") : SN_OK;
  if (code == SN_OK) sn_answer(d, job, &reply);
  sn_scratch_free(&scratch);
  return code;
}

static void pack_session(SnSession *session, SnDeviceView *device, bool known, Sinew__V1__SessionStatistics *out) {
  SnMetricsView view = sn_metrics_view(&session->metrics);
  sinew__v1__session_statistics__init(out);
  out->session = known ? session->id : 0;
  out->task = session->task->name;
  out->plans = view.plans;
  out->misses = view.misses;
  out->replaced = view.replaced;
  out->latency_p50 = view.p50;
  out->latency_p99 = view.p99;
  out->cost = view.cost;
  out->idle = fmax(0, sn_clock_now() - session->heard);
  out->config_version = atomic_load(&session->config_version);
  out->best_cost = view.best_cost;
  out->gradient_norm = view.gradient_norm;
  out->iterations = view.iterations;
  out->sent = view.sent;
  out->plan_age = view.planned > 0 ? sn_clock_now() - view.planned : NAN;
  out->streaming = atomic_load(&session->streaming);
  out->backend = (char *)(uintptr_t)sn_backends_name(device, session);
  out->overflows = view.overflows;
  out->unimproved = (uint32_t)view.unimproved;
  out->stuck = view.stuck;
  out->served = view.served;
  if (known && session->kept) out->name = session->kept->name;
  if (session->kept) out->restarts = session->kept->restarts;
}

// Counts where all sessions plan.
static void count_sessions(SnSession *const *all, int n, const SnDeviceView *view, Sinew__V1__Statistics *out) {
  for (int i = 0; i < n; i++) sn_backends_serves(view, all[i]) ? out->sessions_on_device++ : out->sessions_on_cpu++;
}

Sinew__V1__Statistics *sn_pack_statistics(SnDaemon *d, SnScratch *scratch, SnSession *only, const SnPeer *peer) {
  int open;
  SnSession *const *all = sn_sessions_all(&d->sessions, &open);
  const size_t n = only ? 1 : (size_t)open;
  Sinew__V1__Statistics *out = sn_scratch_alloc(scratch, sizeof *out);
  Sinew__V1__SessionStatistics **list = sn_scratch_alloc(scratch, (n + 1) * sizeof *list), *items;
  items = sn_scratch_alloc(scratch, (n + 1) * sizeof *items);
  SnDeviceView *device = sn_scratch_alloc(scratch, sizeof *device);
  if (!out || !list || !items || !device) return NULL;
  *device = sn_backends_view(&d->scheduler.backends);
  SnMetricsView view = sn_metrics_view(&d->metrics);
  sinew__v1__statistics__init(out);
  out->uptime = sn_clock_now() - d->started;
  out->requests = d->requests;
  out->errors = d->errors;
  out->malformed = d->malformed;
  out->plans = view.plans;
  out->misses = view.misses;
  out->replaced = view.replaced;
  out->latency_p50 = view.p50;
  out->latency_p99 = view.p99;
  out->queue = (uint32_t)(sn_loader_waiting(&d->loader) + sn_queue_count(&d->scheduler.commands) +
                          atomic_load(&d->scheduler.evaluations));
  for (size_t i = 0; i < n; i++) {
    SnSession *session = only ? only : all[i];
    pack_session(session, device, only || sn_may_know(peer, session), &items[i]);
    list[i] = &items[i];
  }
  out->sessions = list;
  out->n_sessions = n;
  out->device = pack_device(scratch, device);
  count_sessions(all, open, device, out);
  return scratch->failed ? NULL : out;
}

SnCode sn_handle_statistics(SnDaemon *d, SnJob *job, SnError *err) {
  uint64_t id = job->request->statistics->session;
  SnSession *only = id ? sn_find_session(d, job, id, err) : NULL;
  if (id && !only) return err->code;
  SnScratch scratch = {0};
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  reply.body_case = SINEW__V1__REPLY__BODY_STATISTICS;
  reply.statistics = sn_pack_statistics(d, &scratch, only, job->route.peer);
  SnCode code = reply.statistics ? SN_OK : sn_fail(err, SN_ERR_MEMORY, "out of memory");
  if (code == SN_OK) sn_answer(d, job, &reply);
  sn_scratch_free(&scratch);
  return code;
}
