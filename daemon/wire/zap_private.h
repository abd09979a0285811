// Keys at the door: CURVE for tcp addresses, by libzmq, and who is let in, by the list of keys (RFC 27, ZAP). libzmq
// asks here in the middle of each handshake, and tells with each message whose it is. The event loop's alone.
#ifndef SINEW_DAEMON_WIRE_ZAP_PRIVATE_H_
#define SINEW_DAEMON_WIRE_ZAP_PRIVATE_H_

#include <zmq.h>

#include "daemon/access/access.h"
#include "daemon/base/log.h"
#include "daemon/config/config.h"

enum { SN_ZAP_TOKEN = 33 };

typedef struct SnZap {
  void *socket;   // NULL: no keys
  bool more;      // there may be more to answer
  bool ipc_only;  // there are no tcp addresses: all peers are local
  SnAccess *access;
  const SnLog *log;
  char token[SN_ZAP_TOKEN];  // by chance: only names of this process's making are believed
  char secret[SN_KEY_TEXT];  // the daemon's own key
  uint64_t denied, told;     // connections so far; of these, those that the log knows of
  char latest[256];          // about the latest of them
  double reported;           // when that line was written, on sn_clock_now(); 0: never
} SnZap;

// Reads the daemon's key and listens to libzmq; does nothing where the configuration names no key. To be called before
// any socket of the context is bound.
SnCode sn_zap_open(SnZap *zap, void *context, const SnConfig *config, SnAccess *access, const SnLog *log, SnError *err);
void sn_zap_close(SnZap *zap);

// Sets what the next bind of a socket asks of those who connect: a key, where there are keys, if the address is of tcp.
// libzmq cannot take it back, so ipc addresses are bound first. `domain` is the name of its listener.
SnCode sn_zap_secure(const SnZap *zap, void *socket, const char *address, const char *domain, SnError *err);

// Answers those who ask to be let in. Never waits.
void sn_zap_answer(SnZap *zap);

// Says in the log who was denied, once a minute at most.
void sn_zap_report(SnZap *zap, double now);

// Returns the peer that has sent a frame; NULL where that may not send one any more.
SnPeer *sn_zap_peer(const SnZap *zap, zmq_msg_t *frame);

#endif
