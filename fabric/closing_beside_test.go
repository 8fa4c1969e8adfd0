package fabric_test

import (
	"errors"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Methods that any goroutine may call are called by several while one closes the
// handle.
func TestMethodsDuringClose(t *testing.T) {
	anyone := map[string][]string{
		"Fabric":          {"OpenEventQueue", "OpenDomain"},
		"Domain":          {"OpenCounter", "Register", "OpenCompletionQueue", "OpenAddressVector", "OpenEndpoint", "MapRemote"},
		"EventQueue":      {"Read", "Write", "TryWait", "ReadWait", "WaitDescriptor"},
		"CompletionQueue": {"Signal", "WaitDescriptor", "Size"},
		"Counter":         {"Read", "Errors", "Add", "Set", "AddErrors", "Wait"},
		"Region":          {"Descriptor", "Remote", "RemoteOf", "Enable", "Refresh", "Len", "Access"},
		"Pool":            {"Get", "Out"},
		"MappedRegion":    {"At"},
		"PassiveEndpoint": {"Name", "SetBacklog", "SetName", "Listen"},
		"ScalableEndpoint": {
			"Name", "OpenSend", "Enable",
		},
		"Deferred": {"Begun", "Complete", "Counter"},
		"Endpoint": {"Info"},
		"Port":     {"Wake", "LocalAddress", "Attributes"},
	}
	// What these arguments are good for, or that the handle is closed.
	allowed := []error{
		net.ErrClosed, fabric.ErrBusy, fabric.ErrAgain, fabric.ErrInvalid, fabric.ErrNotSupported,
	}
	// What is open already, or what the arguments are wrong for, before Close too.
	refused := map[string]error{
		"ScalableEndpoint.Enable":    fabric.ErrInvalid,
		"PassiveEndpoint.SetBacklog": fabric.ErrInvalid,
		"PassiveEndpoint.SetName":    fabric.ErrInvalid,
		"PassiveEndpoint.Listen":     fabric.ErrInvalid,
	}
	tried := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(builders)) {
		t.Run(name, func(t *testing.T) {
			for index := range len(discarded(t, builders[name]).list) {
				s := build(t, builders[name])
				x := s.list[index]
				if tried[x.name] && x.name != "Port" {
					s.closeTo(0)
					continue
				}
				tried[x.name] = true
				s.closeTo(index + 1)
				var users sync.WaitGroup
				started := make(chan struct{}, 64)
				stop := make(chan struct{})
				for _, method := range anyone[x.name] {
					m, ok := reflect.TypeOf(x.handle).MethodByName(method)
					require.True(t, ok, "%s has no %s", x.name, method)
					users.Go(func() {
						for first := true; ; first = false {
							opened, err := s.opens(x, m)
							if err != nil && !slices.ContainsFunc(allowed, func(e error) bool { return errors.Is(err, e) }) {
								t.Errorf("%s.%s: %v", x.name, method, err)
							}
							if opened != nil {
								_ = opened.Close()
							}
							if first {
								// It works, before anybody closes the handle.
								if want := refused[x.name+"."+method]; want != nil {
									assert.ErrorIs(t, err, want, "%s.%s", x.name, method)
								} else {
									assert.NoError(t, err, "%s.%s", x.name, method)
								}
								started <- struct{}{}
							}
							if errors.Is(err, net.ErrClosed) {
								return
							}
							select {
							case <-stop:
								return
							default:
							}
						}
					})
				}
				for range anyone[x.name] {
					<-started
				}
				// What the others have just opened keeps it open. On a busy machine
				// there may always be something: then they stop at last.
				halt := sync.OnceFunc(func() { close(stop) })
				patience := time.AfterFunc(2*time.Second, halt)
				for deadline := time.Now().Add(30 * time.Second); ; {
					err := x.handle.Close()
					if err == nil {
						break
					}
					require.ErrorIs(t, err, fabric.ErrBusy)
					require.True(t, time.Now().Before(deadline), "it never closed: %v", err)
				}
				patience.Stop()
				halt()
				users.Wait()
				for _, method := range anyone[x.name] {
					m, _ := reflect.TypeOf(x.handle).MethodByName(method)
					if err, has := failure(s.call(x, m)); has && afterClose[x.name+"."+method] == "" {
						assert.ErrorIs(t, err, net.ErrClosed, "%s.%s", x.name, method)
					}
				}
				s.closeTo(0)
				nothingOpen(t)
			}
		})
	}
	for name := range anyone {
		require.True(t, tried[name], name)
	}
}

// opens calls a method, and returns what it has opened and its error.
func (s *subjects) opens(x subject, m reflect.Method) (opened interface{ Close() error }, err error) {
	results := s.call(x, m)
	if err, _ = failure(results); err != nil {
		return nil, err
	}
	for _, r := range results {
		switch r := r.Interface().(type) {
		case fabric.Buffer:
			return nil, r.Put()
		case interface{ Close() error }:
			opens := strings.HasPrefix(m.Name, "Open") || m.Name == "Register" || m.Name == "MapRemote"
			if opens {
				return r, nil
			}
		}
	}
	return nil, nil
}
