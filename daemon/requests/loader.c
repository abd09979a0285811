#include "daemon/requests/loader_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/models/repository.h"
#include "physics/base/clock.h"
#include "physics/model/model_file.h"
#include "planner/base/yaml.h"

// Who asks a daemon that stops may ask the next one.
static void reply_error(SnDaemon *d, const SnJob *job, const SnError *err) {
  if (sn_queue_closed(&d->loader.jobs))
    sn_outbox_error(&d->outbox, &job->route, SINEW__V1__ERROR__CODE__SHUTTING_DOWN, "the daemon stops: %s", err->text);
  else
    sn_outbox_error(&d->outbox, &job->route, sn_wire_code(err->code), "%s", err->text);
}

void sn_loader_unreserve(SnDaemon *d, const SnJob *job) {
  sn_sessions_unreserve(&d->sessions, &job->route);
  if (job->kept && !job->restores) sn_keeper_close(job->kept, NULL);  // its files stay, where it has some
  sn_keeper_release(job->kept);
}

// Answers a job that has failed. Errors of models and sessions are logged.
static void fail(SnDaemon *d, const SnJob *job, const SnError *err) {
  const Sinew__V1__Request *r = job->request;
  if (job->restores) {
    sn_restore_failed(d, job, err);
    return;
  }
  const SnLogIds ids = {.request = job->route.id};
  if (r->body_case == SINEW__V1__REQUEST__BODY_OPEN) {
    sn_log_about(&d->log, SN_LOG_WARNING, ids, "open-failed: task %s: %s", r->open->task, err->text);
    sn_loader_unreserve(d, job);
  } else if (r->body_case == SINEW__V1__REQUEST__BODY_LOAD_MODEL) {
    sn_log_about(&d->log, SN_LOG_WARNING, ids, "load-failed: model %s: %s", r->load_model->model, err->text);
  } else if (r->body_case == SINEW__V1__REQUEST__BODY_DESCRIBE_MODEL) {
    sn_log_about(&d->log, SN_LOG_WARNING, ids, "load-failed: model %s: %s", r->describe_model->model, err->text);
  }
  reply_error(d, job, err);
}

// The model of that name, or NULL: with err, or *kept, and the job is somebody else's.
static SnLoadedModel *acquire_later(SnDaemon *d, const char *name, SnJob *job, bool *kept, SnError *err) {
  atomic_fetch_add(&d->loader.parked, 1);  // before it is
  SnLoadedModel *model = sn_models_acquire_later(&d->models, name, job, kept, err);
  if (!*kept) atomic_fetch_sub(&d->loader.parked, 1);
  return model;
}

static void list_models(SnDaemon *d, const SnJob *job) {
  SnNames names = sn_repository_list(&d->config.models, SN_KIND_MODEL);
  SnScratch scratch = {0};
  size_t n = (size_t)names.n;
  Sinew__V1__ModelSummary **list = sn_scratch_alloc(&scratch, (n + 1) * sizeof *list), *items;
  items = sn_scratch_alloc(&scratch, (n + 1) * sizeof *items);
  Sinew__V1__ListModelsReply out = SINEW__V1__LIST_MODELS_REPLY__INIT;
  for (size_t i = 0; list && items && i < n; i++) {
    int users = sn_models_users(&d->models, names.name[i]);
    sinew__v1__model_summary__init(&items[i]);
    items[i].name = names.name[i];
    items[i].loaded = users >= 0;
    items[i].sessions = users > 0 ? (uint32_t)users : 0;
    list[i] = &items[i];
    out.n_models = i + 1;
  }
  out.models = list;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  reply.body_case = SINEW__V1__REPLY__BODY_LIST_MODELS;
  reply.list_models = &out;
  sn_outbox_send(&d->outbox, sn_outbox_pack(&d->outbox, &job->route, scratch.failed ? NULL : &reply));
  sn_scratch_free(&scratch);
  sn_names_free(&names);
}

