#ifndef WEFT_COUNTER_H
#define WEFT_COUNTER_H

#include "shim.h"

int weft_cntr_open(struct fid_domain *domain, int wait, struct fid_cntr **cntr);
int weft_cntr_add(struct fid_cntr *cntr, uint64_t value);
int weft_cntr_adderr(struct fid_cntr *cntr, uint64_t value);
int weft_cntr_set(struct fid_cntr *cntr, uint64_t value);
int weft_cntr_seterr(struct fid_cntr *cntr, uint64_t value);
int weft_cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout_ms);

#endif
