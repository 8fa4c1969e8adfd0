package suite

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/weft-go/weft/fabric"
)

// talk is a side's half of the conversation with the runner, by lines:
//
//	open, version, provider, fabric, domain, address ->  (tabs between)
//	                                                 <-  peer, address
//	ready                                            ->
//	                                                 <-  go
//	done, ns, operations, ns, operations             ->  (all, a part; or others)
//	                                                 <-  end
//
// The C twins speak the same.
type talk struct {
	in      *bufio.Reader
	out     io.Writer
	stderr  io.Writer
	profile *profile // nil for none
}

func newTalk(in io.Reader, out, stderr io.Writer, p *profile) talk {
	return talk{bufio.NewReaderSize(in, 2048), out, stderr, p}
}

// complain says at once why the side ends: the runner ends it as soon as the
// other side complains that this one is gone.
func (t talk) complain(err error) error {
	fmt.Fprintf(t.stderr, "side: %v\n", err)
	return toldError{err}
}

// toldError is one that the runner knows.
type toldError struct{ error }

func (t talk) expect(word string) (rest string, err error) {
	line, err := t.in.ReadSlice('\n')
	if err != nil {
		return "", fmt.Errorf("waiting for %q of the runner: %w", word, err)
	}
	got, rest, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\t")
	if got != word {
		return "", fmt.Errorf("the runner said %q instead of %q", got, word)
	}
	return rest, nil
}

func (t talk) say(words ...any) error {
	_, err := fmt.Fprintln(t.out, words...)
	return err
}

// device is what a side has opened, in words: version, provider, fabric, domain.
type device [4]string

func deviceOf(a fabric.Attributes) device {
	return device{fabric.LibraryVersion().String(), a.Provider, a.Fabric, a.Domain}
}

// exchange tells this side's address and returns that of the peer. One that
// only dials has none to tell.
func (t talk) exchange(d device, address []byte) ([]byte, error) {
	if err := t.say(fmt.Sprintf("open\t%s\t%x", strings.Join(d[:], "\t"), address)); err != nil {
		return nil, err
	}
	text, err := t.expect("peer")
	if err != nil {
		return nil, err
	}
	peer, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("address of the peer: %w", err)
	}
	return peer, nil
}

// meetPeer exchanges addresses of endpoints.
func (t talk) meetPeer(p *fabric.Port) (fabric.Address, error) {
	address, err := t.exchange(deviceOf(p.Attributes()), p.LocalAddress())
	if err != nil {
		return 0, err
	}
	return p.Insert(address)
}

// waitForGo says that this side can be sent to.
func (t talk) waitForGo() error {
	if err := t.say("ready"); err != nil {
		return err
	}
	if _, err := t.expect("go"); err != nil {
		return err
	}
	return t.profile.start()
}

// report says that this side has all it wanted of the other, and its figures:
// those of times, or of a side that was idle.
func (t talk) report(figures ...int64) error {
	if err := t.profile.stop(); err != nil {
		return err
	}
	line := "done"
	for _, n := range figures {
		line += fmt.Sprintf("\t%d", n)
	}
	return t.say(line)
}

// waitForEnd keeps this side open while the other may still need it.
func (t talk) waitForEnd() error {
	_, err := t.expect("end")
	return err
}
