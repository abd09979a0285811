// Breaks the device of the process that it is preloaded into, as a kernel with a defect would. It waits for the file
// that SINEW_LOSE_DEVICE names, launches a kernel that traps, and writes what CUDA says of it into FILE.told. The
// kernel runs in the primary context of the process, which every CUDA runtime in it shares: so all later calls fail,
// those of the backend's library too, until the process ends. Other processes notice nothing.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

static char lose_file[400];

__global__ void lose_kernel(void) { asm volatile("trap;"); }

static void *lose_watch(void *argument) {
  char told[420], text[500];
  const struct timespec pause = {0, 1000000};
  while (access(lose_file, F_OK) != 0) nanosleep(&pause, NULL);
  const cudaError_t chosen = cudaSetDevice(0);
  lose_kernel<<<1, 1>>>();
  const cudaError_t launched = cudaGetLastError(), ended = cudaDeviceSynchronize();
  snprintf(told, sizeof told, "%s.told", lose_file);
  snprintf(text, sizeof text, "%s.new", told);
  FILE *f = fopen(text, "w");
  if (!f) return argument;
  fprintf(f, "device: %s; launch: %s; end: %s\n", cudaGetErrorName(chosen), cudaGetErrorName(launched),
          cudaGetErrorName(ended));
  fclose(f);
  rename(text, told);
  return argument;
}

// The thread takes no signal of the program, whose children are not concerned.
__attribute__((constructor)) static void lose_begin(void) {
  const char *file = getenv("SINEW_LOSE_DEVICE");
  pthread_t thread;
  sigset_t all, before;
  if (!file || strlen(file) >= sizeof lose_file) return;
  strcpy(lose_file, file);
  unsetenv("SINEW_LOSE_DEVICE");
  unsetenv("LD_PRELOAD");
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread, NULL, lose_watch, NULL) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}
