// Threads by name: what `top -H` shows of them, and the processor time that they have taken; and whether the system
// gives any more.
#ifndef SINEW_DAEMON_BASE_THREADS_H_
#define SINEW_DAEMON_BASE_THREADS_H_

// Names the calling thread, and those that it starts from now on; 15 bytes are kept.
void sn_thread_name(const char *name);

// Returns 0 where so many threads more can be started, 8 at most, else the error of pthread_create. They are started
// and end. It is for libraries that end the process where they get none.
int sn_threads_try(int count);

// Returns the processor time [s] of all threads of the process that run now and whose names begin so.
double sn_threads_seconds(const char *name);

#endif
