#include "textflag.h"

// func Rest()
TEXT ·Rest(SB), NOSPLIT, $0-0
	PAUSE
	RET
