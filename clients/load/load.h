// sinew-load: as many controllers and watchers as asked for, whose requests come by the clock and not by the answers.
//   main.c         options, sessions
//   load_run.c     one stage: the schedule, sending, receiving
//   load_report.c  what has become of it: percentiles, table, JSON
#ifndef SINEW_CLIENTS_LOAD_LOAD_H_
#define SINEW_CLIENTS_LOAD_LOAD_H_

#include <stdbool.h>
#include <stdio.h>

#include "clients/libsinew_client/wire.h"

enum { LOAD_STAGES = 16, LOAD_SETTINGS = 32 };

// Holds the options of the command line.
typedef struct LoadOptions {
  SinewClientDef daemon;
  const char *task;
  int clients, sessions;  // clients in all; the first `sessions` of them have a session each, the others watch
  int iterations;         // for a plan; 0: until its deadline
  double deadline;        // for a plan [s]
  double watch;           // requests a second, each watcher
  double seconds;         // each stage lasts
  double timeout;         // for answers other than plans [s]
  double rate;            // plans a second that can be made; 0: it is measured
  long seed;
  double load[LOAD_STAGES];  // each stage's, in plans that can be made
  int nload;
  const char *settings[LOAD_SETTINGS];  // "name=value" of the planner
  int nsettings;
  bool json;
} LoadOptions;

// Says what has become of a request.
typedef enum LoadOutcome {
  LOAD_LOST,      // no answer a second after the last deadline of the stage
  LOAD_PLAN,      // a refined plan
  LOAD_WARM,      // a plan that there was no time to refine
  LOAD_REPLACED,  // a newer state was there
  LOAD_REFUSED,   // an error
  LOAD_WATCHED,   // a watcher's answer
  LOAD_OUTCOMES
} LoadOutcome;

// Holds a request. Times are of CLOCK_MONOTONIC [s].
typedef struct LoadRequest {
  double due;      // when it was to be sent, whatever came before: latency counts from here
  double sent;     // when it was
  double latency;  // from due to its answer
  int client;
  LoadOutcome outcome;
  int iterations;  // number of iterations of its plan
  uint64_t id;     // among its client's requests
  int previous;    // request of the same client, -1: it has none before
} LoadRequest;

// Holds a client, and of a controller its session.
typedef struct LoadClient {
  SinewClient *client;
  Sinew__V1__Reply *opened;  // the session; NULL: a watcher
  double next, period;       // the next request is due, and the time between two [s]
  int latest;                // number of its latest request that the stage keeps, -1: none
} LoadClient;

// Says whose processor time it is.
typedef enum LoadPart { LOAD_PLANNER, LOAD_REST, LOAD_OURS, LOAD_PARTS } LoadPart;

// Holds what a stage has met.
typedef struct LoadStage {
  double load, rate, seconds;  // in plans that can be made; plans asked for a second; that it took
  double busy[LOAD_PARTS];     // processors that the daemon's planner took, its other threads, and this program
  LoadRequest *request;        // (nrequest)
  int nrequest, capacity;
  int nanswer;  // requests of these that are answered
} LoadStage;

// Measures how many plans a second can be made when each session asks again as soon as it is answered. Returns a
// negative number, and says why, on failure.
double load_measure_rate(LoadClient *clients, const LoadOptions *options, SinewError *err);

// Carries out a stage: `rate` plans a second in all, and the watchers' requests. Returns false, and says why, when
// requests could not be sent or memory ran out.
bool load_run(LoadClient *clients, const LoadOptions *options, LoadStage *stage, SinewError *err);

// Frees what load_run has taken.
void load_stage_free(LoadStage *stage);

// Prints the table of n stages to `out`, with `rate` plans a second that can be made; load_print_json as one line of
// JSON.
void load_print(const LoadStage *stages, int n, double rate, const LoadOptions *options, FILE *out);
void load_print_json(const LoadStage *stages, int n, double rate, const LoadOptions *options, FILE *out);

#endif