// The task of that name, or NULL and err.
static SnTask *load_task(const SnDaemon *d, const char *name, SnError *err) {
  char path[SN_CONFIG_TEXT_SIZE * 2];
  if (sn_repository_find(&d->config.tasks, name, SN_KIND_TASK, path, sizeof path, err) != SN_OK) return NULL;
  return sn_task_load(path, err);
}

static void list_tasks(SnDaemon *d, const SnJob *job) {
  SnNames names = sn_repository_list(&d->config.tasks, SN_KIND_TASK);
  SnScratch scratch = {0};
  size_t n = (size_t)names.n;
  Sinew__V1__TaskSummary **list = sn_scratch_alloc(&scratch, (n + 1) * sizeof *list), *items;
  items = sn_scratch_alloc(&scratch, (n + 1) * sizeof *items);
  SnTask **tasks = sn_scratch_alloc(&scratch, (n + 1) * sizeof *tasks);
  Sinew__V1__ListTasksReply out = SINEW__V1__LIST_TASKS_REPLY__INIT;
  for (size_t i = 0; list && items && tasks && i < n; i++) {
    SnError err = {0};
    sinew__v1__task_summary__init(&items[i]);
    items[i].name = names.name[i];
    tasks[i] = load_task(d, names.name[i], &err);
    if (tasks[i]) {
      items[i].model = tasks[i]->model;
      items[i].text = tasks[i]->description;
    } else if ((items[i].error = sn_scratch_alloc(&scratch, sizeof err.text))) {
      memcpy(items[i].error, err.text, sizeof err.text);
    } else {
      break;
    }
    list[i] = &items[i];
    out.n_tasks = i + 1;
  }
  out.tasks = list;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  reply.body_case = SINEW__V1__REPLY__BODY_LIST_TASKS;
  reply.list_tasks = &out;
  sn_outbox_send(&d->outbox, sn_outbox_pack(&d->outbox, &job->route, scratch.failed ? NULL : &reply));
  for (size_t i = 0; tasks && i < n; i++) sn_task_free(tasks[i]);
  sn_scratch_free(&scratch);
  sn_names_free(&names);
}

// Loads a model for a load or describe request, and answers. False: the job is kept until another thread has loaded it.
static bool load_model(SnDaemon *d, SnJob *job) {
  bool describe = job->request->body_case == SINEW__V1__REQUEST__BODY_DESCRIBE_MODEL;
  const char *name = describe ? job->request->describe_model->model : job->request->load_model->model;
  SnError err = {0};
  bool kept;
  double began = sn_clock_now();
  SnLoadedModel *loaded = acquire_later(d, name, job, &kept, &err);
  if (kept) return false;
  if (!loaded) {
    fail(d, job, &err);
    return true;
  }
  SnScratch scratch = {0};
  Sinew__V1__LoadModelReply out = SINEW__V1__LOAD_MODEL_REPLY__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  out.model = loaded->name;
  out.seconds = sn_clock_now() - began;
  reply.body_case = describe ? SINEW__V1__REPLY__BODY_DESCRIBE_MODEL : SINEW__V1__REPLY__BODY_LOAD_MODEL;
  if (describe)
    reply.describe_model = sn_pack_model(&scratch, loaded, loaded->model);
  else
    reply.load_model = &out;
  sn_log_about(&d->log, SN_LOG_INFO, (SnLogIds){.request = job->route.id}, "loaded: model %s in %.3f s", loaded->name,
               out.seconds);
  SnReply *packed = sn_outbox_pack(&d->outbox, &job->route, scratch.failed ? NULL : &reply);
  sn_scratch_free(&scratch);
  sn_models_release(&d->models, loaded);
  sn_outbox_send(&d->outbox, packed);
  return true;
}

