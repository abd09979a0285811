// libzmq without sockets, in its place: what is received comes from an input, what is sent is looked at.
#ifndef SINEW_TESTS_FUZZ_FAKE_ZMQ_H_
#define SINEW_TESTS_FUZZ_FAKE_ZMQ_H_

#include <stdbool.h>
#include <stddef.h>

// Holds what a target gives and gets. Frames belong to the target.
typedef struct FakeZmq {
  // Gives the next frame that is received, and whether more of the same message follow; false: there is none.
  bool (*receive)(const void **bytes, size_t *size, bool *more);
  // Gives the number of the next event that a monitor of a socket sees, 0 for none, and its value; may be NULL.
  unsigned (*event)(unsigned *value);
  // Gets each frame that is sent; may be NULL.
  void (*sent)(const void *bytes, size_t size, bool more);
  // Gives a property of a message, such as "User-Id"; may be NULL.
  const char *(*property)(const char *name);
} FakeZmq;

extern FakeZmq fake_zmq;

#endif
