// A library that is no backend's.
int sn_strange_library(void);
int sn_strange_library(void) { return 1; }
