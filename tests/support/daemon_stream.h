// The client's side of continuous mode: plans are checked as they come.
#ifndef SINEW_TESTS_SUPPORT_DAEMON_STREAM_H_
#define SINEW_TESTS_SUPPORT_DAEMON_STREAM_H_

#include "tests/support/daemon_process.h"

// Holds a stream while its plans are read. The task has six controls.
typedef struct SnTestStream {
  SnTestClient *c;
  uint64_t session;
  uint64_t id, before;  // latest StreamRequest, and the one before: plans may still come under it
  uint64_t sequence;    // latest plan's
  double stamp, cost;
  uint64_t version, number;
  int plans, improved;
  double period;                               // [s] that the next StreamRequest asks for
  uint32_t gain_rows;                          // rows with gains that it asks for
  void (*check)(const Sinew__V1__Plan *plan);  // more to be checked, or NULL
} SnTestStream;

// Starts a stream and reads the answer.
SnTestStream sn_test_stream_start(SnTestClient *client, uint64_t session, double lease, double deadline);

// Send a StreamRequest, and a state of the stream. `seen` is as on the wire, negative for none.
void sn_test_stream_request(SnTestStream *s, bool stop, double lease, double deadline);
void sn_test_stream_state(SnTestStream *s, Sinew__V1__State *x, int64_t seen);

// Reads what comes for so many seconds, until a reply that is no plan of the stream, which is returned.
Sinew__V1__Reply *sn_test_stream_read(SnTestStream *s, double seconds);

// Reads until a plan answers that stamp, whatever the speed of the machine.
void sn_test_stream_await(SnTestStream *s, double stamp);

// Sends a request on the stream's connection and returns its answer.
Sinew__V1__Reply *sn_test_stream_ask(SnTestStream *s, Sinew__V1__Request *request);

// Reads the end of a stream, which came by its own request or unasked. Checks it and its counts.
void sn_test_stream_end(SnTestStream *s, Sinew__V1__StreamReply__End end, double seconds);

#endif
