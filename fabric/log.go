package fabric

import (
	"sync"

	"github.com/weft-go/weft/cgo"
)

// LogLevel says how much libfabric writes to the standard error. Each level
// has what those before it have.
type LogLevel int

// The levels. What a library was built without, such as debug messages in a
// release build, no level brings back.
const (
	LogOff   LogLevel = LogLevel(cgo.LogOff)   // nothing
	LogWarn  LogLevel = LogLevel(cgo.LogWarn)  // FI_LOG_WARN
	LogTrace LogLevel = LogLevel(cgo.LogTrace) // FI_LOG_TRACE
	LogInfo  LogLevel = LogLevel(cgo.LogInfo)  // FI_LOG_INFO: what it looks at, and why it passes it over
	LogDebug LogLevel = LogLevel(cgo.LogDebug) // FI_LOG_DEBUG
)

// String is libfabric's word (fi_tostr), and "off" for LogOff.
func (l LogLevel) String() string {
	if l == LogOff {
		return "off"
	}
	return words(cgo.WordsLogLevel, uint64(uint32(l)))
}

// imported is libfabric's log once it has been taken over.
var imported struct {
	sync.Mutex
	done bool
}

// SetLogLevel sets how much libfabric writes to the standard error from now
// on. It can be called at any time, by any goroutine; messages under way may
// still have the old level.
//
// A process in which it is never called logs as FI_LOG_LEVEL says, as of the
// first use of libfabric. FI_LOG_PROV goes on choosing providers; FI_LOG_SUBSYS
// does not count any more.
//
// ErrNotSupported says that the library cannot hand its log over, ErrBusy that
// somebody else in the process has it, ErrInvalid that there is no such level.
//
// Implements: int fi_import_log(...)
func SetLogLevel(level LogLevel) error {
	if level < LogOff || level > LogDebug {
		return &Error{Op: "fi_import_log", Errno: errnoInvalid, Detail: "a level is LogOff to LogDebug"}
	}
	if err := available("fi_import_log", ""); err != nil {
		return err
	}
	imported.Lock()
	defer imported.Unlock()
	cgo.SetLogLevel(int(level))
	if imported.done {
		return nil
	}
	code := cgo.ImportLog()
	imported.done = code == 0
	return fail("fi_import_log", "", int(code))
}