static void unload_model(SnDaemon *d, const SnJob *job) {
  SnError err = {0};
  if (sn_models_unload(&d->models, job->request->unload_model->model, &err) != SN_OK) {
    reply_error(d, job, &err);
    return;
  }
  Sinew__V1__UnloadModelReply out = SINEW__V1__UNLOAD_MODEL_REPLY__INIT;
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  reply.body_case = SINEW__V1__REPLY__BODY_UNLOAD_MODEL;
  reply.unload_model = &out;
  sn_outbox_reply(&d->outbox, &job->route, &reply);
}

// Nine digits by chance: a client of an earlier daemon must not steer a session of this one, and people read ids out
// loud.
static uint64_t random_id(SnDaemon *d) {
  uint32_t id = 0;
  const SnPeer *owner;
  while (id < 100000000 || sn_sessions_find(&d->sessions, id) || sn_keeper_restoring(&d->keeper, id, &owner))
    id = getrandom(&id, sizeof id, 0) == (ssize_t)sizeof id ? id % 1000000000 : 0;
  return id;
}

// A body may settle as long as its task wants, while the daemon does not stop.
static double settle_time(void *context) { return atomic_load((atomic_bool *)context) ? (double)INFINITY : 0; }

// The planner thread reserves the memory of the device that a new planner needs (device_proxy.c).
static SnPlannerDef planner_def(SnDaemon *d, const SnSession *session, bool device, uint64_t seed) {
  SnPlannerDef def = sn_default_planner_def();
  def.model = session->loaded->model;
  def.task = session->task;
  sn_backends_take(&d->scheduler.backends, device, &def.backend, &def.fallback);
  def.clock = sn_clock_monotonic();
  def.settle_clock = (SnClock){settle_time, &d->loader.ending};
  def.settle_until = 1;
  def.settings = session->opened_with;
  def.seed = seed;
  def.budget = &d->budget;
  return def;
}

// Makes the planner anew on the device where that is measured to be faster. Without room there it stays on the CPU.
static void move_to_device(SnDaemon *d, SnSession *session, SnPlannerDef *def) {
  SnBackends *b = &d->scheduler.backends;
  SnError err = {0};
  if (session->on_device || !sn_backends_wins(b, session->loaded->name, session->planner, &def->settings)) return;
  sn_backends_take(b, true, &def->backend, &def->fallback);
  SnPlanner *planner = sn_planner_create(def, &err);
  if (!planner) {
    sn_log_event(&d->log, SN_LOG_WARNING, "backend-chosen: cpu for %s after all: %s", session->loaded->name, err.text);
    return;
  }
  sn_planner_free(session->planner);
  session->planner = planner;
  session->on_device = true;
}

// Settings over those of the task: of a snapshot, if there is one, and of the request over those.
static SnCode read_settings(const SnDaemon *d, const Sinew__V1__OpenRequest *in, SnSettings *settings, SnError *err) {
  SnCode code = SN_OK;
  if (in && in->snapshot) code = sn_read_settings(in->snapshot->planner, &d->config, settings, err);
  return code == SN_OK ? sn_read_settings(in ? in->planner : NULL, &d->config, settings, err) : code;
}

static SnCode make_checksum(SnSession *session, SnError *err) {
  const uint64_t checksum = sn_model_checksum(sn_planner_model(session->planner), err);
  snprintf(session->checksum, sizeof session->checksum, "%016" PRIx64, checksum);
  return checksum ? SN_OK : err->code;
}

// What belongs to the session alone, and where a snapshot goes on.
static SnCode settle_session(const SnDaemon *d, SnSession *session, const Sinew__V1__OpenRequest *in,
                             const Sinew__V1__KeptSession *kept, SnError *err) {
  const Sinew__V1__Snapshot *from = in ? in->snapshot : NULL;
  SnCode code = in ? make_checksum(session, err) : SN_OK;
  if (code == SN_OK && from)
    code = sn_read_session_settings(from->session, session->planner, d->config.lease_seconds, &session->settings, err);
  if (code == SN_OK && from) code = sn_restore_snapshot(from, session->checksum, session->planner, err);
  if (code == SN_OK && kept) code = sn_check_terms(session->planner, kept->terms, kept->n_terms, err);
  if (code == SN_OK && kept) code = sn_apply_terms(session->planner, kept->terms, kept->n_terms, err);
  return code == SN_OK && in
             ? sn_read_session_settings(in->session, session->planner, d->config.lease_seconds, &session->settings, err)
             : code;
}

