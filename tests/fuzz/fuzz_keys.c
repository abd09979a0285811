// Fuzz target: files of keys, the list of keys with roles and quotas, and the setting `users`. The first byte says
// which.
#include <stdlib.h>
#include <string.h>

#include "daemon/access/access.h"
#include "daemon/wire/users_private.h"
#include "proto/key_file.h"
#include "tests/fuzz/fuzz.h"

#define KEY "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
#define OTHER "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"

// What was accepted: a public key, a secret one, a list, users; and a list that was refused.
enum { PUBLIC, SECRET, LIST, USERS, REFUSED, REACHED };
static bool reached[REACHED];

static void read_key(const uint8_t *data, size_t size, int secret) {
  char key[SN_KEY_TEXT] = "", why[100] = "";
  const char *path = fuzz_file(data, size);
  const bool ok =
      secret ? sn_key_read_secret(path, key, why, sizeof why) : sn_key_read_public(path, key, why, sizeof why);
  reached[secret ? SECRET : PUBLIC] |= ok;
  if (ok ? !sn_key_is_valid(key) : !why[0]) fuzz_fail("key '%s', reason '%s'", key, why);
}

// A list in the place of another one, as at SIGHUP: it is in force as a whole, or nothing changes.
static void read_list(const uint8_t *data, size_t size) {
  static const char before[] = KEY " admin name=a sessions=2\n" OTHER " watch\n";
  SnAccess access;
  SnError err = {0};
  bool lowered;
  char why[100];
  if (sn_access_init(&access, fuzz_file(before, sizeof before - 1), &err) != SN_OK) fuzz_fail("%s", err.text);
  const SnCode code = sn_access_reload(&access, fuzz_file(data, size), &lowered, &err);
  reached[code == SN_OK ? LIST : REFUSED] = true;
  if (code != SN_OK && (!err.text[0] || access.count != 2 || access.peer[0]->role != SN_ROLE_ADMIN))
    fuzz_fail("a list that is refused changes who may come in: '%s'", err.text);
  for (int i = 0; i < access.count; ++i) {
    SnPeer *peer = access.peer[i];
    if (!sn_key_is_valid(peer->key) || peer->role > SN_ROLE_ADMIN) fuzz_fail("a peer without key or role");
    if (peer->role != SN_ROLE_NONE && sn_access_find(&access, peer->key) != i) fuzz_fail("a key is on the list twice");
    for (int k = 0; k < 3; ++k) sn_quota_request(peer, 1000, k, why, sizeof why);
    sn_quota_spend(peer, 0.1);
    bool charged = false;
    sn_quota_planning(peer, 0.02, 4, &charged, why, sizeof why);
    if (charged) sn_quota_answered(peer, 5);
  }
  sn_access_free(&access);
}

static void read_users(const uint8_t *data, size_t size) {
  SnError err = {0};
  char *text = calloc(1, size + 1);
  if (!text) return;
  memcpy(text, data, size);
  const bool ok = sn_users_prepare(text, &err) == SN_OK;
  reached[USERS] |= ok;
  if (!ok && !err.text[0]) fuzz_fail("users are refused without a word");
  sn_users_given();
  free(text);
}

void fuzz_one(const uint8_t *data, size_t size) {
  if (size == 0) return;
  switch (data[0] % 4) {
    case 0:
    case 1:
      read_key(data + 1, size - 1, data[0] % 4);
      break;
    case 2:
      read_list(data + 1, size - 1);
      break;
    default:
      read_users(data + 1, size - 1);
      break;
  }
}

const char *fuzz_missing(void) {
  static const char *const what[REACHED] = {"a public key", "a secret key", "a list", "users",
                                            "a list that is refused"};
  for (int i = 0; i < REACHED; ++i)
    if (!reached[i]) return what[i];
  return NULL;
}

size_t fuzz_seed(int i, uint8_t *bytes) {
  static const char *const seed[] = {"0# a comment\n" KEY "\n",
                                     "1" KEY "\r\n",
                                     "2# public key   role\n" OTHER
                                     " plan name=left-arm sessions=2 requests=500 bytes=2e6 planning=0.5\n\n" KEY
                                     " tune\n",
                                     "2" KEY " admin name=x\n" OTHER " watch requests=1e-3\n" KEY " plan\n",
                                     "31001,1002,0\n",
                                     "34294967294"};
  return i < (int)(sizeof seed / sizeof *seed) ? fuzz_text(seed[i], bytes) : 0;
}
