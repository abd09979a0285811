// Files of the kind MCAP, version 0 (mcap.dev/spec): a header, a schema and a channel for each kind of message, the
// messages, an end. There are no chunks, no index and no checksums, all of which are optional.
#ifndef SINEW_DAEMON_MONITOR_FLIGHT_PRIVATE_H_
#define SINEW_DAEMON_MONITOR_FLIGHT_PRIVATE_H_

#include <stddef.h>
#include <stdint.h>

// Numbers the channels, and so the schemas.
enum { SN_MCAP_REQUESTS = 1, SN_MCAP_PLANS = 2, SN_MCAP_MESSAGE_HEAD = 31 };

// Holds the bytes of a file before or behind its messages.
typedef struct SnMcapPart {
  unsigned char *bytes;  // NULL: out of memory
  size_t size, capacity;
} SnMcapPart;

// Makes the begin of a file; `schema` are descriptors of the wire. The caller frees the bytes.
SnMcapPart sn_mcap_begin(const void *schema, size_t size);
// Makes the end of a file.
SnMcapPart sn_mcap_end(void);

// Writes the head of a message of `size` bytes that are to follow; `nanoseconds` are Unix time.
void sn_mcap_message(unsigned char head[SN_MCAP_MESSAGE_HEAD], int channel, uint32_t number, uint64_t nanoseconds,
                     size_t size);

#endif