// The model of a task. Where there is none the error names the place in the task's file.
static SnLoadedModel *acquire_model(SnDaemon *d, const SnTask *task, SnJob *job, bool *kept, SnError *err) {
  SnError why = {0};
  SnLoadedModel *model = acquire_later(d, task->model, job, kept, &why);
  if (!model && why.code == SN_ERR_NOT_FOUND)
    sn_task_model_fault(task, why.code, why.text, err);
  else if (!model)
    *err = why;
  return model;
}

SnSession *sn_loader_create(SnDaemon *d, SnJob *job, const Sinew__V1__OpenRequest *in,
                            const Sinew__V1__KeptSession *kept, bool *parked, SnError *err) {
  const char *task = in ? in->task : job->request->describe_task->task;
  SnSession *session = calloc(1, sizeof *session);
  *parked = false;
  if (!session) {
    sn_fail(err, SN_ERR_MEMORY, "out of memory");
    return NULL;
  }
  sn_metrics_init(&session->metrics);
  session->id = kept ? kept->session : random_id(d);
  session->settings = sn_default_session_settings();
  session->settings.lease = fmin(session->settings.lease, d->config.lease_seconds);
  session->last_evaluation = &session->evaluations;
  session->turn_due = INFINITY;
  session->task = load_task(d, task, err);
  if (session->task && (!in || !in->snapshot || sn_check_snapshot(in->snapshot, session->task->name, err) == SN_OK))
    session->loaded = acquire_model(d, session->task, job, parked, err);
  if (session->loaded) {
    // What is only described needs no memory of the device.
    session->on_device = in && sn_backends_prefer_device(&d->scheduler.backends);
    SnPlannerDef def = planner_def(d, session, session->on_device,
                                   !in            ? 0
                                   : in->snapshot ? in->snapshot->seed
                                                  : in->seed);
    def.settings = session->task->settings;
    session->seed = def.seed;
    if (read_settings(d, in, &def.settings, err) == SN_OK) session->planner = sn_planner_create(&def, err);
    session->opened_with = def.settings;
    if (in && session->planner) move_to_device(d, session, &def);
  }
  if (!session->planner || settle_session(d, session, in, kept, err) != SN_OK) {
    sn_session_free(session, &d->models);
    return NULL;
  }
  const SnModel *m = sn_planner_model(session->planner);
  session->nq = m->nq, session->nv = m->nv, session->na = m->na, session->nu = m->nu, session->nmocap = m->nmocap;
  session->nhistory = sn_past_size(m);
  SnVersion *first = sn_version_capture(session->planner, &session->settings);
  if (!first) {
    sn_fail(err, SN_ERR_MEMORY, "out of memory");
    sn_session_free(session, &d->models);
    return NULL;
  }
  session->history.newest = session->history.before = kept ? kept->config_version - 1 : 0;
  sn_history_add(&session->history, first, session->planner);
  atomic_store(&session->lease, session->settings.lease);
  atomic_store(&session->config_version, first->number);
  return session;
}

