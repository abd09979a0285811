// Sessions that outlast the daemon: those that were opened with a name. Two files of the folder `state` keep each of
// them: ID.session its settings, ID.warm where it stood.
//
// A thread of its own writes. Who changes a session hands over the bytes and the answer to the change, which leaves
// when they are written. Only the newest bytes count. The folder belongs to one daemon at a time, by a lock that ends
// with it.
//
// A file is written under another name and then renamed, so that there is the old one or the new one, whatever ends the
// process. Settings are also on the disk (fsync) before they are answered: they outlast a loss of power. A warm start
// is not; one that a loss of power has spoiled is refused by its checksum, and the session goes on without it.
//
// While a session is being restored a third file says how many daemons have tried that: ID.restoring. A daemon that
// finds it has one before it that ended meanwhile, perhaps by that session. One that crashes while it makes the first
// plan after that writes so in the file `crashed` (crash_note.c).
#ifndef SINEW_DAEMON_KEEP_KEEP_H_
#define SINEW_DAEMON_KEEP_KEEP_H_

#include "daemon/base/log.h"
#include "daemon/config/config.h"
#include "daemon/wire/outbox.h"
#include "proto/validate.h"

typedef struct SnKeeper SnKeeper;

// Tells how a named session stands.
typedef enum SnKeptState {
  SN_KEPT_RESTORING,  // it is in the folder, and not open yet
  SN_KEPT_OPENING,    // a request opens it
  SN_KEPT_OPEN,
  SN_KEPT_CLOSED,  // frees its name; the files go
} SnKeptState;

// Names the files of a session.
typedef enum SnKeptPart {
  SN_KEPT_SETTINGS,
  SN_KEPT_WARM,
  SN_KEPT_PARTS,
  SN_KEPT_MARK = SN_KEPT_PARTS  // it is being restored; no part of the session
} SnKeptPart;

// Holds packed bytes of the heap.
typedef struct SnKeptBytes {
  void *bytes;  // NULL: none
  size_t size;
} SnKeptBytes;

// Holds a named session as the keeper knows it.
typedef struct SnKept {
  SnKeeper *keeper;
  uint64_t id;  // number of the session; 0 until it is open
  char name[SN_WIRE_NAME + 1];
  SnPeer *owner;
  Sinew__V1__KeptSession *from;  // text of its file at the start, NULL: it is new

  // Under the keeper's mutex.
  SnKeptState state;
  bool released;                       // nobody else knows it any more
  SnKeptBytes pending[SN_KEPT_PARTS];  // to be written
  size_t written[SN_KEPT_PARTS];       // bytes of its files
  SnReply *replies, **last_reply;      // answers that wait for that
  int waiting;                         // how many
  double again;                        // when to try again after a failure, on sn_clock_now()
  bool failing;                        // the latest attempt failed, and the log says so

  // Whoever has the session's planner: the loader thread that opens it, then the planner thread.
  bool marked;               // this daemon has begun to restore it and is not done
  int tries;                 // daemons in a row that have begun to restore it, this one too once it has
  int ends;                  // these, when it was restored and no plan has been answered since; else 0
  uint64_t restarts, epoch;  // see KeptSession
  double warmed;             // when its warm start was last handed over
  struct SnKept *next;
} SnKept;

typedef struct SnKeptFolder {
  int fd, lock;  // the folder, and its lock; -1: there is none
  const char *path;
} SnKeptFolder;

// Names a session that could not be gone on from, for whoever asks for it.
typedef struct SnKeptRefusal {
  uint64_t id;
  const SnPeer *owner;
} SnKeptRefusal;

enum { SN_KEPT_REFUSALS = 64 };

