// Threads by name: what `top -H` shows of them, and the processor time that they have taken.
#ifndef SINEW_DAEMON_BASE_THREADS_H_
#define SINEW_DAEMON_BASE_THREADS_H_

// Names the calling thread, and those that it starts from now on; 15 bytes are kept.
void sn_thread_name(const char *name);

// Returns the processor time [s] of all threads of the process that run now and whose names begin so.
double sn_threads_seconds(const char *name);

#endif