static bool describe_task(SnDaemon *d, SnJob *job) {
  bool kept;
  SnError err = {0};
  SnScratch scratch = {0};
  SnSession *session = sn_loader_create(d, job, NULL, NULL, &kept, &err);
  if (kept) return false;
  if (!session) {
    fail(d, job, &err);
    return true;
  }
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  reply.body_case = SINEW__V1__REPLY__BODY_DESCRIBE_TASK;
  reply.describe_task = sn_pack_task(&scratch, session->loaded, session->planner);
  SnReply *packed = sn_outbox_pack(&d->outbox, &job->route, scratch.failed ? NULL : &reply);
  sn_scratch_free(&scratch);
  sn_session_free(session, &d->models);
  sn_outbox_send(&d->outbox, packed);
  return true;
}

void sn_loader_admit(SnDaemon *d, SnJob *job, SnSession *session, SnReply *reply) {
  SnKept *kept = session->kept = job->kept;
  const SnKeptBytes bytes = kept ? sn_pack_kept_session(session) : (SnKeptBytes){0};
  // Whatever ends the daemon once a client can ask for it, the next one counts this restart, too.
  if (job->restores) sn_keeper_write(kept, bytes);
  // The session is known to the event loop before its client can send the next request; from then on others own it.
  session->heard = sn_clock_now();
  session->owner = job->route.peer;
  session->client = job->route.link;
  atomic_store(&session->holds, 1);
  sn_scheduler_add(&d->scheduler, session);
  sn_sessions_add(&d->sessions, session);
  if (kept) sn_keeper_opened(kept, session->id);
  if (!kept)
    sn_outbox_send(&d->outbox, reply);
  else if (!job->restores)
    sn_keeper_post(kept, SN_KEPT_SETTINGS, bytes, reply);
  sn_scheduler_release(&d->scheduler, session);
}

static bool open_session(SnDaemon *d, SnJob *job) {
  const Sinew__V1__OpenRequest *in = job->request->open;
  bool kept;
  SnError err = {0};
  SnSession *session = sn_loader_create(d, job, in, NULL, &kept, &err);
  if (kept) return false;
  if (!session) {
    fail(d, job, &err);
    return true;
  }
  SnScratch scratch = {0};
  Sinew__V1__OpenReply out = SINEW__V1__OPEN_REPLY__INIT;
  out.session = session->id;
  out.initial = sn_pack_state(&scratch, sn_planner_model(session->planner), sn_planner_initial(session->planner));
  out.config = sn_pack_config(&scratch, session, sn_history_find(&session->history, 0), false);
  Sinew__V1__Reply reply = SINEW__V1__REPLY__INIT;
  reply.body_case = SINEW__V1__REPLY__BODY_OPEN;
  reply.open = &out;
  sn_log_about(&d->log, SN_LOG_INFO, (SnLogIds){.session = session->id, .request = job->route.id},
               "opened: task %s, model %s, seed %llu, %.1f MB%s", in->task, session->loaded->name,
               (unsigned long long)session->seed, sn_planner_bytes(session->planner) / (1 << 20),
               in->snapshot ? ", from a snapshot" : "");
  SnReply *packed = sn_outbox_pack(&d->outbox, &job->route, scratch.failed ? NULL : &reply);
  sn_scratch_free(&scratch);
  if (packed && packed->error == 0) {
    sn_loader_admit(d, job, session, packed);
    return true;
  }
  // Nobody would know of it.
  sn_outbox_send(&d->outbox, packed);
  sn_session_free(session, &d->models);
  sn_loader_unreserve(d, job);
  return true;
}

// A planner for a session that begins again: with a new seed, or from a snapshot. NULL and err on failure.
static SnPlanner *planner_anew(SnDaemon *d, const SnSession *session, const Sinew__V1__ResetRequest *in, SnError *err) {
  const Sinew__V1__Snapshot *from = in->snapshot;
  SnPlannerDef def = planner_def(d, session, session->on_device, from ? from->seed : in->seed);
  if (from && (sn_check_snapshot(from, session->task->name, err) != SN_OK ||
               sn_read_settings(from->planner, &d->config, &def.settings, err) != SN_OK))
    return NULL;
  if (def.settings.horizon != session->opened_with.horizon) {
    sn_fail(err, SN_ERR_ARGUMENT, "snapshot: horizon is %d; that of this session is %d for good", def.settings.horizon,
            session->opened_with.horizon);
    return NULL;
  }
  if (sn_settings_may_change(&session->opened_with, &def.settings, err) != SN_OK) return NULL;
  SnPlanner *planner = sn_planner_create(&def, err);
  if (!planner || !from || sn_restore_snapshot(from, session->checksum, planner, err) == SN_OK) return planner;
  sn_planner_free(planner);
  return NULL;
}

