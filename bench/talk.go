package main

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
//	done, ns, operations, ns, operations             ->  (all, a part)
//	                                                 <-  end
//
// The C twins speak the same.
type talk struct {
	in  *bufio.Reader
	out io.Writer
}

func newTalk(in io.Reader, out io.Writer) talk {
	return talk{bufio.NewReaderSize(in, 2048), out}
}

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

// meetPeer exchanges addresses.
func (t talk) meetPeer(p *fabric.Port) (fabric.Address, error) {
	a := p.Attributes()
	if err := t.say(fmt.Sprintf("open\t%s\t%s\t%s\t%s\t%x", fabric.LibraryVersion(), a.Provider, a.Fabric, a.Domain, p.LocalAddress())); err != nil {
		return 0, err
	}
	text, err := t.expect("peer")
	if err != nil {
		return 0, err
	}
	address, err := hex.DecodeString(text)
	if err != nil {
		return 0, fmt.Errorf("address of the peer: %w", err)
	}
	return p.Insert(address)
}

// waitForGo says that this side can be sent to.
func (t talk) waitForGo() error {
	if err := t.say("ready"); err != nil {
		return err
	}
	_, err := t.expect("go")
	return err
}

// report says that this side has all it wanted of the other.
func (t talk) report(took times) error {
	return t.say(fmt.Sprintf("done\t%d\t%d\t%d\t%d",
		took.elapsed.Nanoseconds(), took.operations, took.part.Nanoseconds(), took.partOperations))
}

// waitForEnd keeps this side open while the other may still need it.
func (t talk) waitForEnd() error {
	_, err := t.expect("end")
	return err
}
