// Package transfer carries files and folders from a sender to a receiver over
// a connection of ordered messages.
//
// A message is a sequence of whole records and at most [MaxMessage] bytes
// long, so that many small files share one message and a large one fills many.
// A record is one byte of kind, four bytes of length (little-endian), and as
// many bytes of payload:
//
//	sender:    hello (file data... fileEnd | folder ... folderEnd)... end
//	           or, at any place after hello, abort
//	receiver:  verdict, once, as its last word
//
// Files and folders come depth first. An entry carries its own name only and
// lies in the folder that is open at that place, so that there are no paths to
// be checked: a name is one component, and a component with a slash is
// refused. The receiver verifies the sha256 in fileEnd before a file gets its
// name; the sender reports success only on the receiver's verdict.
package transfer

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"time"
)

const (
	// MaxMessage is the longest message in bytes that either side sends.
	MaxMessage = 1 << 20
	// MaxDepth is how deep folders may be nested. The receiver holds one open
	// folder for each level.
	MaxDepth = 128

	protocolName    = "weft-transfer"
	protocolVersion = 1

	maxName   = 255      // bytes, what file systems allow
	maxSpeech = 16 << 10 // bytes of a record that is JSON
)

type recordKind byte

const (
	recordHello     recordKind = iota + 1 // JSON, hello
	recordFile                            // an entry; its data follows
	recordData                            // bytes of the open file
	recordFileEnd                         // sha256 of the open file
	recordFolder                          // an entry; what it holds follows
	recordFolderEnd                       // empty
	recordEnd                             // JSON, totals
	recordAbort                           // JSON, failure
	recordVerdict                         // JSON, verdict
)

const recordPrefix = 1 + 4

// hello is the first record of a sender.
type hello struct {
	Protocol string `json:"protocol"`
	Version  int    `json:"version"`
}

// totals are what the sender has sent; the receiver compares its own count.
type totals struct {
	Files   int64 `json:"files"`
	Folders int64 `json:"folders"`
	Bytes   int64 `json:"bytes"`
	Skipped int64 `json:"skipped"`
}

// failure tells the other side why this one ends.
type failure struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// verdict is the receiver's last word: Failure, or what it has verified.
type verdict struct {
	Verified totals   `json:"verified"`
	Failure  *failure `json:"failure,omitempty"`
}

// startRecord appends the prefix of a record whose payload of length bytes the
// caller appends next.
func startRecord(b []byte, kind recordKind, length int) []byte {
	b = append(b, byte(kind))
	return binary.LittleEndian.AppendUint32(b, uint32(length))
}

func appendRecord(b []byte, kind recordKind, payload []byte) []byte {
	return append(startRecord(b, kind, len(payload)), payload...)
}

// cutRecord takes the first record off a message.
func cutRecord(b []byte) (kind recordKind, payload, rest []byte, err error) {
	if len(b) < recordPrefix {
		return 0, nil, nil, protocolError("a record of %d bytes, shorter than its prefix", len(b))
	}
	length := uint64(binary.LittleEndian.Uint32(b[1:]))
	if have := uint64(len(b) - recordPrefix); length > have {
		return 0, nil, nil, protocolError("a record of %d bytes where the message has %d left", length, have)
	}
	end := recordPrefix + int(length)
	return recordKind(b[0]), b[recordPrefix:end], b[end:], nil
}

// appendSpeech appends a record that is JSON.
func appendSpeech(b []byte, kind recordKind, speech any) []byte {
	payload, err := json.Marshal(speech)
	if err != nil {
		panic(fmt.Sprintf("transfer: %T has a field that JSON does not know: %v", speech, err))
	}
	return appendRecord(b, kind, payload)
}

func parseSpeech(payload []byte, speech any) error {
	if len(payload) > maxSpeech {
		return protocolError("a control record of %d bytes, at most %d are allowed", len(payload), maxSpeech)
	}
	if err := json.Unmarshal(payload, speech); err != nil {
		return protocolError("a control record that cannot be read: %v", err)
	}
	return nil
}

// entry describes a file or a folder.
type entry struct {
	name     string
	mode     fs.FileMode // permission bits only
	size     int64       // of a file
	modified time.Time
}

const entryPrefix = 2 + 8 + 8

func (e entry) append(b []byte, kind recordKind) []byte {
	b = startRecord(b, kind, entryPrefix+len(e.name))
	b = binary.LittleEndian.AppendUint16(b, uint16(e.mode.Perm()))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.size))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.modified.UnixNano()))
	return append(b, e.name...)
}

func parseEntry(payload []byte) (entry, error) {
	if len(payload) < entryPrefix {
		return entry{}, protocolError("a header of %d bytes, at least %d are needed", len(payload), entryPrefix)
	}
	e := entry{
		mode:     fs.FileMode(binary.LittleEndian.Uint16(payload)).Perm(),
		size:     int64(binary.LittleEndian.Uint64(payload[2:])),
		modified: time.Unix(0, int64(binary.LittleEndian.Uint64(payload[10:]))),
	}
	name := payload[entryPrefix:]
	if len(name) > maxName {
		return entry{}, refused(string(name[:32])+"...", "is a name of %d bytes, at most %d are allowed", len(name), maxName)
	}
	e.name = string(name)
	if e.size < 0 {
		return entry{}, refused(e.name, "has a negative size")
	}
	return e, checkName(e.name)
}
