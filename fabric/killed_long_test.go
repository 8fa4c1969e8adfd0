package fabric_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/sharedmemory"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// doomed is set in the process that is killed, to the provider, the operation and whether it begins it.
const doomed = "WEFT_TEST_DOOMED"

const longOperation = 32 << 20

// longOperations are of all kinds that can be amid for long.
var longOperations = map[string]fabric.Op{
	"send":            {Kind: fabric.OpSend},
	"delivered send":  {Kind: fabric.OpSend, Flags: fabric.DeliveryComplete},
	"tagged send":     {Kind: fabric.OpTaggedSend, Tag: 5},
	"write":           {Kind: fabric.OpWrite},
	"told write":      {Kind: fabric.OpWrite, Flags: fabric.Immediate, Immediate: 7},
	"delivered write": {Kind: fabric.OpWrite, Flags: fabric.DeliveryComplete},
	"read":            {Kind: fabric.OpRead},
}

// When the process of one end of a long operation is killed amid it, other endpoints go on, also those of
// the same queue, and everything can be closed.
func TestPeerIsKilledAmidLongOperations(t *testing.T) {
	if what := os.Getenv(doomed); what != "" {
		words := strings.Split(what, ",")
		dieAmid(t, words[0], longOperations[words[1]], words[2] == "initiator")
		return
	}
	providers := append(testenv.Providers(), "net")
	if slices.Contains(providers, "tcp") && fabric.LibraryVersion().Major >= 2 {
		providers = append(providers, "tcp;")
	}
	for _, provider := range providers {
		for name, op := range longOperations {
			if testing.Short() && !slices.Contains([]string{"delivered send", "told write", "read"}, name) {
				continue
			}
			for _, killed := range []string{"initiator", "target"} {
				t.Run(provider+"/"+name+"/"+killed, func(t *testing.T) {
					peerIsKilledAmid(t, provider, name, op, killed)
				})
			}
		}
	}
}

// longEnd is one end of a long operation.
type longEnd struct {
	*station
	op     fabric.Op
	begins bool
	memory []byte // where it goes to, or comes from
	remote fabric.Remote
}

// openLongEnd opens an end, which has what it needs before the other one begins.
func openLongEnd(t *testing.T, s *station, op fabric.Op, begins bool) *longEnd {
	t.Helper()
	e := &longEnd{station: s, op: op, begins: begins}
	e.memory, e.remote = shared(t, s, longOperation)
	if !e.arrives() {
		e.memory[0], e.memory[longOperation-1] = 1, 1
	}
	receive := fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: e.memory}
	switch {
	case begins:
	case op.Kind == fabric.OpTaggedSend:
		receive.Kind, receive.Tag = fabric.OpTaggedReceive, op.Tag
		s.must(t, s, receive)
	case op.Kind == fabric.OpSend:
		s.must(t, s, receive)
	}
	return e
}

// arrives says whether what is carried comes to this end.
func (e *longEnd) arrives() bool { return e.begins == (e.op.Kind == fabric.OpRead) }

// some says whether a part of it is there.
func (e *longEnd) some() bool {
	return e.arrives() && (e.memory[0] != 0 || e.memory[longOperation-1] != 0)
}

func (e *longEnd) invitation(t *testing.T) string {
	t.Helper()
	name, err := e.e.Name()
	require.NoError(t, err)
	return fmt.Sprintf("%s %d %d\n", hex.EncodeToString(name), e.remote.Address, e.remote.Key)
}

// accept inserts the other end, and begins the operation with it if it is this one that does.
func (e *longEnd) accept(t *testing.T, invitation string) {
	t.Helper()
	var name string
	_, err := fmt.Sscan(invitation, &name, &e.op.Remote.Address, &e.op.Remote.Key)
	require.NoError(t, err)
	raw, err := hex.DecodeString(name)
	require.NoError(t, err)
	e.op.Peer, err = e.v.Insert(raw)
	require.NoError(t, err)
	if e.begins {
		e.op.Buf = e.memory
		if op := e.post(t, e.station, e.op); op.Err != nil {
			require.ErrorIs(t, op.Err, fabric.ErrNotSupported)
		}
	}
}

func peerIsKilledAmid(t *testing.T, provider, name string, op fabric.Op, killed string) {
	t.Cleanup(func() { nothingOpen(t) })
	beside := openCouple(t, undertakingInfo(t, provider))
	end := openLongEnd(t, beside.another(t), op, killed == "target")

	child := testprocess.Command(t, os.Args[0], "-test.run=^TestPeerIsKilledAmidLongOperations$", "-test.count=1")
	child.Env = append(os.Environ(), doomed+"="+provider+","+name+","+killed)
	var said bytes.Buffer
	child.Stderr = &said
	child.Stdin = strings.NewReader(end.invitation(t))
	answers, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	heard, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		for lines := bufio.NewScanner(answers); lines.Scan(); {
			heard <- lines.Text()
		}
		ended <- child.Wait()
	}()
	t.Cleanup(func() {
		_ = child.Process.Kill()
		sharedmemory.Remove(child.Process.Pid)
	})
	var died error
	killing := false
	for deadline := time.Now().Add(time.Minute); died == nil; {
		require.True(t, time.Now().Before(deadline), "nothing comes: %s", &said)
		select {
		case line := <-heard:
			end.accept(t, line)
		case died = <-ended:
			require.ErrorContains(t, died, "killed", &said)
		default:
			end.turn(t, nil)
			if end.some() && !killing {
				killing = true
				require.NoError(t, child.Process.Kill())
			}
		}
	}
	for range 100 {
		end.turn(t, nil)
	}
	beside.goOn(t)
	require.NoError(t, end.e.Close())
	beside.goOn(t)
}

// dieAmid is the process that is killed: by itself when it is where something comes, and otherwise
// by the other one.
func dieAmid(t *testing.T, provider string, op fabric.Op, begins bool) {
	t.Helper()
	info := undertakingInfo(t, provider)
	f, d := partsOf(t, info)
	end := openLongEnd(t, openStation(t, f, d, info), op, begins)
	invited := bufio.NewScanner(os.Stdin)
	require.True(t, invited.Scan())
	fmt.Print(end.invitation(t))
	end.accept(t, invited.Text())
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		end.turn(t, nil)
		if end.some() {
			require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		}
	}
}
