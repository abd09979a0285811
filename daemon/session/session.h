// Sessions: a task on a model with its own planner, the requests that are under way for it (jobs), and the
// configurations that it has had. A loader thread opens a session, the event loop finds it, the planner thread plans
// for it; each has its own part.
#ifndef SINEW_DAEMON_SESSION_SESSION_H_
#define SINEW_DAEMON_SESSION_SESSION_H_

#include <stdatomic.h>

#include "daemon/base/mailbox.h"
#include "daemon/base/metrics.h"
#include "daemon/keep/keep.h"
#include "daemon/models/models.h"
#include "daemon/monitor/counters.h"
#include "daemon/monitor/trace.h"
#include "daemon/wire/records.h"
#include "planner/planner.h"

typedef struct SnSession SnSession;

// ---- jobs ----

// Carries a request to another thread, with the way back for its answer.
typedef struct SnJob {
  SnRoute route;
  SnSession *session;           // it belongs to, or NULL
  double due;                   // when its answer is wanted, on sn_clock_now(); INFINITY: any time
  uint64_t number;              // number of a state among those of its session
  double taken;                 // when the planner thread took it out of the mailbox
  Sinew__V1__Request *request;  // validated; the job owns it
  SnPlanner *planner;           // for a reset with a new seed: made by the loader; else NULL
  SnKept *kept;                 // name of the session that is opened, until it is open; NULL: it has none
  bool coming;                  // it was refused since its session is on its way: the code is RESTORING
  bool restores;                // nobody has asked: that session is one of the last daemon's
  int failed;                   // times that it waited for another one's load of its model, which failed
  struct SnJob *next;
} SnJob;

// Copies a validated request into a job, from its bytes. Returns NULL when out of memory.
SnJob *sn_job_create(const SnRoute *route, const void *bytes, size_t size);
// Frees a job but for its planner. Accepts NULL.
void sn_job_free(SnJob *job);

// Says how a job stands at an instant: what replies and statistics tell of time.
typedef struct SnTiming {
  double age;    // [s] since its request arrived
  bool in_time;  // not after it was due
} SnTiming;

// Returns how a job stands at `now` on sn_clock_now().
SnTiming sn_job_timing(const SnJob *job, double now);

// ---- configurations ----

// Counts the versions that a session keeps: the one in force and those before it.
enum { SN_HISTORY = 1024 };

// Holds the daemon's own settings of a session.
typedef struct SnSessionSettings {
  double latency, lease, time_to_live;  // [s], see sinew.proto
} SnSessionSettings;

// Returns a latency of 0, a lease of 30 s, and 1 s to live.
SnSessionSettings sn_default_session_settings(void);

// Holds the part of a version that belongs to a term of the cost.
typedef struct SnVersionTerm {
  double weight, terminal;
  int target;  // first entry in SnVersion.target, -1: the task's own target
  int size;    // entries of a target
} SnVersionTerm;

// Holds one configuration: settings of planner and session, weights and targets. Read-only once it is in the history.
typedef struct SnVersion {
  uint64_t number, reverted_to;  // see Config in sinew.proto
  SnSettings planner;
  SnSessionSettings session;
  int nterm;
  SnVersionTerm *term;  // (nterm)
  double *target;       // entries for all terms that have one
} SnVersion;

// Keeps the latest versions. Each can be read, and be put in force again as a new version.
typedef struct SnHistory {
  SnVersion *version[SN_HISTORY];  // a ring: number n is at n % SN_HISTORY
  uint64_t newest;                 // 0: none yet
  uint64_t before;                 // versions of an earlier daemon, which are not kept
} SnHistory;

// Copies the configuration in force at the planner into a version that is not in the history yet. Returns NULL when it
// is out of memory.
SnVersion *sn_version_capture(const SnPlanner *planner, const SnSessionSettings *session);
// Frees a version that is in no history. Accepts NULL.
void sn_version_free(SnVersion *version);

// Puts a version in force at the planner of its session.
SnCode sn_version_restore(const SnVersion *version, SnPlanner *planner, SnError *err);

// Adds a version under the next number, and names it to the planner. The history owns it from then on;
// the oldest one goes where all places are taken.
void sn_history_add(SnHistory *history, SnVersion *version, SnPlanner *planner);

// Returns version `number`, 0 for the newest; NULL when it is not kept.
const SnVersion *sn_history_find(const SnHistory *history, uint64_t number);
uint64_t sn_history_oldest(const SnHistory *history);
void sn_history_free(SnHistory *history);

// ---- sessions ----

typedef struct SnEvaluationWork SnEvaluationWork;

// Holds the state of continuous mode: states come as a stream, every better plan goes out, while the lease holds.
typedef struct SnStream {
  bool running;
  SnRoute route;                   // who sent the latest StreamRequest or state, and the id of the former
  double heard;                    // when the latest state or StreamRequest was read
  double lease, deadline, period;  // [s], see StreamRequest
  int iterations;                  // most for a state; 0: any number
  bool want_states;                // plans have predicted states
  int gain_rows;                   // rows with feedback gains that are wanted

  uint64_t sent, states, misses;  // plans sent, states planned for, late ones, since it began
  uint64_t seen;                  // plans that the client has read, where it says so
  bool says_seen;

  // The state in work.
  bool made;      // there is a plan for it
  bool in_time;   // it was there before its deadline
  bool answered;  // one was sent
  int looked_at;  // iterations that were complete when its plan was last looked at
  int counted;    // iterations that were complete at `ended`, on the clock; the last of them took `took` [s]
  double ended, took;
  double cost;  // best plan sent for it, under the configuration `version`
  uint64_t version;
} SnStream;

