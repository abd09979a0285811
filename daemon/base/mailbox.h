// A mailbox of depth one between the event loop and the planner thread: an old state is worthless, so a new one takes
// its place. Lock-free: what lies in the box is one pointer, and whoever exchanges it out owns it.
#ifndef SINEW_DAEMON_BASE_MAILBOX_H_
#define SINEW_DAEMON_BASE_MAILBOX_H_

#include <stdatomic.h>
#include <stddef.h>

typedef struct SnMailbox {
  _Atomic(void *) item;
} SnMailbox;

// Puts an item and returns the one that it replaced, or NULL. The caller owns what comes back. Any thread may call it.
static inline void *sn_mailbox_push(SnMailbox *box, void *item) {
  return atomic_exchange_explicit(&box->item, item, memory_order_acq_rel);
}

// Takes the item out, or returns NULL when the box is empty. Any thread may call it.
static inline void *sn_mailbox_pop(SnMailbox *box) {
  return atomic_exchange_explicit(&box->item, NULL, memory_order_acq_rel);
}

#endif
