// Changes of a session that runs: settings, weights and targets of its cost.
#include "clients/base/api.h"
#include "clients/libsinew_client/reflect.h"
#include "clients/libsinew_client/session_private.h"
#include "clients/libsinew_client/wire.h"

static SinewStatus change(SinewSession *session, Sinew__V1__SetConfigRequest *in, SinewError *err) {
  in->session = session->info.id;
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_SET_CONFIG;
  request.set_config = in;
  Sinew__V1__Reply *reply;
  const SinewStatus status = sn_session_request(session, &request, &reply, err);
  sn_free_reply(reply);
  return status == SINEW_OK ? api_ok(err) : status;
}

static SinewStatus change_term(SinewSession *session, const char *name, Sinew__V1__TermSettings *term,
                               SinewError *err) {
  if (!session) return api_fail(err, SINEW_ERR_ARGUMENT, "session is NULL");
  if (!name) return api_fail(err, SINEW_ERR_ARGUMENT, "term is NULL");
  Sinew__V1__SetConfigRequest in = SINEW__V1__SET_CONFIG_REQUEST__INIT;
  term->name = (char *)(uintptr_t)name;
  in.n_terms = 1;
  in.terms = &term;
  return change(session, &in, err);
}

SinewStatus sinew_session_set(SinewSession *session, const char *assignment, SinewError *err) {
  if (!session) return api_fail(err, SINEW_ERR_ARGUMENT, "session is NULL");
  if (!assignment) return api_fail(err, SINEW_ERR_ARGUMENT, "assignment is NULL");
  char text[SN_MESSAGE_ERROR];
  Sinew__V1__SetConfigRequest in = SINEW__V1__SET_CONFIG_REQUEST__INIT;
  Sinew__V1__PlannerSettings planner = SINEW__V1__PLANNER_SETTINGS__INIT;
  Sinew__V1__SessionSettings settings = SINEW__V1__SESSION_SETTINGS__INIT;
  static const ProtobufCMessageDescriptor *const types[] = {&sinew__v1__planner_settings__descriptor,
                                                            &sinew__v1__session_settings__descriptor};
  const int owner = sn_message_owner(types, 2, assignment, "setting", "", text, sizeof text);
  if (owner < 0) return sn_wire_fail(err, SINEW_ERR_ARGUMENT, "%s", text);
  const bool of_session = owner == 1;
  ProtobufCMessage *message = of_session ? &settings.base : &planner.base;
  if (of_session)
    in.settings = &settings;
  else
    in.planner = &planner;
  const SinewStatus status = sn_message_set(message, assignment, text, sizeof text)
                                 ? change(session, &in, err)
                                 : sn_wire_fail(err, SINEW_ERR_ARGUMENT, "setting: %s", text);
  sn_message_clear(message);
  return status;
}

SinewStatus sinew_session_set_weight(SinewSession *session, const char *term, double weight, double terminal,
                                     SinewError *err) {
  Sinew__V1__TermSettings settings = SINEW__V1__TERM_SETTINGS__INIT;
  settings.has_weight_case = SINEW__V1__TERM_SETTINGS__HAS_WEIGHT_WEIGHT;
  settings.weight = weight;
  settings.has_terminal_weight_case = SINEW__V1__TERM_SETTINGS__HAS_TERMINAL_WEIGHT_TERMINAL_WEIGHT;
  settings.terminal_weight = terminal;
  return change_term(session, term, &settings, err);
}

SinewStatus sinew_session_set_target(SinewSession *session, const char *term, const double *value, int n,
                                     SinewError *err) {
  if (n < 0 || (n > 0 && !value)) return api_fail(err, SINEW_ERR_ARGUMENT, "value is NULL, or n, %d, is negative", n);
  Sinew__V1__TermSettings settings = SINEW__V1__TERM_SETTINGS__INIT;
  if (n == 0) {
    settings.has_own_target_case = SINEW__V1__TERM_SETTINGS__HAS_OWN_TARGET_OWN_TARGET;
    settings.own_target = true;
  }
  settings.n_target = (size_t)n;
  settings.target = (double *)(uintptr_t)value;
  return change_term(session, term, &settings, err);
}
