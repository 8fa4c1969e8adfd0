#ifndef WEFT_PAUSE_H
#define WEFT_PAUSE_H

// Rests between two looks at a queue that had nothing, for about 70 ns.
void weft_pause(void);

#endif
