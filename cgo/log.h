// Takes libfabric's log over, so that its level can change while it runs.
#ifndef WEFT_LOG_H
#define WEFT_LOG_H

#include "shim.h"

int weft_log_import(void);
void weft_log_level(int level);

#endif
