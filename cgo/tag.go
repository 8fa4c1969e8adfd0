//go:build linux

package cgo

/*
#include "shim.h"

// From 2.0 on; what it computes needs nothing of the library.
static uint64_t weft_tag_mpi(int tag, uint8_t payload)
{
#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(2, 0))
	return fi_tag_mpi(tag, payload);
#else
	return ((uint64_t)payload << 32) | (uint64_t)(uint32_t)tag;
#endif
}
*/
import "C"

// MPITag is a tag in the layout of FI_TAG_MPI.
//
// Implements: uint64_t fi_tag_mpi(int tag, uint8_t payload_id)
func MPITag(tag int32, payload uint8) uint64 {
	return uint64(C.weft_tag_mpi(C.int(tag), C.uint8_t(payload)))
}
