// The backends as the planner thread sees them: it opens, looks after and closes them.
#ifndef SINEW_DAEMON_PLANNING_BACKENDS_PRIVATE_H_
#define SINEW_DAEMON_PLANNING_BACKENDS_PRIVATE_H_

#include "daemon/planning/planning.h"

// Opens the backends that the configuration wants. The calling thread owns the device from now on; wake(context) is
// called when another thread waits for it. err says which backend cannot be opened, and why.
SnCode sn_backends_open(SnBackends *backends, const SnConfig *config, const SnLog *log, void (*wake)(void *context),
                        void *context, SnError *err);

// Closes them. The owning thread calls it when no planner is left. Accepts what was opened in part, or is all zero.
void sn_backends_close(SnBackends *backends);

// Carries out what other threads want of the device and brings the view up to date; logs the loss of the device, once.
// The owning thread calls it between two slices.
void sn_backends_update(SnBackends *backends);

// Opens the device that a configuration names, or the one that `name` says, as a backend of its own. Returns NULL and
// err on failure.
SnBackend *sn_backends_open_device(const SnBackends *backends, const char *name, SnError *err);

// Opens the CPU with as many threads as the configuration says. Returns its backend, NULL and err on failure. The
// caller frees the backend, then the pool.
SnBackend *sn_backends_open_cpu(const SnConfig *config, SnPool **pool, int *threads, SnError *err);

// Returns whether plans can be made on the device. The owning thread calls it.
bool sn_backends_device_works(const SnBackends *backends);

#endif
