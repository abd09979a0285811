// A bounded queue from many threads to many, in order of arrival.
#ifndef SINEW_DAEMON_BASE_QUEUE_H_
#define SINEW_DAEMON_BASE_QUEUE_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct SnQueue {
  pthread_mutex_t mutex;
  pthread_cond_t filled;
  void **ring;  // (capacity)
  int capacity, head;
  atomic_int count;  // changes under the mutex
  bool closed;       // takers get NULL at once when the queue is empty
  bool woken;        // a waiting taker shall look around although nothing was put
  int waiting;       // takers
  double told;       // when the first of them was told to wake up, on sn_clock_now(); 0: since the latest did, none was
} SnQueue;

bool sn_queue_init(SnQueue *queue, int capacity);
void sn_queue_free(SnQueue *queue);

// Appends; false when the queue is full or closed, and the caller keeps the item.
bool sn_queue_push(SnQueue *queue, void *item);

// Takes the oldest item, or returns NULL. Waits until `until` (on sn_clock_now(); 0: not at all) for one, a wake-up or
// the end. Takes no lock where nothing is there and it does not wait.
void *sn_queue_pop(SnQueue *queue, double until);

// Takes as sn_queue_pop does. *late gets how long after it should have the thread woke up [s]: since it was told, or
// since `until`. It is NaN where the thread did not wait.
void *sn_queue_pop_late(SnQueue *queue, double until, double *late);

// Wakes one taker that waits, or the next one that would: it returns without an item.
void sn_queue_wake(SnQueue *queue);

// Lets no more items in; those inside can still be taken.
void sn_queue_close(SnQueue *queue);

int sn_queue_count(SnQueue *queue);
bool sn_queue_closed(SnQueue *queue);

#endif
