#include "tests/fuzz/fake_zmq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

// What the program defines is found before what the library does. zmq_msg_t has room for this.
typedef struct Message {
  void *bytes;
  size_t size;
} Message;

_Static_assert(sizeof(Message) <= sizeof(zmq_msg_t), "a message fits");

FakeZmq fake_zmq;

static bool more;            // frames of the message that was received last follow
static int something, pair;  // a socket of any kind; one that monitors another

static Message *message(const zmq_msg_t *m) { return (Message *)(void *)(uintptr_t)m; }

static int fail(int number) {
  errno = number;
  return -1;
}

void *zmq_ctx_new(void) { return &something; }
int zmq_ctx_term(void *context) { return context ? 0 : fail(EFAULT); }
void *zmq_socket(void *context, int type) {
  if (!context || type < 0) return NULL;
  return type == ZMQ_PAIR ? &pair : &something;
}
int zmq_close(void *socket) { return socket ? 0 : fail(ENOTSOCK); }
int zmq_bind(void *socket, const char *address) { return socket && *address ? 0 : fail(EINVAL); }
int zmq_connect(void *socket, const char *address) { return socket && *address ? 0 : fail(EINVAL); }
int zmq_socket_monitor(void *socket, const char *address, int events) {
  (void)address;
  (void)events;
  return socket ? 0 : fail(ENOTSOCK);
}
int zmq_setsockopt(void *socket, int option, const void *value, size_t size) {
  (void)option;
  return socket && (value || !size) ? 0 : fail(EINVAL);
}
int zmq_getsockopt(void *socket, int option, void *value, size_t *size) {
  if (!socket || option != ZMQ_RCVMORE || *size != sizeof(int)) return fail(EINVAL);
  *(int *)value = more;
  return 0;
}

// Whether there is a message is known when it is received.
int zmq_poll(zmq_pollitem_t *item, int n, long timeout) {
  (void)timeout;
  for (int i = 0; i < n; ++i) item[i].revents = ZMQ_POLLIN;
  return n;
}

// An event has two frames: its number and its value, and an address.
static int receive_event(uint8_t *out, size_t size) {
  static bool address;
  unsigned value = 0;
  if (address) {
    address = false;
    return 0;
  }
  const uint16_t number = fake_zmq.event ? (uint16_t)fake_zmq.event(&value) : 0;
  const uint32_t word = value;
  if (!number || size < sizeof number + sizeof word) return fail(EAGAIN);
  memcpy(out, &number, sizeof number);
  memcpy(out + sizeof number, &word, sizeof word);
  address = true;
  return sizeof number + sizeof word;
}

int zmq_recv(void *socket, void *out, size_t size, int flags) {
  const void *bytes;
  size_t n;
  (void)flags;
  if (socket == &pair) return receive_event(out, size);
  if (!socket || !fake_zmq.receive(&bytes, &n, &more)) return fail(EAGAIN);
  memcpy(out, bytes, n < size ? n : size);
  return (int)n;
}

int zmq_send(void *socket, const void *bytes, size_t size, int flags) {
  if (!socket) return fail(ENOTSOCK);
  if (fake_zmq.sent) fake_zmq.sent(bytes, size, flags & ZMQ_SNDMORE);
  return (int)size;
}

int zmq_msg_init(zmq_msg_t *m) {
  *message(m) = (Message){0};
  return 0;
}
int zmq_msg_close(zmq_msg_t *m) {
  free(message(m)->bytes);
  *message(m) = (Message){0};
  return 0;
}
void *zmq_msg_data(zmq_msg_t *m) { return message(m)->bytes; }
size_t zmq_msg_size(const zmq_msg_t *m) { return message(m)->size; }
const char *zmq_msg_gets(const zmq_msg_t *m, const char *name) {
  (void)m;
  return fake_zmq.property ? fake_zmq.property(name) : NULL;
}
int zmq_msg_recv(zmq_msg_t *m, void *socket, int flags) {
  const void *bytes;
  size_t n;
  (void)flags;
  if (!socket || !fake_zmq.receive(&bytes, &n, &more)) return fail(EAGAIN);
  free(message(m)->bytes);
  *message(m) = (Message){malloc(n ? n : 1), n};
  if (!message(m)->bytes) return fail(ENOMEM);
  memcpy(message(m)->bytes, bytes, n);
  return (int)n;
}
