// A proxy between clients and a daemon's ipc socket that treats what passes badly, on a thread of its own.
#ifndef SINEW_TESTS_SUPPORT_PROXY_H_
#define SINEW_TESTS_SUPPORT_PROXY_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

// Says what is done to what passes, either way. Chances are of each piece that is read.
typedef struct SnProxyRules {
  double delay;      // each piece is passed on so much later [s]
  double pace;       // above 0: single bytes, so far apart [s]
  double drop;       // chance that a piece is swallowed
  double duplicate;  // chance that it comes twice
  double spoil;      // chance that one of its bits is turned over
  long cut;          // a connection ends after so many bytes, both ways together; < 0: it does not
  int cuts;          // connections that this happens to, the next ones; others pass whole
  unsigned seed;
} SnProxyRules;

// Returns rules that let all pass as it is.
SnProxyRules sn_proxy_pass(void);

typedef struct SnProxy {
  char endpoint[128], path[108], target[108];
  int listener, wake[2];
  pthread_t thread;
  pthread_mutex_t mutex;
  SnProxyRules rules;  // under the mutex
  atomic_long bytes, connections, ended;
  atomic_bool stop;
} SnProxy;

// Starts a proxy in a folder to a daemon's ipc endpoint. Fails the test when it cannot.
void sn_proxy_start(SnProxy *proxy, const char *folder, const char *endpoint);
// Changes the rules; connections that are there keep what they have in flight.
void sn_proxy_rule(SnProxy *proxy, const SnProxyRules *rules);
// Ends all connections and the thread.
void sn_proxy_stop(SnProxy *proxy);

#endif
