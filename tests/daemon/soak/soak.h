// Clients for a soak of sinewd: each role is a process that acts, pauses, acts again, for as long as it is told to.
//   soak_clients.c   the processes, their pace, what the runner (soak.py) says and hears
//   soak_roles.c     those who want something: plans, streams, changes, models, what is published
//   soak_hostile.c   those who do harm: frames and requests that are wrong, readers that do not read, deaths
#ifndef SINEW_TESTS_DAEMON_SOAK_SOAK_H_
#define SINEW_TESTS_DAEMON_SOAK_SOAK_H_

#include <stdatomic.h>

#include "tests/support/daemon_process.h"

// Names what is counted. `asked` are requests of clients that want something; each ends as one of the next five.
#define SOAK_COUNTS(X) \
  X(asked)             \
  X(answered)          \
  X(planned)           \
  X(warm)              \
  X(refused)           \
  X(lost)              \
  X(wrong)             \
  X(changed)           \
  X(streamed) X(visits) X(restored) X(loads) X(imports) X(published) X(attacks) X(repelled) X(slow) X(killed) X(unheard)

#define SOAK_FIELD(name) atomic_long name;
typedef struct SoakCounts {
  SOAK_COUNTS(SOAK_FIELD)
} SoakCounts;
#undef SOAK_FIELD

// Holds what all processes share.
typedef struct SoakShared {
  SoakCounts counts;
  atomic_bool rest, stop;
  atomic_int resting;  // how many roles have nothing under way
  // Stretches all pauses, so that daemon and clients take the share of a processor that is allowed.
  _Atomic double stretch;
  char first[200];   // words for what was wrong or lost first
  atomic_bool told;  // there are such words
} SoakShared;

// Holds what a role knows.
typedef struct Soak {
  SoakShared *shared;
  SoakCounts *counts;                                    // the shared ones; of a client that is to be killed its own
  const char *ipc, *tcp, *telemetry, *records, *models;  // addresses; a folder of models to write into
  int number;                                            // among roles of its kind
  uint64_t random;                                       // state of its numbers
} Soak;

// Pauses for `mean` [s] on the average, stretched, and rests when all shall. Returns false when the soak ends.
bool soak_goes_on(Soak *s, double mean);

// Returns a number of [0, below), or of [0, 1).
unsigned soak_below(Soak *s, unsigned below);
double soak_part(Soak *s);

// Sleeps so many seconds.
void soak_sleep(double seconds);

// Notes what was wrong, the first one in words.
void soak_wrong(Soak *s, atomic_long *count, const char *what, const char *why);

// Connects, and says hello until that is heard. A connection that has said nothing yet may be ended, and what it says
// at that very moment is lost (daemon/RUNNING.md).
void soak_connect(Soak *s, SnTestClient *c, const char *endpoint);

// Sends a request and waits for its answer, and again while the session is being restored. Returns NULL, and counts it
// as lost, when none comes. The caller frees it by sn_test_done.
Sinew__V1__Reply *soak_ask(Soak *s, SnTestClient *c, Sinew__V1__Request *request);
// Does so for an answer of one body, or an error where that may be; anything else is wrong. Frees it.
bool soak_expect(Soak *s, SnTestClient *c, Sinew__V1__Request *request, Sinew__V1__Reply__BodyCase body, bool may_fail);

// Opens a session; name may be NULL. Returns the reply, NULL when it was refused, which is wrong of one with a name.
Sinew__V1__Reply *soak_open(Soak *s, SnTestClient *c, const char *task, const char *name, const char *planner);

// Asks for a plan from about that state and looks at it. Returns false unless one came.
bool soak_plan(Soak *s, SnTestClient *c, uint64_t session, const Sinew__V1__State *state);

void soak_close(Soak *s, SnTestClient *c, uint64_t session);

// Run a role until the soak ends.
void soak_controller(Soak *s);
void soak_tuner(Soak *s);
void soak_streamer(Soak *s);
void soak_watcher(Soak *s);
void soak_visitor(Soak *s);
void soak_loader(Soak *s);
void soak_hostile(Soak *s);
void soak_slow(Soak *s);
void soak_dying(Soak *s);

// Visits once: connects, opens a session, uses it, closes it. `linger`: does not close, and plans until it is killed.
void soak_visit(Soak *s, bool linger);

#endif
