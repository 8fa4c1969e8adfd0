#include "textflag.h"

// func Fetch(p *byte)
TEXT ·Fetch(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	// PREFETCHW (AX), which Go's assembler does not know. Where the processor does not, it is
	// no operation.
	BYTE $0x0F; BYTE $0x0D; BYTE $0x08
	RET
