// What an endpoint inside another one has of the outer one's receives.
#ifndef WEFT_INNERRECEIVES_H
#define WEFT_INNERRECEIVES_H

#include "shim.h"

// weft_receives_closing is for before fi_close of an endpoint of efa: what the one of shm inside receives is
// nothing to the outer one from then on. Nothing else may be done with either meanwhile.
void weft_receives_closing(struct fid *endpoint);

#endif
