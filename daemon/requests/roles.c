// Which request needs which role: the one table of it.
#include "daemon/requests/roles_private.h"

SnRole sn_role_needed(Sinew__V1__Request__BodyCase body) {
  switch (body) {
    case SINEW__V1__REQUEST__BODY_HELLO:
    case SINEW__V1__REQUEST__BODY_HEALTH:
    case SINEW__V1__REQUEST__BODY_STATISTICS:
    case SINEW__V1__REQUEST__BODY_METRICS:
    case SINEW__V1__REQUEST__BODY_LIST_MODELS:
    case SINEW__V1__REQUEST__BODY_LIST_TASKS:
      return SN_ROLE_WATCH;
    // A model is loaded for these, as for a session.
    case SINEW__V1__REQUEST__BODY_DESCRIBE_MODEL:
    case SINEW__V1__REQUEST__BODY_DESCRIBE_TASK:
    case SINEW__V1__REQUEST__BODY_LOAD_MODEL:
    case SINEW__V1__REQUEST__BODY_OPEN:
    case SINEW__V1__REQUEST__BODY_CLOSE:
    case SINEW__V1__REQUEST__BODY_PLAN:
    case SINEW__V1__REQUEST__BODY_EVALUATE:
    case SINEW__V1__REQUEST__BODY_GET_CONFIG:
    case SINEW__V1__REQUEST__BODY_RESET:
    case SINEW__V1__REQUEST__BODY_STREAM:
    case SINEW__V1__REQUEST__BODY_STREAM_STATE:
    case SINEW__V1__REQUEST__BODY_SNAPSHOT:
    case SINEW__V1__REQUEST__BODY_TRACE:
      return SN_ROLE_PLAN;
    case SINEW__V1__REQUEST__BODY_SET_CONFIG:
    case SINEW__V1__REQUEST__BODY_REVERT:
      return SN_ROLE_TUNE;
    // What others may want to use, and what this version does not know.
    case SINEW__V1__REQUEST__BODY_UNLOAD_MODEL:
    case SINEW__V1__REQUEST__BODY_FLIGHT:
    default:
      return SN_ROLE_ADMIN;
  }
}

bool sn_may_use(const SnPeer *peer, const SnSession *session) {
  return peer->role == SN_ROLE_ADMIN || session->owner == peer;
}

bool sn_may_know(const SnPeer *peer, const SnSession *session) {
  return peer && (peer->trusted || (session->owner == peer && *peer->key));
}

bool sn_needs_planning(Sinew__V1__Request__BodyCase body) {
  return body == SINEW__V1__REQUEST__BODY_PLAN || body == SINEW__V1__REQUEST__BODY_STREAM_STATE ||
         body == SINEW__V1__REQUEST__BODY_EVALUATE;
}
