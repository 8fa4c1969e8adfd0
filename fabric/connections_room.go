package fabric

import (
	"os"
	"strconv"
	"sync"
)

// An endpoint of sockets has its connections in a table, to which everything of them points, and
// which is moved when it is full: the process ends, or goes on with memory that was freed. So it has
// room for more than there can be (cgo/introductions.c). Memory of this size the C library has of the
// kernel in any case, and nothing of it is used before there are so many connections.
const (
	connectionsRoom = "FI_SOCKETS_DEF_CONN_MAP_SZ"
	connectionsMost = 5 << 16
)

// makeRoomForConnections has the next fabric of sockets, in whose opening the variable is read once,
// know of the room. Whoever has asked for more gets that. The caller holds setup.
func makeRoomForConnections(provider string) (restore func()) {
	restore = func() {}
	if core(provider) != "sockets" {
		return restore
	}
	connectionsOnce.Do(func() {
		value, set := os.LookupEnv(connectionsRoom)
		if n, err := strconv.Atoi(value); err == nil && n >= connectionsMost {
			return
		}
		// Errors would be those of the name.
		_ = os.Setenv(connectionsRoom, strconv.Itoa(connectionsMost))
		restore = func() {
			if set {
				_ = os.Setenv(connectionsRoom, value)
			} else {
				_ = os.Unsetenv(connectionsRoom)
			}
		}
	})
	return restore
}

var connectionsOnce sync.Once
