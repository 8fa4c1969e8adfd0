package fabric

import (
	"os"
	"strconv"

	"github.com/weft-go/weft/cgo"
)

// An endpoint of sockets has its connections in a table, to which everything of them points, and
// which is moved when it is full: the process ends, or goes on with memory that was freed. So it has
// room for more than there can be (cgo/introductions.c). Memory of this size the C library has of the
// kernel in any case, and nothing of it is used before there are so many connections.
const (
	connectionsRoom = "FI_SOCKETS_DEF_CONN_MAP_SZ"
	connectionsMost = 5 << 16 // of 112 bytes, and more than 32 MiB
)

// roomForConnections: a fabric of sockets has been opened with the variable. setup guards it.
var roomForConnections bool

// openWithRoom opens a fabric: the first one of sockets, which reads the variable once, with the
// variable. It has it listen for as many callers, too, as far as the kernel allows. Whoever has asked
// for more gets that. A process that is started meanwhile inherits it. The caller holds setup.
func (i *Info) openWithRoom() (cgo.Fabric, cgo.Code) {
	value, set := os.LookupEnv(connectionsRoom)
	n, err := strconv.Atoi(value)
	if core(i.Provider()) != "sockets" || roomForConnections || err == nil && n >= connectionsMost {
		return cgo.OpenFabric(i.raw)
	}
	// Errors would be those of the name.
	_ = os.Setenv(connectionsRoom, strconv.Itoa(connectionsMost))
	raw, code := cgo.OpenFabric(i.raw)
	roomForConnections = code == 0
	if set {
		_ = os.Setenv(connectionsRoom, value)
	} else {
		_ = os.Unsetenv(connectionsRoom)
	}
	return raw, code
}
