//go:build linux

package cgo

/*
#include "log.h"
#include <rdma/providers/fi_log.h>
*/
import "C"

// Levels of the log; each has those before it.
const (
	LogOff   = -1
	LogWarn  = int(C.FI_LOG_WARN)
	LogTrace = int(C.FI_LOG_TRACE)
	LogInfo  = int(C.FI_LOG_INFO)
	LogDebug = int(C.FI_LOG_DEBUG)
)

// ImportLog takes the log over; from then on it has the level that SetLogLevel
// gives it. It can succeed once in a process.
//
// Implements: int fi_import_log(uint32_t version, uint64_t flags, struct fid_logging *log_fid)
func ImportLog() Code { return codeOf(C.weft_log_import()) }

// SetLogLevel changes the level of a log that was taken over.
func SetLogLevel(level int) { C.weft_log_level(C.int(level)) }