struct SnKeeper {
  const SnConfig *config;
  const SnLog *log;
  SnOutbox *outbox;
  SnAccess *access;
  SnKeptFolder folder;
  pthread_mutex_t mutex;
  pthread_cond_t filled;
  _Atomic(const SnKept *) first_plan;       // the first plan since it was restored is worked at; NULL: of none
  SnKept *first;                            // under the mutex, as what follows
  size_t bytes;                             // counts all files
  SnKeptRefusal refused[SN_KEPT_REFUSALS];  // the latest ones, a ring
  uint64_t refusals;                        // how many there have been
  bool stop;
  pthread_t thread;
  bool running;  // there is a folder, and a thread that writes there
};

// Reads the folder that the configuration names, if it names one, and starts the thread. Files that cannot be
// read are moved aside, with a line of the log. err says why the folder cannot be used.
SnCode sn_keeper_start(SnKeeper *keeper, const SnConfig *config, const SnLog *log, SnOutbox *outbox, SnAccess *access,
                       SnError *err);
// Writes what is still to be written and ends the thread. No session may be there any more; a second call does nothing.
void sn_keeper_stop(SnKeeper *keeper);

// Finds the session of that name and owner that is not closed, or NULL. *state says how it stands, *id is its number.
// The event loop calls it.
SnKept *sn_keeper_find(SnKeeper *keeper, const char *name, const SnPeer *owner, SnKeptState *state, uint64_t *id);
// Takes a name for a session that is to be opened. Returns NULL when out of memory.
SnKept *sn_keeper_add(SnKeeper *keeper, const char *name, SnPeer *owner);
// Notes that it is open under that id. Any thread may call it.
void sn_keeper_opened(SnKept *kept, uint64_t id);
// Returns whether a session with that id is in the folder and not open yet; *owner is whose. Any thread may call it.
bool sn_keeper_restoring(SnKeeper *keeper, uint64_t id, const SnPeer **owner);
// Returns whether a session with that id was moved aside by sn_keeper_refuse; *owner is whose. Any thread may call it.
bool sn_keeper_refused(SnKeeper *keeper, uint64_t id, const SnPeer **owner);

// Marks that this daemon begins to restore a session, once however often it is called. Is undone by sn_keeper_opened,
// sn_keeper_refuse and sn_keeper_stop, and so not where the daemon ends otherwise. Who calls it may wait for files.
void sn_keeper_mark(SnKept *kept);

// Says that a slice of the first plan since a session was restored begins, or (NULL) has ended: after a crash meanwhile
// the next daemon knows. It is one store. The planner thread calls it.
void sn_keeper_first_plan(SnKeeper *keeper, const SnKept *kept);

// Gives the name free and lets the files be removed; the answer (NULL: none) leaves once they are. Any thread may call
// it.
void sn_keeper_close(SnKept *kept, SnReply *reply);
// Moves the files aside, since they cannot be gone on from, and gives the name free. Who calls it may wait for files.
void sn_keeper_refuse(SnKept *kept, const char *why);
// Lets go of it: who calls this does not touch it any more. Accepts NULL. Any thread may call it.
void sn_keeper_release(SnKept *kept);

// Writes the settings of a session that has been restored and that nobody can ask for yet. Hands them over as
// sn_keeper_post does where they cannot be written. Takes the bytes. Who calls it may wait for files.
void sn_keeper_write(SnKept *kept, SnKeptBytes bytes);

// Hands over bytes to be written, NULL where there was no memory for them, and an answer (NULL: none) that leaves once
// they are. If they cannot be written the configuration in that answer says so. Takes both over; it never waits.
void sn_keeper_post(SnKept *kept, SnKeptPart part, SnKeptBytes bytes, SnReply *reply);

// Reads the warm start of a session that is restored; NULL: there is none that fits it, and the log says why. The
// caller frees it by protobuf. Who calls it may wait for files.
Sinew__V1__KeptWarmStart *sn_keeper_warm_start(SnKept *kept);

// Returns how the file names an owner: the public key, or "local" or "anyone".
const char *sn_keeper_owner(const SnKeeper *keeper, const SnPeer *owner);

#endif
