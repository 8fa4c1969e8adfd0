/* The control socket: a test connects to it and gives orders, a line each, and
 * gets a line for each. README.md lists them. Under the engine's lock. */
#ifndef CONTROL_H
#define CONTROL_H

/* control_open listens where WEFT_EFA_CONTROL says, if it says, and adds its
 * descriptors to the epoll set under numbers from first on. */
void control_open(int epoll, int first);
void control_close(void);

/* control_ready is called for a descriptor that is ready, with its number less
 * first. */
void control_ready(int which);

#endif
