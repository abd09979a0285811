// A session: a task on a model with its own planner. Opened by a loader thread, found by the event loop, planned for by
// the planner thread, each with its own part.
#ifndef SINEW_DAEMON_SESSION_H_
#define SINEW_DAEMON_SESSION_H_

#include <stdatomic.h>

#include "daemon/job.h"
#include "daemon/mailbox.h"
#include "daemon/metrics.h"
#include "daemon/models.h"
#include "planner/planner.h"

// The daemon's own settings of a session.
typedef struct SnSessionSettings {
  double latency, lease, time_to_live;  // [s], see sinew.proto
} SnSessionSettings;

typedef struct SnEvaluationWork SnEvaluationWork;

struct SnSession {
  // Fixed from the opening on; any thread reads.
  uint64_t id;
  SnTask *task;
  SnLoadedModel *loaded;
  int nq, nv, na, nu, nmocap, horizon;
  SnMailbox states;  // SnJob with a plan request
  SnMetrics metrics;
  SnSettings opened_with;  // of the planner at the opening: those that are not live stay so
  atomic_int holds;        // loader threads that read the part above; it is not freed before they let go
  atomic_bool closing;     // set by the event loop, which then forgets the session
  _Atomic uint64_t config_version;
  _Atomic double lease;  // [s]

  // The event loop's.
  double heard;  // when the latest request came, or, if later, when its answer is due

  // The planner thread's.
  SnPlanner *planner;
  SnSessionSettings settings;
  uint64_t seed;
  SnJob *waiting;                         // newest state, not begun
  SnJob *active;                          // being planned for
  double active_due;                      // when it must be answered
  double served;                          // planning time that active has had [s]
  SnJob *evaluations, **last_evaluation;  // to be made; the first one may be under way
  SnEvaluationWork *evaluating;           // that one, or NULL
  bool leaving;                           // to be freed at the end of this round
  struct SnSession *next;
};

SnSessionSettings sn_default_session_settings(void);

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
void sn_sessions_give_back(SnSessions *sessions);
void sn_sessions_add(SnSessions *sessions, SnSession *session);

SnSession *sn_sessions_find(SnSessions *sessions, uint64_t id);
void sn_sessions_remove(SnSessions *sessions, SnSession *session);
int sn_sessions_count(SnSessions *sessions);
// Session i, or NULL beyond the last one.
SnSession *sn_sessions_at(SnSessions *sessions, int i);

#endif
