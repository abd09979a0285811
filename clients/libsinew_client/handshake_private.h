// Keys of a client, what became of its handshakes, whether its connection has ended. libzmq tells it to a monitor
// alone, and tries for ever.
#ifndef SINEW_CLIENTS_LIBSINEW_CLIENT_HANDSHAKE_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_CLIENT_HANDSHAKE_PRIVATE_H_

#include <stdbool.h>

#include "clients/include/sinew_client.h"
#include "proto/key_file.h"

typedef struct SnHandshake {
  bool refused;                                                            // the latest socket is of no use any more
  bool keyed;                                                              // the client has keys
  char server[SN_KEY_TEXT], public_key[SN_KEY_TEXT], secret[SN_KEY_TEXT];  // Z85
  void *monitor;                                                           // PAIR socket, NULL: none
  int sockets, ended;  // monitored so far; handshakes that the other side broke off
  bool lost;           // the connection of the latest socket has ended
} SnHandshake;

// Takes the daemon's public key (the key, or its file) and the file of the own secret key; both NULL: none.
SinewStatus sn_handshake_keys(SnHandshake *handshake, const char *server_key, const char *key_file, SinewError *err);

// Gives a socket the keys, if there are some. To be called before it connects.
SinewStatus sn_handshake_prepare(const SnHandshake *handshake, void *socket, SinewError *err);

// Watches a socket that is to connect to an endpoint: the end of its connection, and of tcp its handshakes, too.
SinewStatus sn_handshake_watch(SnHandshake *handshake, void *context, void *socket, const char *endpoint,
                               SinewError *err);
// Stops that. To be called before the socket is closed; accepts one that is not watched.
void sn_handshake_forget(SnHandshake *handshake, void *socket);

// Reads what has been told. Returns SINEW_ERR_REFUSED, and says why, if the daemon will not let this client in.
SinewStatus sn_handshake_check(SnHandshake *handshake, const char *endpoint, SinewError *err);

#endif
