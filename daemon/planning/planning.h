// The planner thread: it owns the planners and the device, and decides whose turn it is.
//
// Every session has at most one plan in the making. A slice is at most one iteration and at most config->slice seconds.
// Each plan comes once first: plans are refined once in the order of their deadlines. After that a plan stands back. It
// comes again by its deadline plus the time already served, so that several with the same deadline share (turn.c). Work
// without deadlines belongs to the session that was served least. The account grows with the time that it is served,
// and one that had nothing to do has no credit for that. A newer state ends a plan in the making early, at the latest
// when half of its own time has gone.
//
// A plan leaves before it is due: what answers and their way take is kept back from its deadline, and how late slices
// end. This is measured, and is milliseconds where other programs have the processors.
#ifndef SINEW_DAEMON_PLANNING_PLANNING_H_
#define SINEW_DAEMON_PLANNING_PLANNING_H_

#include <semaphore.h>

#include "daemon/base/log.h"
#include "daemon/base/queue.h"
#include "daemon/session/session.h"
#include "planner/backend/contest.h"

// ---- where plans are made ----

// Tells what is known of the device.
typedef struct SnDeviceView {
  bool present;    // there is one, lost or not
  bool automatic;  // it is for what it has been measured to be faster at
  char name[32];   // name of the backend
  char text[256];  // description for people
  SnBackendMemory memory;
  bool lost;
  char reason[300];
  double lost_at;  // on sn_clock_now()
} SnDeviceView;

// Holds what is known of a model's speed on the device and on the CPU.
typedef struct SnMeasured {
  char model[128];
  int from[SN_NCONTEST];  // sn_contest_from
} SnMeasured;

enum { SN_MEASURED = 64 };

// Holds the CPU, and a device that it stands in for when that is lost. The planner thread opens, looks after and closes
// them; others may know a view of the device, taken now and then.
typedef struct SnBackends {
  const SnLog *log;
  SnPool *pool;
  SnBackend *cpu;     // any thread may make planners with it
  SnBackend *device;  // NULL: none. Any thread may make planners with it, the planner thread uses them
  double looked;      // when memory was last asked for; the planner thread's
  const SnConfig *config;
  pthread_mutex_t mutex;
  SnDeviceView view;  // under the mutex, as what follows
  SnMeasured measured[SN_MEASURED];
  int nmeasured;
  pthread_mutex_t measuring;  // one measurement at a time
  SnContestKey key;           // names what a measurement on the device holds for; under that mutex
} SnBackends;

// Returns the view. Any thread may call it.
SnDeviceView sn_backends_view(SnBackends *backends);
// Says that the configured backend cannot be opened, why, and what can be.
SnCode sn_backends_refuse(const char *name, const SnError *why, SnError *err);
// Returns whether a session plans on the device of a view, which it was opened for and which is not lost.
bool sn_backends_serves(const SnDeviceView *view, const SnSession *session);
// Returns the name of the backend that a session plans on: that of the view's device, or "cpu".
const char *sn_backends_name(const SnDeviceView *view, const SnSession *session);

// Gives for a new planner where it plans, on the device or on the CPU. *fallback is what it falls back on when that is
// lost, or has been (NULL: nothing). Any thread may call it.
void sn_backends_take(const SnBackends *backends, bool device, SnBackend **backend, SnBackend **fallback);

// Returns whether new sessions plan on the device, where nothing has to be measured for it. Any thread may call it.
bool sn_backends_prefer_device(const SnBackends *backends);

// Returns whether a planner with these settings, which has been made on the CPU, is faster on the device, for
// `backend: auto`. The number that it asks for at once decides, by a measurement at the first opening of a model. The
// measurement takes about a second and is kept in the cache of models. `model` is its name; the log says what was found
// and chosen. A loader thread calls it.
bool sn_backends_wins(SnBackends *backends, const char *model, const SnPlanner *planner, const SnSettings *settings);

// Copies what has been measured, of at most SN_MEASURED models; returns how many. Any thread may call it.
int sn_backends_measured(SnBackends *backends, SnMeasured measured[SN_MEASURED]);

// ---- what is kept back from a deadline ----

enum { SN_LATENESS_WINDOW = 128 };

// Holds how late the latest pieces of some work were [s]. It begins with zeros.
typedef struct SnLateness {
  double late[SN_LATENESS_WINDOW];  // a ring
  unsigned long n;                  // pieces so far
  double expected;  // second largest of a full window: 2 of 129 pieces are later if those to come are as
                    // those before. The largest while there are fewer, and 0 without any
} SnLateness;

// Notes how late a piece was.
void sn_lateness_note(SnLateness *lateness, double seconds);

// ---- what is freed elsewhere ----

