// Replies on their way from the planner and loader threads to the event loop, which alone touches sockets.
#ifndef SINEW_DAEMON_WIRE_OUTBOX_H_
#define SINEW_DAEMON_WIRE_OUTBOX_H_

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/access/access.h"
#include "proto/sinew.pb-c.h"

// Names a connection: its file descriptor, and its number, which no other one has had. Zeros are none.
typedef struct SnLink {
  int fd;
  uint64_t number;
} SnLink;

// Tells where a reply goes: the routing id of the client and the id of its request; and who asks, for what.
typedef struct SnRoute {
  SnPeer *peer;  // whoever sent the request; there until the daemon ends
  uint64_t id;
  SnLink link;       // connection that the request came by
  double arrived;    // when the request was read, on sn_clock_now()
  uint64_t session;  // id of the open session that it is about; 0: none
  uint8_t kind;      // number of the request's body in the schema; 0: it could not be read
  bool charged;      // the peer was charged for it beforehand, until it is answered
  bool no_session;   // it is refused since the session that it names is no more, or never was
  uint8_t size;
  uint8_t identity[255];
} SnRoute;

// Tells how a plan came about. Instants are on sn_clock_now().
typedef struct SnStages {
  double arrived;     // when its request was read; 0: the reply has no plan
  double taken;       // when the planner thread took the request out of its mailbox
  double turn;        // when its turn came; 0: it never did
  double began;       // when its state had been rolled forward, and planning began
  double ended;       // when its last slice ended
  double packed;      // when it was handed over to be sent
  double due;         // when it was wanted; INFINITY: any time
  double served;      // time of the planner thread that its slices took [s]
  double state_time;  // stamp that it answers
  uint64_t plan;      // number of the plan in its session
  int slices, iterations;
  int status;     // a Sinew__V1__Plan__Status
  bool first;     // the first plan for its state: in continuous mode better ones may follow
  bool in_time;   // the first one was there before it was due
  bool streamed;  // in continuous mode
} SnStages;

// Holds a packed reply on its way to a client.
typedef struct SnReply {
  struct SnReply *next;
  SnRoute route;
  size_t size;
  Sinew__V1__Error__Code error;  // 0: it is none
  SnStages stages;
  unsigned char bytes[];  // (size) a packed Reply
} SnReply;

// Counts the replies that are held ready for when memory ends.
enum { SN_SPARE_REPLIES = 64 };

typedef struct SnOutbox {
  pthread_mutex_t mutex;
  SnReply *first, **last;
  SnReply *spare;  // under the mutex, as `spares`: for errors that find no memory
  int spares;
  bool told;  // under the mutex: the event loop knows that replies lie here
  bool held;  // the event loop's: there may be some that it was not told of
  int wake;   // eventfd; readable while it was told and has not taken them
} SnOutbox;

bool sn_outbox_init(SnOutbox *outbox);
void sn_outbox_free(SnOutbox *outbox);

// Packs a reply, with the id of the route, and hands it over. Any thread may call it, as sn_outbox_plan.
void sn_outbox_reply(SnOutbox *outbox, const SnRoute *route, Sinew__V1__Reply *reply);

// Packs a plan with its stages, otherwise as sn_outbox_reply.
void sn_outbox_plan(SnOutbox *outbox, const SnRoute *route, Sinew__V1__Plan *plan, const SnStages *stages);
// Packs a plan, and tells nobody: the event loop, which calls it, sends such replies together (sn_outbox_holds).
void sn_outbox_hold_plan(SnOutbox *outbox, const SnRoute *route, Sinew__V1__Plan *plan, const SnStages *stages);
// Returns whether there are such replies. The event loop calls it.
bool sn_outbox_holds(const SnOutbox *outbox);

// Packs a reply to be sent later; the result does not refer to `reply` any more. If there is no memory for it, or
// `reply` is NULL since there was none before, the result is an error that says so. Returns NULL when even the spare
// ones are used up: then the client's time-out decides. Any thread may call it.
SnReply *sn_outbox_pack(SnOutbox *outbox, const SnRoute *route, Sinew__V1__Reply *reply);
// Hands a packed reply over. Accepts NULL.
void sn_outbox_send(SnOutbox *outbox, SnReply *reply);

// Replies with an error, its text like printf. Any thread may call it.
void sn_outbox_error(SnOutbox *outbox, const SnRoute *route, Sinew__V1__Error__Code code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// Wakes the event loop without a reply: something that it watches has changed. Any thread may call it.
void sn_outbox_wake(SnOutbox *outbox);

// Takes all replies, oldest first, for the event loop; each is freed by free().
SnReply *sn_outbox_pop_all(SnOutbox *outbox);

#endif
