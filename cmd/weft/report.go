package main

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/weft-go/weft/cmd/weft/internal/transfer"
	"github.com/weft-go/weft/efa"
)

// event is one line of output with --json.
type event struct {
	Event          string   `json:"event"` // sent, received, failed
	Peer           string   `json:"peer,omitempty"`
	Provider       string   `json:"provider,omitempty"`
	Files          int64    `json:"files"`
	Folders        int64    `json:"folders"`
	Bytes          int64    `json:"bytes"`
	Skipped        int64    `json:"skipped"`
	Seconds        float64  `json:"seconds"`
	BytesPerSecond float64  `json:"bytes_per_second"`
	Messages       messages `json:"messages"`
	Verified       bool     `json:"verified"`
	Error          string   `json:"error,omitempty"`
}

func (t *terminal) printJSON(v any) error {
	return json.NewEncoder(t.stdout).Encode(v)
}

// listening tells scripts that wait for it where to connect.
func (t *terminal) listening(asJSON bool, address, provider string) error {
	if asJSON {
		return t.printJSON(struct {
			Event    string `json:"event"`
			Address  string `json:"address"`
			Provider string `json:"provider"`
		}{"listening", address, provider})
	}
	_, err := fmt.Fprintf(t.stdout, "listening on %s provider=%s\n", address, provider)
	return err
}

// transferred prints what one transfer carried.
func (t *terminal) transferred(asJSON bool, verb, peer string, conn *efa.Conn, s transfer.Summary) error {
	if asJSON {
		return t.printJSON(eventOf(verb, peer, conn, s))
	}
	text := fmt.Sprintf("files %d, bytes %d, %.2f s, %.1f MB/s, sha256 verified, over %s", s.Files, s.Bytes, s.Elapsed.Seconds(), rate(s)/1e6, conn.Provider())
	if s.Skipped > 0 {
		text += fmt.Sprintf(", skipped %d", s.Skipped)
	}
	_, err := fmt.Fprintln(t.stdout, text)
	return err
}

func eventOf(verb, peer string, conn *efa.Conn, s transfer.Summary) event {
	return event{
		Event: verb, Peer: peer, Provider: conn.Provider(), Messages: messagesOf(conn),
		Files: s.Files, Folders: s.Folders, Bytes: s.Bytes, Skipped: s.Skipped,
		Seconds: s.Elapsed.Seconds(), BytesPerSecond: math.Round(rate(s)), Verified: s.Verified,
	}
}

// rate is in bytes a second.
func rate(s transfer.Summary) float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Bytes) / s.Elapsed.Seconds()
}
