package transfer

// Greeting returns the first message of a peer that speaks the named protocol.
// Every protocol of the command begins with one, so that whoever connects to
// the wrong service is told so.
func Greeting(protocol string, version int) []byte {
	return appendSpeech(nil, recordHello, hello{Protocol: protocol, Version: version})
}

// ReadGreeting returns what a message greets with; a protocol may have more to
// say in the same message. The error is ErrProtocol.
func ReadGreeting(message []byte) (protocol string, version int, err error) {
	kind, payload, _, err := cutRecord(message)
	if err != nil {
		return "", 0, err
	}
	if kind != recordHello {
		return "", 0, protocolError("a first message that is no greeting")
	}
	var h hello
	err = parseSpeech(payload, &h)
	return printable(h.Protocol), h.Version, err
}

// Refusal returns the message that answers a peer with err.
func Refusal(err error) []byte {
	return appendSpeech(nil, recordVerdict, verdict{Failure: failureOf(err)})
}

// ReadRefusal returns the *PeerError that a message holds, or ErrProtocol if
// it holds none.
func ReadRefusal(message []byte) error {
	kind, payload, _, err := cutRecord(message)
	if err != nil {
		return err
	}
	var v verdict
	if kind == recordVerdict {
		err = parseSpeech(payload, &v)
	}
	switch {
	case err != nil:
		return err
	case v.Failure == nil:
		return protocolError("an answer that is none")
	}
	return v.Failure.toError("peer")
}
