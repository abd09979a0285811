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

// Returns whether plans can be made on the device. The owning thread calls it.
bool sn_backends_device_works(const SnBackends *backends);

#endif
