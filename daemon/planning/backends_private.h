// Where plans are made: on the CPU, or on a device with the CPU as what remains when the device is lost. The planner
// thread opens, looks after and closes them; what others may know of the device is a view, taken now and then.
#ifndef SINEW_DAEMON_PLANNING_BACKENDS_PRIVATE_H_
#define SINEW_DAEMON_PLANNING_BACKENDS_PRIVATE_H_

#include <pthread.h>

#include "daemon/config/config.h"
#include "daemon/base/log.h"
#include "planner/backend/backend.h"

// What is known of the device.
typedef struct SnDeviceView {
  bool present;    // there is one, lost or not
  char name[32];   // of the backend
  char text[256];  // for people
  SnBackendMemory memory;
  bool lost;
  char reason[300];
  double lost_at;  // on sn_clock_now()
} SnDeviceView;

typedef struct SnBackends {
  const SnLog *log;
  SnPool *pool;
  SnBackend *cpu;     // any thread may make planners with it
  SnBackend *device;  // NULL: none. Any thread may make planners with it, the planner thread uses them (owner.h)
  double looked;      // when memory was last asked for; the planner thread's
  pthread_mutex_t mutex;
  SnDeviceView view;  // under the mutex
} SnBackends;

// Opens what the configuration wants. The calling thread owns the device from now on; wake(context) is called when
// another thread waits for it. err says which backend cannot be opened, and why.
SnCode sn_backends_open(SnBackends *backends, const SnConfig *config, const SnLog *log, void (*wake)(void *context),
                        void *context, SnError *err);
// By the owner, when no planner is left. Also of what was opened in part, or is all zero.
void sn_backends_close(SnBackends *backends);

// Carries out what other threads want of the device and brings the view up to date; logs the loss of the device, once.
// The owner's, between two slices.
void sn_backends_update(SnBackends *backends);

// Whether plans can be made on the device. The owner's.
bool sn_backends_device_works(const SnBackends *backends);

// The view; any thread.
SnDeviceView sn_backends_view(SnBackends *backends);

// For a new planner: where it plans, and what it falls back on when that is lost, or has been (NULL: nothing). Any
// thread.
void sn_backends_choose(const SnBackends *backends, SnBackend **backend, SnBackend **fallback);

#endif