// A planner, which the planner thread puts in the place of the old one. True when the job went there.
static bool reset_session(SnDaemon *d, SnJob *job) {
  SnSession *session = job->session;
  SnError err = {0};
  job->planner = planner_anew(d, session, job->request->reset, &err);
  bool handed = job->planner && sn_scheduler_command(&d->scheduler, job);
  if (!handed) {
    if (job->planner) sn_fail(&err, SN_ERR_LIMIT, "too many requests are waiting for the planner; try again later");
    reply_error(d, job, &err);
    sn_planner_free(job->planner);
  }
  sn_scheduler_release(&d->scheduler, session);
  return handed;
}

// True when the job is done, false when it has been handed on.
static bool carry_out(SnDaemon *d, SnJob *job) {
  switch (job->request->body_case) {
    case SINEW__V1__REQUEST__BODY_LIST_MODELS:
      list_models(d, job);
      break;
    case SINEW__V1__REQUEST__BODY_LIST_TASKS:
      list_tasks(d, job);
      break;
    case SINEW__V1__REQUEST__BODY_LOAD_MODEL:
    case SINEW__V1__REQUEST__BODY_DESCRIBE_MODEL:
      return load_model(d, job);
    case SINEW__V1__REQUEST__BODY_UNLOAD_MODEL:
      unload_model(d, job);
      break;
    case SINEW__V1__REQUEST__BODY_DESCRIBE_TASK:
      return describe_task(d, job);
    case SINEW__V1__REQUEST__BODY_OPEN:
      return job->restores ? sn_restore_session(d, job) : open_session(d, job);
    case SINEW__V1__REQUEST__BODY_RESET:
      return !reset_session(d, job);
    default:
      break;
  }
  return true;
}

static void refuse(SnDaemon *d, SnJob *job) {
  if (job->request->body_case == SINEW__V1__REQUEST__BODY_OPEN) sn_loader_unreserve(d, job);
  if (job->session) sn_scheduler_release(&d->scheduler, job->session);
  if (!job->restores)
    sn_outbox_error(&d->outbox, &job->route, SINEW__V1__ERROR__CODE__SHUTTING_DOWN, "the daemon stops");
  sn_job_free(job);
}

// ---- threads ----

static bool same_client(const SnRoute *a, const SnRoute *b) {
  return a->size == b->size && a->size > 0 && !memcmp(a->identity, b->identity, a->size);
}

// Lines up a job that was parked. There is room for one more of each thread (sn_loader_start). It is counted once at
// most: a request that comes meanwhile is not refused for it twice.
static void line_up(SnDaemon *d, SnJob *job) {
  atomic_fetch_sub(&d->loader.parked, 1);
  if (!sn_queue_push(&d->loader.jobs, job)) refuse(d, job);
}

// What waited for a model goes on, or fails as its load did. A session of the last daemon may try again.
static void resume(void *context, void *item, const SnError *failure) {
  SnDaemon *d = context;
  SnJob *job = item;
  if (!failure || sn_restore_again(job)) {
    line_up(d, job);
    return;
  }
  atomic_fetch_sub(&d->loader.parked, 1);
  fail(d, job, failure);
  sn_job_free(job);
}

