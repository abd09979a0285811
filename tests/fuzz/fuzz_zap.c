// Fuzz target: what libzmq's handler of keys is asked (ZAP, RFC 27), and names that peers give themselves. An input is
// a row of frames, each with a byte of its length; bit 7 of that: more follow.
#include <stdlib.h>
#include <string.h>

#include "daemon/wire/zap_private.h"
#include "tests/fuzz/fake_zmq.h"
#include "tests/fuzz/fuzz.h"

#define KEY "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
#define OTHER "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"

static const uint8_t *at, *end;
static int frames, good;  // of the answer; its status is 200
static bool is_key;       // the latest request shows a key of the list by CURVE
static char text[256];    // a property of a message
static bool let_in, turned_away, believed;

static bool receive(const void **bytes, size_t *size, bool *more) {
  if (at == end) return false;
  *more = *at & 0x80;
  *size = (size_t)(*at++ & 0x7f);
  if (*size > (size_t)(end - at)) *size = (size_t)(end - at);
  if (at == end) *more = false;
  *bytes = at;
  at += *size;
  if (*size == 32) {
    char key[SN_KEY_TEXT];
    zmq_z85_encode(key, *bytes, 32);
    is_key = is_key || !strcmp(key, KEY) || !strcmp(key, OTHER);
  }
  return true;
}

static void sent(const void *bytes, size_t size, bool more) {
  if (frames == 2) good = size == 3 && !memcmp(bytes, "200", 3);
  ++frames;
  if (more) return;
  if (frames != 6) fuzz_fail("an answer of %d frames", frames);
  if (good && !is_key) fuzz_fail("somebody without a key is let in");
  *(good ? &let_in : &turned_away) = true;
  frames = 0;
  is_key = false;
}

static const char *property(const char *name) { return strcmp(name, "User-Id") ? NULL : text; }

void fuzz_one(const uint8_t *data, size_t size) {
  static const SnLog quiet = {.fd = -1};
  static const char list[] = KEY " plan\n" OTHER " admin\n";
  static SnAccess access;
  SnError err = {0};
  bool lowered;
  fake_zmq = (FakeZmq){.receive = receive, .sent = sent, .property = property};
  if (!access.count && (sn_access_init(&access, "", &err) != SN_OK ||
                        sn_access_reload(&access, fuzz_file(list, sizeof list - 1), &lowered, &err) != SN_OK))
    fuzz_fail("%s", err.text);
  SnZap zap = {.socket = &zap, .access = &access, .log = &quiet, .token = "0123456789abcdef0123456789abcdef"};
  at = data;
  end = data + size;
  frames = 0;
  is_key = false;
  while (at < end) sn_zap_answer(&zap);
  sn_zap_report(&zap, 100);

  // A peer's name is believed under the token alone.
  zmq_msg_t frame;
  zmq_msg_init(&frame);
  const size_t n = size < sizeof text - 1 ? size : sizeof text - 1;
  memcpy(text, data, n);
  text[n] = '\0';
  const SnPeer *peer = sn_zap_peer(&zap, &frame);
  believed |= peer != NULL;
  if (peer && strncmp(text, zap.token, strlen(zap.token)) != 0) fuzz_fail("the name '%s' is believed", text);
}

const char *fuzz_missing(void) {
  return !let_in        ? "a key that is let in"
         : !turned_away ? "one that is not"
         : !believed    ? "a name that is believed"
                        : NULL;
}

static size_t put(uint8_t *out, const void *bytes, size_t n, int more) {
  out[0] = (uint8_t)(n | (more ? 0x80u : 0));
  memcpy(out + 1, bytes, n);
  return n + 1;
}

// Requests of the two keys for requests and for records, of a stranger, by another mechanism; and names.
size_t fuzz_seed(int i, uint8_t *bytes) {
  static const char *const key[] = {KEY, OTHER, "0000000000000000000000000000000000000000"};
  static const char *const domain[] = {"requests", "records"}, *const mechanism[] = {"CURVE", "PLAIN"};
  uint8_t raw[32];
  size_t n = 0;
  if (i >= 12) return i < 14 ? fuzz_text(i % 2 ? "0123456789abcdef0123456789abcdef:1" : "this:1:2:3", bytes) : 0;
  zmq_z85_decode(raw, key[i % 3]);
  n += put(bytes + n, "1.0", 3, 1);
  n += put(bytes + n, "1", 1, 1);
  n += put(bytes + n, domain[i / 3 % 2], strlen(domain[i / 3 % 2]), 1);
  n += put(bytes + n, "192.168.1.7", 11, 1);
  n += put(bytes + n, "", 0, 1);
  n += put(bytes + n, mechanism[i / 6], 5, 1);
  return n + put(bytes + n, raw, sizeof raw, 0);
}
