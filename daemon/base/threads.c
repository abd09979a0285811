#include "daemon/base/threads.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void sn_thread_name(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

static void *wait_for(void *mutex) {
  pthread_mutex_lock(mutex);
  pthread_mutex_unlock(mutex);
  return NULL;
}

// All of them are there at a time, since each waits for the mutex.
int sn_threads_try(int count) {
  enum { MOST = 8 };
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_t thread[MOST];
  int n = 0, error = 0;
  pthread_mutex_lock(&mutex);
  while (n < count && n < MOST && error == 0) {
    error = pthread_create(&thread[n], NULL, wait_for, &mutex);
    n += error == 0;
  }
  pthread_mutex_unlock(&mutex);
  while (n > 0) pthread_join(thread[--n], NULL);
  return error;
}

// Time of a thread if its name begins so, from the line that the system has of it: NUMBER (NAME) STATE and numbers, of
// which the eleventh and twelfth are its time in the program and in the system (proc(5)) [ticks].
static double ticks_of(const char *thread, const char *name) {
  char path[300], line[1000];
  snprintf(path, sizeof path, "/proc/self/task/%s/stat", thread);
  FILE *f = fopen(path, "re");
  if (!f) return 0;
  const size_t n = fread(line, 1, sizeof line - 1, f);
  fclose(f);
  line[n] = '\0';
  const char *begin = strchr(line, '('), *end = strrchr(line, ')');
  unsigned long long user, system;
  if (!begin || !end || strncmp(begin + 1, name, strlen(name)) != 0) return 0;
  if (sscanf(end + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu", &user, &system) != 2) return 0;
  return (double)(user + system);
}

double sn_threads_seconds(const char *name) {
  double ticks = 0;
  DIR *folder = opendir("/proc/self/task");
  if (!folder) return 0;
  for (const struct dirent *e = readdir(folder); e; e = readdir(folder))
    if (e->d_name[0] != '.') ticks += ticks_of(e->d_name, name);
  closedir(folder);
  return ticks / (double)sysconf(_SC_CLK_TCK);
}
