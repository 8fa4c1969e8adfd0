//go:build !linux

package efa

import (
	"net"
	"runtime"
	"time"
)

// What the rest of the package asks of Linux. No reactor opens elsewhere, so nobody
// gets to ask.

func yield() { runtime.Gosched() }

func move() time.Duration { return 0 }

func lone() (spent, least time.Duration) { return 0, 0 }

func sharedMemory() (device, inode uint64, ok bool) { return 0, 0, false }

func unread(net.Conn) bool { return false }

type watcher struct{}

func (*watcher) add(*Conn) bool { return false }
func (*watcher) remove(*Conn)   {}
func (*watcher) close()         {}
