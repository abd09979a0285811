// The flight recorder: what clients sent in the last seconds, and how the plans came about, in memory. It is written as
// a file on request, after a burst of missed deadlines, and when the process crashes.
//
// Messages lie in one block of memory as they stand in a file of the kind MCAP (mcap.dev). So a crash writes them out
// as they are. The event loop adds; a thread of its own writes files.
#ifndef SINEW_DAEMON_MONITOR_FLIGHT_H_
#define SINEW_DAEMON_MONITOR_FLIGHT_H_

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/log.h"
#include "daemon/monitor/trace.h"

// Counts files that are kept in the folder: older ones go when another is written.
enum { SN_FLIGHT_FILES = 16, SN_FLIGHT_PATH = 640 };

typedef struct SnFlightDef {
  const char *folder;  // folder of files, made where it is missing; "": there is no recorder
  const char *schema;  // file of the wire's schema as descriptors
  double seconds;      // messages that are older are forgotten
  size_t bytes;        // size of the memory
  const SnLog *log;    // must stay
} SnFlightDef;

typedef struct SnFlight SnFlight;

// Counts what the recorder holds and has done.
typedef struct SnFlightCounts {
  uint64_t bytes, messages;  // held now
  uint64_t forgotten;        // messages that had no room, or took that of younger ones than `seconds`
  uint64_t files, failures;  // written; could not be
} SnFlightCounts;

// Takes the memory, and sets handlers of the signals that a crash has. *flight is NULL where there is no recorder. err
// names the folder or file, and why.
SnCode sn_flight_open(const SnFlightDef *def, SnFlight **flight, SnError *err);
// Waits for a file that is being written, and lets go of the signals. Accepts NULL.
void sn_flight_close(SnFlight *flight);

// Adds a request as it was read, at `now` on sn_clock_now(). Accepts NULL, as the next one.
void sn_flight_request(SnFlight *flight, const void *bytes, size_t size, double now);
// Adds the stages of a plan that was sent.
void sn_flight_plan(SnFlight *flight, uint64_t session, uint64_t number, const SnTrace *trace);

// Tells that a file was written, `err` NULL, or could not be. The thread that writes calls it.
typedef void SnFlightWritten(void *context, void *item, const char *path, const SnError *err);

// Begins to write what there is into a file whose name tells the time and the reason. Returns SN_ERR_STATE when another
// one is being written. `written` may be NULL.
SnCode sn_flight_write(SnFlight *flight, const char *reason, SnFlightWritten *written, void *context, void *item,
                       SnError *err);

SnFlightCounts sn_flight_counts(const SnFlight *flight);

#endif
