// A session: a task on a model with its own planner. Opened by a loader thread, found by the event loop, planned for by
// the planner thread, each with its own part.
#ifndef SINEW_DAEMON_SESSION_SESSION_H_
#define SINEW_DAEMON_SESSION_SESSION_H_

#include <stdatomic.h>

#include "daemon/session/history.h"
#include "daemon/session/job.h"
#include "daemon/base/mailbox.h"
#include "daemon/base/metrics.h"
#include "daemon/models/models.h"
#include "planner/planner.h"

typedef struct SnEvaluationWork SnEvaluationWork;

// Continuous mode: states come as a stream, every better plan goes out, while the lease holds.
typedef struct SnStream {
  bool running;
  SnRoute route;                   // who sent the latest StreamRequest or state, and the id of the former
  double heard;                    // when the latest state or StreamRequest was read
  double lease, deadline, period;  // [s], see StreamRequest
  int iterations;                  // of a state at most; 0: any number

  uint64_t sent, states, misses;  // plans sent, states planned for, late ones, since it began
  uint64_t seen;                  // plans that the client has read, where it says so
  bool says_seen;

  // Of the state in work.
  bool made;      // there is a plan for it
  bool in_time;   // it was there before its deadline
  bool answered;  // one was sent
  int looked_at;  // iterations that were complete when its plan was last looked at
  double cost;    // of the best plan sent for it, under the configuration `label`
  uint64_t version;
} SnStream;

struct SnSession {
  // Fixed from the opening on; any thread reads.
  uint64_t id;
  SnTask *task;
  SnLoadedModel *loaded;
  int nq, nv, na, nu, nmocap, horizon;
  bool on_device;    // it plans on the device, as long as that is not lost
  SnMailbox states;  // SnJob with a plan request
  SnMetrics metrics;
  SnSettings opened_with;  // of the planner at the opening: those that are not live stay so
  atomic_int holds;        // loader threads that read the part above; it is not freed before they let go
  atomic_bool closing;     // set by the event loop, which then forgets the session
  atomic_bool streaming;   // in continuous mode: set by the event loop when it begins, cleared by who ends it
  _Atomic uint64_t config_version;
  _Atomic double lease;  // [s]

  // The event loop's.
  double heard;  // when the latest request came, or, if later, when its answer is due

  // The planner thread's.
  SnPlanner *planner;
  SnSessionSettings settings;
  SnHistory history;  // of the configuration
  uint64_t seed;
  SnStream stream;
  SnJob *waiting;                         // newest state, not begun: a plan request or a state of the stream
  SnJob *active;                          // being planned for
  double active_due;                      // when it must be answered; of a stream, for the first time
  double began;                           // when work on it began
  double served;                          // planning time that it has had [s]
  SnJob *evaluations, **last_evaluation;  // to be made; the first one may be under way
  SnEvaluationWork *evaluating;           // that one, or NULL
  bool leaving;                           // to be freed at the end of this round
  struct SnSession *next;
};

SnSessionSettings sn_default_session_settings(void);

// What one should know of such settings in continuous mode; "" for nothing. Static memory.
const char *sn_stream_remark(const SnSessionSettings *settings);

// Frees a session and what it owns, and releases its model. No thread may know it any more.
void sn_session_free(SnSession *session, SnModels *models);

// The open sessions by id. The event loop alone finds and removes; any thread adds.
typedef struct SnSessions {
  pthread_mutex_t mutex;
  SnSession **item;  // (capacity), the first `count` are open
  int count, reserved, capacity;
} SnSessions;

bool sn_sessions_init(SnSessions *sessions, int capacity);
void sn_sessions_free(SnSessions *sessions);

// Books a place before the work of opening begins; false when all are taken. Each place is then either given back, or
// filled by sn_sessions_add.
bool sn_sessions_reserve(SnSessions *sessions);
void sn_sessions_unreserve(SnSessions *sessions);
void sn_sessions_add(SnSessions *sessions, SnSession *session);

SnSession *sn_sessions_find(SnSessions *sessions, uint64_t id);
void sn_sessions_remove(SnSessions *sessions, SnSession *session);
int sn_sessions_count(SnSessions *sessions);
// Session i, or NULL beyond the last one.
SnSession *sn_sessions_at(SnSessions *sessions, int i);

#endif
