// What a program of ours does with MuJoCo's messages: by default MuJoCo prints, writes MUJOCO_LOG.TXT into the working
// folder and ends the process.
#ifndef SINEW_CLIENTS_REFERENCE_MUJOCO_LOG_H_
#define SINEW_CLIENTS_REFERENCE_MUJOCO_LOG_H_

// Installs a handler: errors end the program with `exit_code` after a line on standard error; warnings are lines there,
// each text once; no log file is written. `program` is kept. Call it first in main.
void sn_mujoco_messages(const char *program, int exit_code);

// Warnings of one kind: their texts are equal up to the first digit (a dof, a time).
typedef struct SnMujocoWarning {
  long count;
  char first[1024];
} SnMujocoWarning;

// Counts warnings from now on instead of printing them.
void sn_mujoco_count_warnings(void);
// The i-th kind of warning counted, in the order of their first; NULL past the last one.
const SnMujocoWarning *sn_mujoco_warning(int i);

#endif
