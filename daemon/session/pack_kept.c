// What is kept of a session that has a name, as files have it.
#include <stdlib.h>

#include "daemon/session/pack.h"

enum { VERSION = 1 };  // of KeptSession

// Packs a message and frees the scratch that it is made of.
static SnKeptBytes pack(SnScratch *scratch, const ProtobufCMessage *message) {
  SnKeptBytes out = {0};
  if (!scratch->failed) {
    const size_t size = protobuf_c_message_get_packed_size(message);
    out.bytes = malloc(size + 1);
    if (out.bytes) out.size = protobuf_c_message_pack(message, out.bytes);
  }
  sn_scratch_free(scratch);
  return out;
}

SnKeptBytes sn_pack_kept_session(const SnSession *session) {
  SnScratch scratch = {0};
  const SnKept *kept = session->kept;
  const SnVersion *version = sn_history_find(&session->history, 0);
  Sinew__V1__KeptSession out = SINEW__V1__KEPT_SESSION__INIT;
  out.version = VERSION;
  out.session = session->id;
  out.name = (char *)(uintptr_t)kept->name;
  out.owner = (char *)(uintptr_t)sn_keeper_owner(kept->keeper, kept->owner);
  out.restarts = kept->restarts;
  out.epoch = kept->epoch;
  out.task = session->task->name;
  out.seed = session->seed;
  out.config_version = version->number;
  out.planner = sn_pack_settings(&scratch, &version->planner);
  out.settings = sn_pack_session_settings(&scratch, &version->session);
  out.terms = sn_pack_term_settings(&scratch, sn_planner_cost(session->planner), version, &out.n_terms);
  return pack(&scratch, &out.base);
}

SnKeptBytes sn_pack_kept_warm_start(const SnSession *session) {
  SnScratch scratch = {0};
  SnError err = {0};
  Sinew__V1__Snapshot snapshot = SINEW__V1__SNAPSHOT__INIT;
  Sinew__V1__KeptWarmStart out = SINEW__V1__KEPT_WARM_START__INIT;
  out.session = session->id;
  out.epoch = session->kept->epoch;
  out.snapshot = &snapshot;
  if (sn_pack_snapshot(&scratch, session, &snapshot, &err) != SN_OK) scratch.failed = true;
  return pack(&scratch, &out.base);
}
