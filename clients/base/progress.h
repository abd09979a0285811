// Progress of a long run, on standard error. One thread.
#ifndef SINEW_CLIENTS_BASE_PROGRESS_H_
#define SINEW_CLIENTS_BASE_PROGRESS_H_

// Says like printf where the program is. A terminal shows it in place, at most three times a second; anything else gets
// a line every ten seconds. Quick work says nothing.
void sn_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Says the same to a terminal alone.
void sn_progress_terminal(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Ends progress: removes its line from a terminal.
void sn_progress_end(void);

#endif
