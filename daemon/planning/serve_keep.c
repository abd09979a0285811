// What outlasts the daemon is handed to the thread that writes it.
#include "daemon/planning/serve_private.h"
#include "physics/base/clock.h"

void sn_serve_keep(SnSession *session, const SnRoute *route, Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_RESET) session->kept->epoch++;
  sn_keeper_post(session->kept, SN_KEPT_SETTINGS, sn_pack_kept_session(session),
                 sn_outbox_pack(session->kept->keeper->outbox, route, reply));
}

void sn_serve_keep_warm(const SnScheduler *s, SnSession *session, bool last) {
  SnKept *kept = session->kept;
  const double now = sn_clock_now();
  if (!kept || (!last && now - kept->warmed < s->config->state_seconds)) return;
  const SnKeptBytes bytes = sn_pack_kept_warm_start(session);
  if (!bytes.bytes) return;  // the next plan tries again
  kept->warmed = now;
  sn_keeper_post(kept, SN_KEPT_WARM, bytes, NULL);
}
