#include "daemon/wire/zap_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

// Frames of a request, and the bytes that are read of each. ANSWER_BURST are answered before others get their turn.
enum { VERSION, REQUEST, DOMAIN, ADDRESS, IDENTITY, MECHANISM, CREDENTIALS, FRAMES };
enum { FRAME_BYTES = 256, KEY_BYTES = 32, ANSWER_BURST = 64 };

#define REPORT_TIME 60.0

typedef struct Frame {
  char bytes[FRAME_BYTES + 1];  // ends with a zero
  int size;
} Frame;

static bool make_token(char token[SN_ZAP_TOKEN]) {
  unsigned char bytes[SN_ZAP_TOKEN / 2];
  if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) return false;
  for (size_t i = 0; i < sizeof bytes; i++) snprintf(token + 2 * i, 3, "%02x", bytes[i]);
  return true;
}

SnCode sn_zap_open(SnZap *zap, void *context, const SnConfig *config, SnAccess *access, const SnLog *log,
                   SnError *err) {
  char why[1024];
  *zap = (SnZap){.access = access, .log = log, .ipc_only = !*config->tcp && !strncmp(config->endpoint, "ipc://", 6)};
  if (!*config->curve_key && !*config->allow) return SN_OK;
  if (!*config->curve_key || !*config->allow)
    return sn_fail(err, SN_ERR_ARGUMENT, "curve_key and allow go together; %s is not set",
                   *config->allow ? "curve_key" : "allow");
  if (!zmq_has("curve")) return sn_fail(err, SN_ERR_UNSUPPORTED, "curve_key: this libzmq has no encryption (CURVE)");
  if (!sn_key_read_secret(config->curve_key, zap->secret, why, sizeof why))
    return sn_fail(err, SN_ERR_ARGUMENT, "curve_key: %s", why);
  if (!make_token(zap->token)) return sn_fail(err, SN_ERR_IO, "the system gives no random numbers");
  const int zero = 0;
  zap->socket = zmq_socket(context, ZMQ_REP);
  if (!zap->socket || zmq_setsockopt(zap->socket, ZMQ_LINGER, &zero, sizeof zero) != 0 ||
      zmq_bind(zap->socket, "inproc://zeromq.zap.01") != 0)
    return sn_fail(err, SN_ERR_LIMIT, "cannot listen for keys: %s", zmq_strerror(errno));
  return SN_OK;
}

void sn_zap_close(SnZap *zap) {
  if (zap->socket) zmq_close(zap->socket);
  explicit_bzero(zap->secret, sizeof zap->secret);
  zap->socket = NULL;
}

SnCode sn_zap_secure(const SnZap *zap, void *socket, const char *address, const char *domain, SnError *err) {
  if (!zap->socket || strncmp(address, "tcp://", 6) != 0) return SN_OK;
  const int yes = 1;
  if (zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &yes, sizeof yes) == 0 &&
      zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, zap->secret, SN_KEY_TEXT) == 0 &&
      zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, domain, strlen(domain)) == 0)
    return SN_OK;
  return sn_fail(err, SN_ERR_ARGUMENT, "curve_key: libzmq does not take this key for %s: %s", address,
                 zmq_strerror(errno));
}

// Reads a request, all frames of it. False when there is none; *count may be any number.
static bool read_request(void *socket, Frame frame[FRAMES], int *count) {
  *count = 0;
  for (int more = 1; more; ++*count) {
    size_t size = sizeof more;
    Frame rest, *to = *count < FRAMES ? &frame[*count] : &rest;
    to->size = zmq_recv(socket, to->bytes, FRAME_BYTES, ZMQ_DONTWAIT);
    if (to->size < 0) return false;
    to->bytes[to->size < FRAME_BYTES ? to->size : FRAME_BYTES] = '\0';
    zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size);
  }
  return true;
}

