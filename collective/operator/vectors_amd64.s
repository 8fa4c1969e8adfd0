#include "textflag.h"

// These add so many blocks of 128 bytes with the vectors of AVX2, without a look at what the
// operands are: vectors_amd64.go has looked.

#define BEGIN \
	MOVQ  dst+0(FP), DI \
	MOVQ  left+8(FP), SI \
	MOVQ  right+16(FP), DX \
	MOVQ  blocks+24(FP), CX \
	TESTQ CX, CX \
	JLE   done

#define NEXT(bytes) \
	ADDQ $bytes, SI \
	ADDQ $bytes, DX \
	ADDQ $bytes, DI \
	DECQ CX \
	JNZ  loop

#define END \
	VZEROUPPER \
	RET

// Four vectors are under way at a time, for none has to wait for another.
#define SUM(load, add) \
	BEGIN \
loop: \
	load  0(SI), Y0 \
	load  32(SI), Y1 \
	load  64(SI), Y2 \
	load  96(SI), Y3 \
	add   0(DX), Y0, Y0 \
	add   32(DX), Y1, Y1 \
	add   64(DX), Y2, Y2 \
	add   96(DX), Y3, Y3 \
	load  Y0, 0(DI) \
	load  Y1, 32(DI) \
	load  Y2, 64(DI) \
	load  Y3, 96(DI) \
	NEXT(128) \
done: \
	END

// func sumInt8s(dst, left, right unsafe.Pointer, blocks int)
TEXT ·sumInt8s(SB), NOSPLIT, $0-32
	SUM(VMOVDQU, VPADDB)

// func sumInt16s(dst, left, right unsafe.Pointer, blocks int)
TEXT ·sumInt16s(SB), NOSPLIT, $0-32
	SUM(VMOVDQU, VPADDW)

// func sumInt32s(dst, left, right unsafe.Pointer, blocks int)
TEXT ·sumInt32s(SB), NOSPLIT, $0-32
	SUM(VMOVDQU, VPADDD)

// func sumInt64s(dst, left, right unsafe.Pointer, blocks int)
TEXT ·sumInt64s(SB), NOSPLIT, $0-32
	SUM(VMOVDQU, VPADDQ)

// func sumFloat32s(dst, left, right unsafe.Pointer, blocks int)
TEXT ·sumFloat32s(SB), NOSPLIT, $0-32
	SUM(VMOVUPS, VADDPS)

// func sumFloat64s(dst, left, right unsafe.Pointer, blocks int)
TEXT ·sumFloat64s(SB), NOSPLIT, $0-32
	SUM(VMOVUPD, VADDPD)

// EVERYWHERE has a number in all lanes.
#define EVERYWHERE(number, x, y) \
	MOVL         number, AX \
	VMOVD        AX, x \
	VPBROADCASTD x, y

// SUMHALVES adds eight Float16 as float32. A NaN becomes the quiet one of its sign, as that
// of ToFloat16 does: the conversion would keep more of it.
#define SUMHALVES(offset) \
	VCVTPH2PS offset(SI), Y0 \
	VCVTPH2PS offset(DX), Y1 \
	VADDPS    Y1, Y0, Y0 \
	VCMPPS    $3, Y0, Y0, Y1 \
	VPAND     Y14, Y0, Y2 \
	VPOR      Y15, Y2, Y2 \
	VBLENDVPS Y1, Y2, Y0, Y0 \
	VCVTPS2PH $0, Y0, offset(DI)

// func sumFloat16s(dst, left, right unsafe.Pointer, blocks int)
TEXT ·sumFloat16s(SB), NOSPLIT, $0-32
	EVERYWHERE($0x80000000, X14, Y14)
	EVERYWHERE($0x7fc00000, X15, Y15)
	BEGIN
loop:
	SUMHALVES(0)
	SUMHALVES(16)
	SUMHALVES(32)
	SUMHALVES(48)
	SUMHALVES(64)
	SUMHALVES(80)
	SUMHALVES(96)
	SUMHALVES(112)
	NEXT(128)
done:
	END

// SUMBFLOATS adds eight BFloat16 as float32, and rounds as ToBFloat16 does: up by half of the
// last place, less one bit if that is even, and a NaN not at all.
#define SUMBFLOATS(offset, y, other, even) \
	VPMOVZXWD offset(SI), y \
	VPMOVZXWD offset(DX), other \
	VPSLLD    $16, y, y \
	VPSLLD    $16, other, other \
	VADDPS    other, y, y \
	VCMPPS    $3, y, y, other \
	VPSRLD    $16, y, even \
	VPAND     Y14, even, even \
	VPADDD    Y15, even, even \
	VPANDN    even, other, even \
	VPADDD    even, y, y \
	VPSRLD    $16, y, y

// PACKBFLOATS has sixteen of them in one vector, in order.
#define PACKBFLOATS(offset) \
	SUMBFLOATS(offset, Y0, Y1, Y2) \
	SUMBFLOATS(offset+16, Y3, Y4, Y5) \
	VPACKUSDW Y3, Y0, Y0 \
	VPERMQ    $0xd8, Y0, Y0 \
	VMOVDQU   Y0, offset(DI)

// func sumBFloat16s(dst, left, right unsafe.Pointer, blocks int)
TEXT ·sumBFloat16s(SB), NOSPLIT, $0-32
	EVERYWHERE($1, X14, Y14)
	EVERYWHERE($0x7fff, X15, Y15)
	BEGIN
loop:
	PACKBFLOATS(0)
	PACKBFLOATS(32)
	PACKBFLOATS(64)
	PACKBFLOATS(96)
	NEXT(128)
done:
	END
