package main

import "github.com/weft-go/weft/efa"

// messages is what a connection carried, in what is printed with --json.
type messages struct {
	Sent          uint64 `json:"sent"`
	SentBytes     uint64 `json:"sent_bytes"`
	Eager         uint64 `json:"eager"`
	ZeroCopy      uint64 `json:"zero_copy"`
	Waited        uint64 `json:"waited"`
	Received      uint64 `json:"received"`
	ReceivedBytes uint64 `json:"received_bytes"`
	Direct        uint64 `json:"direct"`
	Refused       uint64 `json:"refused"`
}

func messagesOf(conn *efa.Conn) messages {
	s := conn.Stats()
	return messages{
		Sent: s.Sent, SentBytes: s.SentBytes, Eager: s.Eager, ZeroCopy: s.ZeroCopy, Waited: s.Waited,
		Received: s.Received, ReceivedBytes: s.ReceivedBytes, Direct: s.Direct, Refused: s.Refused,
	}
}