// Frees sessions and planners on a thread of its own, and reads there how much is allocated. The system takes memory
// back page by page: a large session is hundreds of slices long. The heap is read piece by piece: tens of milliseconds
// where a thousand sessions were opened.
typedef struct SnReaper {
  SnModels *models;
  pthread_mutex_t mutex;
  pthread_cond_t filled;
  struct SnWaste *first;       // under the mutex, as `stop`, `read` and `trim`
  bool stop, read, trim;       // `read`: the heap is to be read; `trim`: what it has free is to be given back
  double asked;                // when it was to be read last
  atomic_uint_least64_t heap;  // allocated [bytes], when it was read last
  pthread_t thread;
  bool running;
} SnReaper;

SnCode sn_reaper_start(SnReaper *reaper, SnModels *models, SnError *err);
// Frees what nobody knows any more, soon: it returns at once. Do not hand over what plans on a device, which belongs to
// the planner thread.
void sn_reaper_session(SnReaper *reaper, SnSession *session);
void sn_reaper_planner(SnReaper *reaper, SnPlanner *planner);
// Returns how much was allocated [bytes] when it was read last, and has it read again, soon, once a second at most.
// One thread alone may ask, and not while the reaper is stopped.
uint64_t sn_reaper_heap(SnReaper *reaper);
// Gives free memory back to the system, soon: that takes longer the larger the heap is. Not while the reaper is
// stopped.
void sn_reaper_trim(SnReaper *reaper);
// Frees what was handed over and ends the thread. A second call does nothing.
void sn_reaper_stop(SnReaper *reaper);

// ---- whose turn it is ----

// Names what the planner thread shares with the other threads. All of it must outlive the thread.
typedef struct SnSchedulerDef {
  const SnConfig *config;
  const SnLog *log;
  SnOutbox *outbox;
  SnRecords *records;
  SnModels *models;
  SnMetrics *metrics;  // the whole daemon's
} SnSchedulerDef;

typedef struct SnScheduler {
  const SnConfig *config;  // these six as in SnSchedulerDef
  const SnLog *log;
  SnOutbox *outbox;
  SnRecords *records;
  SnModels *models;
  SnMetrics *metrics;
  SnBackends backends;  // opened and closed by the thread; for others sn_backends_view and sn_backends_take

  SnQueue commands;                // SnJob of anything but plans; a wake-up announces a state, a session or the end
  atomic_uint_least64_t progress;  // grows with each piece of work that is done, and while there is none to do
  _Atomic double alive;            // when the thread last came round, on sn_clock_now()
  atomic_int evaluations;          // waiting or under way, over all sessions; the thread's, others read
  atomic_bool stopping;
  _Atomic(SnSession *) arriving;  // opened, not yet taken over: the latest first
  SnSession *sessions;            // this and what follows: the thread's
  double now;                     // when it last chose
  double background;              // background work is not urgent before this time; it grows with what it was given
  double account;                 // account of the session whose background work came last, before that [s]
  SnReaper reaper;
  SnHistogram wakes;   // how long after it should have the thread woke up, where it had nothing to do; any thread reads
  SnLateness slices;   // how long after its end a slice on the CPU comes back
  SnLateness answers;  // how long it takes from a plan's last slice until its answer is at its socket; the event loop's
  _Atomic double answering;  // time kept back for that [s]; the event loop writes it

  pthread_t thread;
  bool running;
  sem_t opened;    // posted when the thread has opened the backends, or could not:
  SnError failed;  // why
} SnScheduler;

// Starts the thread, which opens the backends; returns when they are open, or with an error. The scheduler is zeroed by
// the caller.
SnCode sn_scheduler_start(SnScheduler *scheduler, const SnSchedulerDef *def, SnError *err);

// Takes a session over. Any thread may call it.
void sn_scheduler_add(SnScheduler *scheduler, SnSession *session);

// Hands a state over, of a plan request or of a stream; a request that it replaces is answered. The event loop calls
// it.
void sn_scheduler_state(SnScheduler *scheduler, SnJob *job);

// Notes how many seconds after its last slice the answer of a plan was handed to its socket. The event loop calls it.
void sn_scheduler_sent(SnScheduler *scheduler, double seconds);

// Hands a command over; false when the queue is full, and the caller keeps the job. The event loop calls it, or a
// loader thread that holds the session.
bool sn_scheduler_command(SnScheduler *scheduler, SnJob *job);

// Lets the planner thread free a session. The event loop, which has removed it from its table, must not touch it any
// more.
void sn_scheduler_close(SnScheduler *scheduler, SnSession *session);

// Releases a session that a loader thread held.
void sn_scheduler_release(SnScheduler *scheduler, SnSession *session);

// Ends the running slice, answers what waits, frees the sessions, joins the thread. A second call does nothing.
void sn_scheduler_stop(SnScheduler *scheduler);

#endif
