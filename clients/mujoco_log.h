// What a program of ours does with MuJoCo's messages: by default MuJoCo prints, writes MUJOCO_LOG.TXT into the working
// folder and ends the process.
#ifndef SINEW_CLIENTS_MUJOCO_LOG_H_
#define SINEW_CLIENTS_MUJOCO_LOG_H_

// Installs a handler: errors end the program with `exit_code` after a line on standard error; warnings are lines there,
// each text once; no log file is written. `program` is kept. Call it first in main.
void sn_mujoco_messages(const char *program, int exit_code);

#endif
