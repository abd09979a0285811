// Records of what a session does, in the order of its effect (daemon/wire/records.h).
#include "daemon/planning/backends_private.h"
#include "daemon/planning/serve_private.h"

static bool wanted(SnScheduler *s, SnSession *session) {
  return sn_records_wanted(s->records, &session->audience, session->id);
}

static Sinew__V1__Record begin_record(const SnSession *session, Sinew__V1__Record__BodyCase body) {
  Sinew__V1__Record record = SINEW__V1__RECORD__INIT;
  record.session = session->id;
  record.body_case = body;
  return record;
}

// The name of a record's body is its kind.
static void send_record(SnScheduler *s, SnSession *session, Sinew__V1__Record *record) {
  const ProtobufCFieldDescriptor *field =
      protobuf_c_message_descriptor_get_field(&sinew__v1__record__descriptor, (unsigned)record->body_case);
  sn_records_send(s->records, &session->audience, field->name, record);
}

static const char *backend_of(const SnScheduler *s, const SnSession *session) {
  return session->on_device && sn_backends_device_works(&s->backends) ? sn_backend_name(s->backends.device) : "cpu";
}

static void record_open(SnScheduler *s, SnSession *session) {
  SnScratch scratch = {0};
  Sinew__V1__Record record = begin_record(session, SINEW__V1__RECORD__BODY_OPEN);
  Sinew__V1__OpenRecord out = SINEW__V1__OPEN_RECORD__INIT;
  out.task = session->task->name;
  out.task_text = session->task->text;
  out.model = session->loaded->name;
  out.model_file = session->loaded->file;
  out.checksum = session->checksum;
  out.seed = session->seed;
  out.version = SN_VERSION;
  out.number = sn_pack_number_type();
  out.backend = (char *)(uintptr_t)backend_of(s, session);
  out.description = sn_pack_task(&scratch, session->loaded, session->planner);
  out.config = sn_pack_config(&scratch, session, sn_history_find(&session->history, 0), false);
  record.open = &out;
  if (!scratch.failed) send_record(s, session, &record);
  sn_scratch_free(&scratch);
}

static void record_snapshot(SnScheduler *s, SnSession *session) {
  SnScratch scratch = {0};
  SnError err = {0};
  Sinew__V1__Record record = begin_record(session, SINEW__V1__RECORD__BODY_SNAPSHOT);
  Sinew__V1__Snapshot out = SINEW__V1__SNAPSHOT__INIT;
  record.snapshot = &out;
  if (sn_pack_snapshot(&scratch, session, &out, &err) == SN_OK) send_record(s, session, &record);
  sn_scratch_free(&scratch);
}

void sn_record_greet(SnScheduler *s, SnSession *session) {
  SnAudience *audience = &session->audience;
  if (!wanted(s, session) || !(audience->joined || audience->out_of_order)) return;
  if (audience->joined) record_open(s, session);
  record_snapshot(s, session);
  audience->joined = audience->out_of_order = false;
}

void sn_record_begin(SnScheduler *s, SnSession *session) {
  if (!wanted(s, session)) return;
  Sinew__V1__Record record = begin_record(session, SINEW__V1__RECORD__BODY_BEGIN);
  Sinew__V1__PlanBegin out = SINEW__V1__PLAN_BEGIN__INIT;
  const Sinew__V1__Request *request = session->active->request;
  out.sequence = sn_planner_number(session->planner);
  out.latency = session->settings.latency;
  out.config_version = session->history.newest;
  out.streamed = sn_job_streams(session->active);
  if (out.streamed) {
    out.state = request->stream_state->state;
    out.applied = request->stream_state->applied;
    out.deadline = session->stream.deadline;
    out.iterations = (uint32_t)session->stream.iterations;
    out.want_states = session->stream.want_states;
  } else {
    out.state = request->plan->state;
    out.applied = request->plan->applied;
    out.deadline = request->plan->deadline;
    out.want_states = request->plan->want_states;
    if (request->plan->has_iterations_case) out.iterations = request->plan->iterations;
    if (request->plan->has_candidates_case) out.candidates = request->plan->candidates;
  }
  record.begin = &out;
  send_record(s, session, &record);
}

void sn_record_plan(SnScheduler *s, SnSession *session, Sinew__V1__Plan *plan) {
  if (!wanted(s, session)) return;
  Sinew__V1__Record record = begin_record(session, SINEW__V1__RECORD__BODY_PLAN);
  record.plan = plan;
  send_record(s, session, &record);
}

void sn_record_streamed(SnScheduler *s, SnSession *session, const SnPlan *plan, SnTiming timing) {
  if (!wanted(s, session)) return;
  SnScratch scratch = {0};
  Sinew__V1__Plan out = SINEW__V1__PLAN__INIT;
  sn_serve_pack_plan(&scratch, session, plan, &out);
  out.age = timing.age;
  out.deadline_met = session->stream.in_time;
  out.stream_sequence = session->stream.sent;
  out.stream_misses = session->stream.misses;
  if (!scratch.failed) sn_record_plan(s, session, &out);
  sn_scratch_free(&scratch);
}

void sn_record_config(SnScheduler *s, SnSession *session, Sinew__V1__Config *config) {
  if (session->active) session->audience.out_of_order = true;
  if (!wanted(s, session)) return;
  Sinew__V1__Record record = begin_record(session, SINEW__V1__RECORD__BODY_CONFIG);
  Sinew__V1__ConfigRecord out = SINEW__V1__CONFIG_RECORD__INIT;
  out.config = config;
  out.plan = session->active ? sn_planner_number(session->planner) : 0;
  out.iterations = (uint32_t)sn_planner_iterations(session->planner);
  record.config = &out;
  send_record(s, session, &record);
}

void sn_record_reset(SnScheduler *s, SnSession *session, Sinew__V1__ResetReply *reset) {
  if (!wanted(s, session)) return;
  Sinew__V1__Record record = begin_record(session, SINEW__V1__RECORD__BODY_RESET);
  record.reset = reset;
  send_record(s, session, &record);
}

void sn_record_close(SnScheduler *s, SnSession *session) {
  if (!wanted(s, session)) return;
  Sinew__V1__Record record = begin_record(session, SINEW__V1__RECORD__BODY_CLOSE);
  Sinew__V1__CloseReply out = SINEW__V1__CLOSE_REPLY__INIT;
  record.close = &out;
  send_record(s, session, &record);
}