// The number of the peer that asks; -1, and why not, for nobody.
static int judge(const SnZap *zap, const Frame frame[FRAMES], int count, char key[SN_KEY_TEXT], const char **why) {
  strcpy(key, "none");
  *why = "no key was shown";
  if (count != FRAMES || strcmp(frame[VERSION].bytes, "1.0") || strcmp(frame[MECHANISM].bytes, "CURVE") ||
      frame[CREDENTIALS].size != KEY_BYTES ||
      !zmq_z85_encode(key, (const uint8_t *)frame[CREDENTIALS].bytes, KEY_BYTES))
    return -1;
  const int peer = sn_access_find(zap->access, key);
  *why = "it is not on the list";
  if (peer < 0) return -1;
  // Records have all that happens in all sessions.
  *why = "records need the role admin";
  return strcmp(frame[DOMAIN].bytes, "records") || zap->access->peer[peer]->role == SN_ROLE_ADMIN ? peer : -1;
}

static void answer(SnZap *zap, const Frame frame[FRAMES], int count) {
  const char *why;
  char key[SN_KEY_TEXT], name[SN_ZAP_TOKEN + 16] = "";
  const int peer = judge(zap, frame, count, key, &why);
  if (peer >= 0) {
    snprintf(name, sizeof name, "%s:%d", zap->token, peer);
  } else {
    zap->denied++;
    snprintf(zap->latest, sizeof zap->latest, "from %.60s for %.16s with the key %s: %s",
             count > ADDRESS ? frame[ADDRESS].bytes : "", count > DOMAIN ? frame[DOMAIN].bytes : "", key, why);
  }
  const char *const text[] = {"1.0", NULL, peer >= 0 ? "200" : "400", peer >= 0 ? "OK" : "denied", name, ""};
  enum { REPLIES = sizeof text / sizeof *text };
  for (int i = 0; i < REPLIES; i++) {
    const int size = frame[REQUEST].size < FRAME_BYTES ? frame[REQUEST].size : FRAME_BYTES;
    const bool id = i == REQUEST;
    zmq_send(zap->socket, id ? frame[REQUEST].bytes : text[i],
             id ? count > REQUEST ? (size_t)size : 0 : strlen(text[i]),
             ZMQ_DONTWAIT | (i + 1 < REPLIES ? ZMQ_SNDMORE : 0));
  }
}

void sn_zap_answer(SnZap *zap) {
  Frame frame[FRAMES];
  int count;
  zap->more = false;
  for (int i = 0; zap->socket && read_request(zap->socket, frame, &count); i++) {
    answer(zap, frame, count);
    zap->more = i + 1 == ANSWER_BURST;
    if (zap->more) return;
  }
}

void sn_zap_report(SnZap *zap, double now) {
  if (zap->denied == zap->told || (zap->reported > 0 && now - zap->reported < REPORT_TIME)) return;
  sn_log_event(zap->log, SN_LOG_WARNING, "denied: %" PRIu64 " connections, the latest %s", zap->denied - zap->told,
               zap->latest);
  zap->told = zap->denied;
  zap->reported = now;
}

// libzmq says of a connection over ipc who is at its other end: "NAME:UID:GID:PID". Addresses of IPv4 have no colon;
// those of IPv6 have seven, or two in a row.
static bool is_local(const char *address) {
  int colons = 0;
  for (const char *c = address; *c; c++) colons += *c == ':';
  return colons == 3 && !strstr(address, "::");
}

SnPeer *sn_zap_peer(const SnZap *zap, zmq_msg_t *frame) {
  if (zap->ipc_only) return &zap->access->local;
  const char *name = zap->socket ? zmq_msg_gets(frame, "User-Id") : NULL;
  const size_t n = strlen(zap->token);
  if (name && !strncmp(name, zap->token, n) && name[n] == ':') {
    const long i = strtol(name + n + 1, NULL, 10);
    SnPeer *peer = i >= 0 && i < zap->access->count ? zap->access->peer[i] : NULL;
    return peer && peer->role != SN_ROLE_NONE ? peer : NULL;
  }
  const char *address = zmq_msg_gets(frame, "Peer-Address");
  if (address && is_local(address)) return &zap->access->local;
  return zap->socket ? NULL : &zap->access->anyone;
}