// Notes that a thread works on a job. False: its client has threads enough, and it is held.
static bool begin_work(SnDaemon *d, int thread, SnJob *job) {
  SnLoader *l = &d->loader;
  int n = 0;
  pthread_mutex_lock(&l->mutex);
  for (int i = 0; i < d->config.loaders; i++) n += same_client(&l->at_work[i], &job->route);
  const bool may = n < (d->config.loaders > 1 ? d->config.loaders - 1 : 1);
  if (may) {
    l->at_work[thread] = job->route;
  } else {
    SnJob **last = &l->held;
    while (*last) last = &(*last)->next;
    job->next = NULL;
    *last = job;
    atomic_fetch_add(&l->parked, 1);
  }
  pthread_mutex_unlock(&l->mutex);
  return may;
}

// A thread is free again: the first job of its client that is held lines up.
static void end_work(SnDaemon *d, int thread) {
  SnLoader *l = &d->loader;
  pthread_mutex_lock(&l->mutex);
  SnJob **link = &l->held;
  while (*link && !same_client(&(*link)->route, &l->at_work[thread])) link = &(*link)->next;
  SnJob *job = *link;
  if (job) *link = job->next;
  l->at_work[thread].size = 0;
  pthread_mutex_unlock(&l->mutex);
  if (job) line_up(d, job);
}

typedef struct LoaderThread {
  SnDaemon *d;
  int index;
} LoaderThread;

static void *loader_main(void *argument) {
  const LoaderThread self = *(LoaderThread *)argument;
  free(argument);
  SnDaemon *d = self.d;
  SnQueue *jobs = &d->loader.jobs;
  for (;;) {
    SnJob *job = sn_queue_pop(jobs, sn_clock_now() + 3600);
    if (!job && sn_queue_closed(jobs)) return NULL;
    if (!job) continue;
    if (sn_queue_closed(jobs)) {
      refuse(d, job);
    } else if (begin_work(d, self.index, job)) {
      if (carry_out(d, job)) sn_job_free(job);
      end_work(d, self.index);
    }
  }
}

static bool start_thread(SnDaemon *d, int index) {
  LoaderThread *self = malloc(sizeof *self);
  if (!self) return false;
  *self = (LoaderThread){d, index};
  if (pthread_create(&d->loader.thread[index], NULL, loader_main, self) == 0) return true;
  free(self);
  return false;
}

SnCode sn_loader_start(SnDaemon *d, SnError *err) {
  SnLoader *l = &d->loader;
  pthread_mutex_init(&l->mutex, NULL);
  d->models.resume = resume;
  d->models.context = d;
  if (!sn_queue_init(&l->jobs, d->config.queue + SN_LOADER_THREADS + d->config.sessions))
    return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  for (l->threads = 0; l->threads < d->config.loaders; l->threads++)
    if (!start_thread(d, l->threads))
      return sn_fail(err, SN_ERR_LIMIT, "cannot start loader thread %d", l->threads + 1);
  return SN_OK;
}

int sn_loader_waiting(SnLoader *l) { return sn_queue_count(&l->jobs) + atomic_load(&l->parked); }

bool sn_loader_push(SnDaemon *d, SnJob *job) {
  return sn_loader_waiting(&d->loader) < d->config.queue && sn_queue_push(&d->loader.jobs, job);
}

void sn_loader_stop(SnDaemon *d) {
  SnLoader *l = &d->loader;
  if (l->threads == 0) return;
  sn_queue_close(&l->jobs);
  atomic_store(&l->ending, true);
  sn_models_cancel(&d->models);
  for (int i = 0; i < l->threads; i++) pthread_join(l->thread[i], NULL);
  for (SnJob *job = l->held, *next; job; job = next) {
    next = job->next;
    refuse(d, job);
  }
  l->held = NULL;
  for (SnJob *job = l->suspects, *next; job; job = next) {
    next = job->next;
    refuse(d, job);
  }
  l->suspects = NULL;
  sn_queue_free(&l->jobs);
  pthread_mutex_destroy(&l->mutex);
  l->threads = 0;
}
