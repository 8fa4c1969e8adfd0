/* What shall go wrong: shares of WEFT_EFA_*, drawn from a seed, and orders from
 * the control socket. All of it under the engine's lock. */
#ifndef FAULTS_H
#define FAULTS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* Each queue pair draws its own numbers, so that they do not depend on what
 * others do. */
struct faults {
	uint64_t state;
};

void faults_seed(struct faults *faults, uint64_t seed, uint64_t salt);

/* faults_delay is how long to hold a packet back, in nanoseconds. */
uint64_t faults_delay(struct faults *faults);

/* faults_lose says whether a packet between this device and the peer is lost. */
bool faults_lose(struct faults *faults, struct in_addr peer, uint16_t port);

/* faults_refuse says whether a receiver shall say that it is not ready. */
bool faults_refuse(struct faults *faults);

/* faults_held says whether a packet waits for "release". */
bool faults_held(void);

/* faults_cut_off says whether "drop" was said of the peer. */
bool faults_cut_off(struct in_addr peer, uint16_t port);

/* The orders. A port of 0 means every port, UINT64_MAX packets to hold all of them. */
void faults_refuse_next(uint64_t count);
void faults_hold(uint64_t count);
bool faults_drop_peer(struct in_addr peer, uint16_t port);
void faults_heal(void);

#endif
