// Names of statuses, for both libraries.
#include "clients/include/sinew.h"

const char *sinew_status_name(SinewStatus status) {
  switch (status) {
    case SINEW_OK:
      return "ok";
    case SINEW_ERR_ARGUMENT:
      return "argument";
    case SINEW_ERR_MEMORY:
      return "memory";
    case SINEW_ERR_IO:
      return "io";
    case SINEW_ERR_FORMAT:
      return "format";
    case SINEW_ERR_UNSUPPORTED:
      return "unsupported";
    case SINEW_ERR_LIMIT:
      return "limit";
    case SINEW_ERR_NOT_FOUND:
      return "not found";
    case SINEW_ERR_TIMEOUT:
      return "timeout";
    case SINEW_ERR_STATE:
      return "state";
    case SINEW_ERR_DIVERGED:
      return "diverged";
    case SINEW_ERR_DEVICE:
      return "device lost";
    case SINEW_ERR_INTERRUPTED:
      return "interrupted";
    case SINEW_ERR_REFUSED:
      return "refused";
    case SINEW_ERR_PROTOCOL:
      return "protocol";
    case SINEW_ERR_NO_PLAN:
      return "no plan";
    case SINEW_ERR_EXPIRED:
      return "expired";
    case SINEW_ERR_ENDED:
      return "ended";
    case SINEW_ERR_BAD_PLAN:
      return "bad plan";
    case SINEW_ERR_NO_SESSION:
      return "no session";
  }
  return "unknown status";
}
