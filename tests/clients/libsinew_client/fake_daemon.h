// A daemon of the test's own: a ROUTER in a thread. It answers by the book, or late, twice, with another kind of
// message, with lies, or never. So expiry, fallback, retry and time-outs need no engine and no luck.
#ifndef SINEW_TESTS_CLIENTS_LIBSINEW_CLIENT_FAKE_DAEMON_H_
#define SINEW_TESTS_CLIENTS_LIBSINEW_CLIENT_FAKE_DAEMON_H_

#include <pthread.h>
#include <zmq.h>

#include "clients/include/sinew_client.h"
#include "proto/sinew.pb-c.h"

enum { NQ = 3, NV = 2, NU = 2, ROWS = 4 };

// Holds the daemon.
typedef struct FakeDaemon {
  void *context, *router;
  pthread_t thread;
  bool serving;  // the thread runs
  char folder[32], endpoint[64];
  // Faults: set while no request is under way.
  int silent;                   // so many requests get no answer
  bool keep;                    // plan requests are kept, to be answered by the test
  bool wrong_kind;              // health in place of the answer
  bool garbage;                 // bytes that are no Reply
  bool no_model;                // a task without its model
  bool no_plan;                 // diverged
  bool refuse;                  // an error
  uint64_t longest;             // request that it says it reads [bytes]; 0: it does not say
  double time_to_live;          // life of plans [s]
  int better;                   // plans that a state of the stream gets
  bool ends;                    // the stream, at the next state
  uint64_t sequence, seen;      // latest plan of the stream, and the latest that the client says it has read
  uint64_t stream_id;           // id of the request that began the stream
  int requests, opens, closes;  // seen
  // Wishes of the latest open and the latest start of continuous mode; -1: left to the daemon.
  uint64_t seed;
  double latency, lease, plans_live, stream_lease, stream_deadline, stream_period;
  int candidates, adam_iterations, stream_iterations, stream_gain_rows;
  int gain_rows;                         // asked for with the latest plan
  Sinew__V1__Request *change;            // latest one of the configuration; NULL: none
  void (*lie)(Sinew__V1__Reply *reply);  // changes what is sent; NULL: nothing
} FakeDaemon;

extern FakeDaemon fake;

// Gets the errors of the library's calls.
extern SinewError err;

// Holds a plan request that is kept.
typedef struct Kept {
  zmq_msg_t sender;
  uint64_t id;
  double time;
} Kept;
extern Kept kept[8];
extern int nkept;

// Answers with a plan whose every control is the time of its state, and that of row i i more.
void reply_plan(zmq_msg_t *sender, uint64_t id, double time, Sinew__V1__Plan__Status status);

// Starts the thread.
void start_thread(void);
// Ends the thread, after it has served all that came before: then the test owns socket and counters.
void stop_thread(void);

// Starts a fresh daemon for a test.
int set_up(void **state);
// Ends the daemon of a test.
int tear_down(void **state);

// Connects a client.
SinewClient *connect_with(double timeout, int retries);
// Opens a session of that client.
SinewSession *open_on(SinewClient *client, SinewSessionFallback *fallback);
// Returns a state of zeros with this stamp [s].
SinewState state_at(double time);

// Checks that the text of the latest error contains `said`.
void expect_text(const char *said);
// Checks status and text of the latest error. A success has no text, a failure has one.
void expect_error(SinewStatus status, const char *said);
// Checks that a call with &err returned `wanted`, and that err has it, too.
void expect_status(SinewStatus status, SinewStatus wanted);

#endif
