// Continuous mode: states go, plans come, nothing waits.
#include <math.h>

#include "clients/base/api.h"
#include "clients/libsinew_client/session_private.h"
#include "clients/libsinew_client/wire.h"
#include "physics/base/clock.h"

static const ApiStruct DEF = {"SinewStreamDef", "sinew_default_stream", sizeof(SinewStreamDef),
                              API_END(SinewStreamDef, iterations)};

static Sinew__V1__StreamRequest terms_of(const SinewSession *session, const SinewStreamDef *def) {
  Sinew__V1__StreamRequest in = SINEW__V1__STREAM_REQUEST__INIT;
  in.session = session->info.id;
  in.lease = def->lease;
  in.deadline = def->deadline;
  in.period = def->period;
  in.iterations = (uint32_t)def->iterations;
  in.gain_rows = (uint32_t)session->gain_rows;
  return in;
}

static SinewStatus stream_request(SinewSession *session, const SinewStreamDef *def, bool stop, SinewError *err) {
  Sinew__V1__StreamRequest in = terms_of(session, def);
  in.stop = stop;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_STREAM;
  request.stream = &in;
  Sinew__V1__Reply *reply;
  const SinewStatus status = sn_session_request(session, &request, &reply, err);
  const bool anew = status == SINEW_OK && (stop || reply->stream->states == 0);  // plans are numbered anew
  if (anew) {
    session->read = 0;
    sn_wire_forget_stream(session->client, session->info.id);
  }
  if (status == SINEW_OK) session->streaming = !stop;
  if (status == SINEW_OK) session->stream = *def;
  sn_free_reply(reply);
  return status;
}

// A daemon that was started again knows the session and not its stream: that begins anew, and nobody waits for it.
static SinewStatus begin_again(SinewSession *session, SinewError *err) {
  Sinew__V1__StreamRequest in = terms_of(session, &session->stream);
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_STREAM;
  request.stream = &in;
  session->read = 0;
  const SinewStatus status = sn_wire_send(session->client, &request, NULL, err);
  return status == SINEW_OK ? SINEW_ERR_TIMEOUT : status;
}

SinewStatus sinew_session_stream_start(SinewSession *session, const SinewStreamDef *caller, SinewError *err) {
  if (!session) return api_fail(err, SINEW_ERR_ARGUMENT, "session is NULL");
  SinewStreamDef def = sinew_default_stream();
  const SinewStatus status = caller ? api_take(&DEF, caller, &def, err) : SINEW_OK;
  if (status != SINEW_OK) return status;
  if (def.iterations < 0)
    return api_fail(err, SINEW_ERR_ARGUMENT, "SinewStreamDef.iterations is %d; allowed is at least 0", def.iterations);
  return stream_request(session, &def, false, err);
}

SinewStatus sinew_session_stream_stop(SinewSession *session, SinewError *err) {
  if (!session) return api_fail(err, SINEW_ERR_ARGUMENT, "session is NULL");
  const SinewStreamDef def = sinew_default_stream();
  return stream_request(session, &def, true, err);
}

SinewStatus sinew_session_stream_send(SinewSession *session, const SinewState *state, SinewError *err) {
  Sinew__V1__State s;
  const SinewStatus status = sn_session_state(session, state, &s, err);
  if (status != SINEW_OK) return status;
  Sinew__V1__StreamState in = SINEW__V1__STREAM_STATE__INIT;
  in.session = session->info.id;
  in.state = &s;
  in.has_seen_case = SINEW__V1__STREAM_STATE__HAS_SEEN_SEEN;
  in.seen = session->read;
  sn_session_stamp(session, state->time);
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_STREAM_STATE;
  request.stream_state = &in;
  return sn_wire_send(session->client, &request, NULL, err);
}

static const char *end_text(Sinew__V1__StreamReply__End end) {
  if (end == SINEW__V1__STREAM_REPLY__END__LEASE) return "no state came within its lease";
  return end == SINEW__V1__STREAM_REPLY__END__SHUTTING_DOWN ? "the daemon stops" : "the session was closed";
}

// Tells what a reply means for the stream; SINEW_ERR_TIMEOUT: nothing. Takes the reply over.
static SinewStatus take_streamed(SinewSession *session, Sinew__V1__Reply *reply, SinewError *err) {
  SinewStatus status = SINEW_ERR_TIMEOUT;
  if (session->streaming && sn_session_outlasts(session, reply)) {
    sn_free_reply(reply);  // the next daemon answers the states to come
    return status;
  }
  if (reply->body_case == SINEW__V1__REPLY__BODY_PLAN && reply->plan->session == session->info.id &&
      reply->plan->stream_sequence > session->read) {
    const uint64_t sequence = reply->plan->stream_sequence;
    if (sn_session_outlived(session, reply->plan))
      sn_free_reply(reply);
    else
      status = sn_session_take_plan(session, reply, err);
    if (status != SINEW_ERR_BAD_PLAN) session->read = sequence;  // the number of a plan that is refused is not believed
    return status;
  }
  if (reply->body_case == SINEW__V1__REPLY__BODY_ERROR && !sn_wire_coming(reply))
    status = session->streaming && reply->error->code == SINEW__V1__ERROR__CODE__STATE
                 ? begin_again(session, err)
                 : sn_wire_check(reply, true, err);
  if (reply->body_case == SINEW__V1__REPLY__BODY_STREAM && reply->stream->session == session->info.id &&
      reply->stream->end != SINEW__V1__STREAM_REPLY__END__RUNNING)
    status = sn_wire_fail(err, SINEW_ERR_ENDED, "continuous mode has ended: %s", end_text(reply->stream->end));
  if (status == SINEW_ERR_ENDED || status == SINEW_ERR_NO_SESSION) session->streaming = false;
  sn_free_reply(reply);
  return status;
}

SinewStatus sinew_session_stream_receive(SinewSession *session, double wait, SinewError *err) {
  if (!session) return api_fail(err, SINEW_ERR_ARGUMENT, "session is NULL");
  const double until = sn_clock_now() + wait;
  SinewStatus found = SINEW_ERR_TIMEOUT;
  for (;;) {
    Sinew__V1__Reply *reply;
    // Once something has come, only what lies there already is read too.
    const double left = found == SINEW_ERR_TIMEOUT ? until - sn_clock_now() : 0;
    SinewStatus status = sn_wire_receive(session->client, left, &reply, err);
    if (status == SINEW_ERR_TIMEOUT && found == SINEW_ERR_TIMEOUT)
      return api_fail(err, SINEW_ERR_TIMEOUT, "no plan has come within %g s", wait);
    if (status == SINEW_ERR_TIMEOUT) return found;
    if (status == SINEW_OK) status = take_streamed(session, reply, err);
    if (status == SINEW_ERR_TIMEOUT) continue;
    if (status != SINEW_OK && status != SINEW_ERR_NO_PLAN) return status;
    found = status;
  }
}
