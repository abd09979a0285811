// Records of sessions on their way from the planner thread to the event loop, which publishes them, and who has
// subscribed to them. Nothing is packed for a session that nobody subscribes to.
#ifndef SINEW_DAEMON_WIRE_RECORDS_H_
#define SINEW_DAEMON_WIRE_RECORDS_H_

#include <stdatomic.h>

#include "daemon/wire/outbox.h"

// Limits the bytes of a topic, "SESSION KIND ", and the topics that are told apart.
enum { SN_TOPIC = 32, SN_SUBSCRIPTIONS = 256 };

// Holds a packed record.
typedef struct SnRecordMessage {
  struct SnRecordMessage *next;
  char topic[SN_TOPIC];
  size_t size;
  unsigned char bytes[];  // (size) a packed Record
} SnRecordMessage;

// Notes subscriptions to one topic.
typedef struct SnSubscription {
  char topic[SN_TOPIC];
  bool open;        // somebody subscribes to it
  uint64_t latest;  // number of the latest one, of all that came
} SnSubscription;

typedef struct SnRecords {
  SnOutbox *outbox;  // outbox of the event loop that publishes
  pthread_mutex_t mutex;
  SnRecordMessage *first, **last;
  SnSubscription subscription[SN_SUBSCRIPTIONS];  // the first one is to everything, and to what has no place
  int count;                                      // number of them
  bool crowded;                                   // some had no place: the first one stays open
  uint64_t came;                                  // number of the latest one of all
  _Atomic uint64_t changes;                       // grows when any of this changes
  atomic_int subscribers;                         // topics that somebody subscribes to
} SnRecords;

// Remembers what a session knows of its subscribers, and counts its records. The planner thread alone uses it.
typedef struct SnAudience {
  uint64_t number;    // number of the latest record
  uint64_t looked;    // SnRecords.changes at the latest look
  uint64_t greeted;   // latest subscription that it had been
  bool listens;       // somebody does
  bool joined;        // somebody who does not know the session yet is among them
  bool out_of_order;  // the next plan does not follow from the records so far
} SnAudience;

bool sn_records_init(SnRecords *records, SnOutbox *outbox);
void sn_records_free(SnRecords *records);

// Returns whether somebody subscribes to a session, and notes in its audience who has joined. Costs next to nothing
// where nobody does.
bool sn_records_wanted(SnRecords *records, SnAudience *audience, uint64_t session);

// Packs a record under its kind, the name of its body, and hands it over. One that finds no memory is lost, and the
// number of the next one says so.
void sn_records_send(SnRecords *records, SnAudience *audience, const char *kind, Sinew__V1__Record *record);

// ---- the event loop's ----

// Takes all records, oldest first; each is freed by free().
SnRecordMessage *sn_records_pop_all(SnRecords *records);

// Notes what the socket tells: a byte 1 (subscribe) or 0 (not any more) and a topic. Anything else is passed over.
void sn_records_subscribe(SnRecords *records, const void *frame, size_t size);
// Notes that all subscribers are gone.
void sn_records_forget(SnRecords *records);

#endif
