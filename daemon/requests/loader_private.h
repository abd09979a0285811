// Work for the loader threads.
#ifndef SINEW_DAEMON_REQUESTS_LOADER_PRIVATE_H_
#define SINEW_DAEMON_REQUESTS_LOADER_PRIVATE_H_

#include "daemon/requests/requests.h"

// Hands a job over; false when the queue is full, and the caller keeps it. An open request needs a place reserved in
// the sessions.
bool sn_loader_push(SnDaemon *daemon, SnJob *job);

// Makes a session for a job that opens one, or describes a task: then `in` is NULL. `kept` is what was kept of it,
// NULL: it is new. Returns NULL and err on failure, or *parked, and the job is somebody else's.
SnSession *sn_loader_create(SnDaemon *daemon, SnJob *job, const Sinew__V1__OpenRequest *in,
                            const Sinew__V1__KeptSession *kept, bool *parked, SnError *err);
// Lets everybody know a session that was opened for a job. Sends the reply (NULL: none), at once or when it is kept.
void sn_loader_admit(SnDaemon *daemon, SnJob *job, SnSession *session, SnReply *reply);

// ---- sessions of the last daemon (restore.c) ----

// Opens one again. Returns true when the job is done, false when it has been handed on.
bool sn_restore_session(SnDaemon *daemon, SnJob *job);
// Returns whether a job tries again to do so after a load of its model by another job has failed, and counts that.
bool sn_restore_again(SnJob *job);
// Logs that one cannot be opened again, and moves its files aside.
void sn_restore_failed(SnDaemon *daemon, const SnJob *job, const SnError *err);
// Gives back what a job had reserved that opens a session.
void sn_loader_unreserve(SnDaemon *daemon, const SnJob *job);

#endif
