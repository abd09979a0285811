// MuJoCo's messages in a program of ours. Left alone, MuJoCo prints them, writes MUJOCO_LOG.TXT into the working folder
// and ends the process.
#ifndef SINEW_CLIENTS_REFERENCE_MUJOCO_LOG_H_
#define SINEW_CLIENTS_REFERENCE_MUJOCO_LOG_H_

// Installs a handler; call it first in main. Errors end the program with `exit_code` after a line on standard error.
// Warnings are lines there, each text once. No log file is written. `program`, the name in these lines, is kept.
void sn_mujoco_messages(const char *program, int exit_code);

// Holds the warnings of one kind: their texts are equal up to the first digit (a dof, a time).
typedef struct SnMujocoWarning {
  long count;
  char first[1024];  // text of the first one
} SnMujocoWarning;

// Counts warnings from now on instead of printing them.
void sn_mujoco_count_warnings(void);
// Returns the i-th kind of warning counted, in the order of their first; NULL past the last one.
const SnMujocoWarning *sn_mujoco_warning(int i);

#endif
