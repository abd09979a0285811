#include "clients/libsinew_client/handshake_private.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "clients/libsinew_client/wire.h"

// A daemon that stops breaks a handshake off, too: only the second one in a row is taken for a refusal.
enum { ENDED_MOST = 2 };

SinewStatus sn_handshake_keys(SnHandshake *h, const char *server_key, const char *key_file, SinewError *err) {
  char why[1024];
  if (!server_key && !key_file) return SINEW_OK;
  if (!server_key || !key_file)
    return sn_wire_fail(err, SINEW_ERR_ARGUMENT, "server_key and key_file go together; %s is missing",
                        server_key ? "key_file" : "server_key");
  if (!zmq_has("curve")) return sn_wire_fail(err, SINEW_ERR_ARGUMENT, "this libzmq has no encryption (CURVE)");
  if (!sn_key_read_public(server_key, h->server, why, sizeof why))
    return sn_wire_fail(err, SINEW_ERR_ARGUMENT, "server_key: %s", why);
  if (!sn_key_read_secret(key_file, h->secret, why, sizeof why))
    return sn_wire_fail(err, SINEW_ERR_ARGUMENT, "key_file: %s", why);
  if (zmq_curve_public(h->public_key, h->secret) != 0)
    return sn_wire_fail(err, SINEW_ERR_ARGUMENT, "key_file: %s has no secret key", key_file);
  h->keyed = true;
  return SINEW_OK;
}

SinewStatus sn_handshake_prepare(const SnHandshake *h, void *socket, SinewError *err) {
  if (!h->keyed || (zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, h->server, SN_KEY_TEXT) == 0 &&
                    zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, h->public_key, SN_KEY_TEXT) == 0 &&
                    zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, h->secret, SN_KEY_TEXT) == 0))
    return SINEW_OK;
  return sn_wire_fail(err, SINEW_ERR_ARGUMENT, "the keys cannot be used: %s", zmq_strerror(errno));
}

SinewStatus sn_handshake_watch(SnHandshake *h, void *context, void *socket, const char *endpoint, SinewError *err) {
  char name[80];
  const int zero = 0, shaken = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                               ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
  const int events = ZMQ_EVENT_DISCONNECTED | (strncmp(endpoint, "tcp://", 6) == 0 ? shaken : 0);
  snprintf(name, sizeof name, "inproc://handshake-%p-%d", (const void *)h, ++h->sockets);
  if (h->refused) h->ended = 0;  // else handshakes of the socket before count on: in a row
  h->refused = h->lost = false;
  h->monitor = zmq_socket(context, ZMQ_PAIR);
  if (!h->monitor || zmq_setsockopt(h->monitor, ZMQ_LINGER, &zero, sizeof zero) != 0 ||
      zmq_socket_monitor(socket, name, events) != 0 || zmq_connect(h->monitor, name) != 0)
    return sn_wire_fail(err, SINEW_ERR_MEMORY, "cannot watch the connection: %s", zmq_strerror(errno));
  return SINEW_OK;
}

void sn_handshake_forget(SnHandshake *h, void *socket) {
  if (!h->monitor) return;
  zmq_socket_monitor(socket, NULL, 0);
  zmq_close(h->monitor);
  h->monitor = NULL;
}

// An event: a frame with its number (2 bytes) and its value (4 bytes), then one with the address. False for none.
static bool next_event(void *monitor, uint16_t *event, uint32_t *value) {
  unsigned char head[6], address[256];
  if (!monitor || zmq_recv(monitor, head, sizeof head, ZMQ_DONTWAIT) != (int)sizeof head) return false;
  zmq_recv(monitor, address, sizeof address, ZMQ_DONTWAIT);
  memcpy(event, head, 2);
  memcpy(value, head + 2, 4);
  return true;
}

static SinewStatus read_events(SnHandshake *h, const char *endpoint, SinewError *err) {
  uint16_t event;
  uint32_t value;
  while (next_event(h->monitor, &event, &value)) {
    if (event == ZMQ_EVENT_DISCONNECTED) h->lost = true;
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) h->ended = 0;
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL) h->ended++;
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
      return sn_wire_fail(err, SINEW_ERR_REFUSED,
                          "%s does not let the key %s in: it is not on the daemon's allow-list, or its role is too low",
                          endpoint, h->public_key);
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL && value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH)
      return sn_wire_fail(
          err, SINEW_ERR_REFUSED,
          h->keyed ? "%s takes no keys: the daemon has no curve_key" : "%s needs keys: server_key and key_file",
          endpoint);
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)
      return sn_wire_fail(
          err, SINEW_ERR_REFUSED,
          "%s breaks the rules of the handshake: it is no sinewd, or has another key than the one given as server_key",
          endpoint);
  }
  if (h->ended < ENDED_MOST) return SINEW_OK;
  return sn_wire_fail(err, SINEW_ERR_REFUSED, "%s ends the connection during the handshake: %s", endpoint,
                      h->keyed ? "server_key is not its key, it takes no keys, or it is stopping"
                               : "it needs keys (server_key, key_file), is no sinewd, or is stopping");
}

SinewStatus sn_handshake_check(SnHandshake *h, const char *endpoint, SinewError *err) {
  const SinewStatus status = read_events(h, endpoint, err);
  h->refused = h->refused || status != SINEW_OK;
  return status;
}