// Holds what an answer to a state needs when a newer one takes its place.
typedef struct SnLatest {
  uint64_t number;  // number of the state in its session; 0: there was none
  SnRoute route;
  bool streams;  // it is of continuous mode, and has no answer then
  double time;   // stamp of the state
  double due;
} SnLatest;

struct SnSession {
  // Statistics and leases go through all sessions: what they read lies together, at the beginning. With a thousand
  // sessions the time is that of memory.

  // Fixed from the opening on; any thread reads.
  uint64_t id;
  SnPeer *owner;  // who opened it
  SnKept *kept;   // it has a name, and outlasts the daemon; else NULL
  SnTask *task;
  SnLoadedModel *loaded;
  int place;       // number of its place among the open sessions, which it shares with none of them
  bool on_device;  // it plans on the device, as long as that is not lost

  // Shared by several threads.
  atomic_bool streaming;     // in continuous mode: set by the event loop when it begins, cleared by who ends it
  atomic_bool closing;       // set by the event loop, which then forgets the session
  atomic_int holds;          // loader threads that read what is fixed; it is not freed before they let go
  _Atomic uint64_t decided;  // number of the newest state that was begun or refused, see sn_session_claim
  _Atomic uint64_t config_version;
  _Atomic double lease;  // [s]

  // The event loop's.
  double heard;   // when the latest request came, or, if later, when its answer is due
  double left;    // when its connection was seen to have ended, on sn_clock_now(); 0: it has not
  SnLink client;  // connection that opened it, or has since asked for a plan or an evaluation

  SnMetrics metrics;  // the planner thread counts
  SnMailbox states;   // SnJob with a plan request

  // Fixed, as above.
  char checksum[17];  // checksum of the model with the task's changes, 16 hexadecimal digits
  int nq, nv, na, nu, nmocap, nhistory, horizon;
  SnSettings opened_with;  // settings of the planner at the opening: those that are not live stay so

  // The event loop's.
  SnOutcomes outcomes;
  SnTraces traces;
  SnLatest latest;

  // The planner thread's.
  SnPlanner *planner;
  SnSessionSettings settings;
  SnHistory history;
  uint64_t seed;
  SnStream stream;
  SnAudience audience;
  SnJob *waiting;                         // newest state, not begun: a plan request or a state of the stream
  double turn_due;                        // the first state was due then that came since a plan was begun
  SnJob *active;                          // being planned for
  double active_due;                      // when it must be answered; in a stream, for the first time
  double turn;                            // when its turn had come
  double began;                           // when work on it began
  int slices;                             // pieces that it has been made in
  bool refined;                           // it has tried something new
  bool hopeless;                          // plans before it have not, since the latest one that has
  double line;                            // in the line of plans that have not: when its turn was due
  double rest;                            // time that it wants when it is not refined any more [s]
  double served;                          // planning time that it has had [s]
  double account;                         // time that work without deadlines was served, and what idling cost [s]
  bool has_background;                    // it had such work when the thread last chose
  SnJob *snapshots;                       // requests for one, which wait for the end of a plan
  SnJob *evaluations, **last_evaluation;  // to be made; the first one may be under way
  SnEvaluationWork *evaluating;           // work on the first one, or NULL
  bool leaving;                           // to be freed at the end of this round
  struct SnSession *next;
};

// Returns a warning about such settings in continuous mode; "" for none. The text is static.
const char *sn_stream_remark(const SnSessionSettings *settings);

// Takes a state on by its number: who begins it, or answers it without, asks first. Returns true for one caller alone.
// Any thread may call it.
bool sn_session_claim(SnSession *session, uint64_t number);

// Frees a session and all that it owns, and releases its model. No thread may know it any more.
void sn_session_free(SnSession *session, SnModels *models);

// Lists the open sessions. The event loop alone finds and removes; any thread adds.
typedef struct SnSessions {
  pthread_mutex_t mutex;
  SnSession **item;   // (capacity), the first `count` are open
  SnSession **by_id;  // (capacity) the same in ascending order of their ids
  SnSession **seen;   // (capacity) what sn_sessions_all gave
  uint64_t *opener;   // (capacity) numbers of the connections that places are reserved for
  bool *taken;        // (capacity) places that open sessions have
  int count, reserved, capacity;
} SnSessions;

bool sn_sessions_init(SnSessions *sessions, int capacity);
void sn_sessions_free(SnSessions *sessions);

// Reserves a place for a client before the work of opening begins; `most` are allowed for each connection, and its key
// has a quota. Returns SN_ERR_LIMIT when all are taken; err says whose. Each place is then either given back by
// sn_sessions_unreserve or filled by sn_sessions_add. The event loop alone reserves.
SnCode sn_sessions_reserve(SnSessions *sessions, const SnRoute *route, int most, SnError *err);
void sn_sessions_unreserve(SnSessions *sessions, const SnRoute *route);
// Adds a session, which gets the lowest place that is free.
void sn_sessions_add(SnSessions *sessions, SnSession *session);

// Returns the session with an id, or NULL.
SnSession *sn_sessions_find(SnSessions *sessions, uint64_t id);
void sn_sessions_remove(SnSessions *sessions, SnSession *session);
// Removes all, whoever frees them.
void sn_sessions_forget(SnSessions *sessions);
int sn_sessions_count(SnSessions *sessions);
// Returns the open sessions, `count` of them, as they are now: the list stays until it is asked for again. The event
// loop alone asks, and its sessions stay until it removes them.
SnSession *const *sn_sessions_all(SnSessions *sessions, int *count);

#endif
