package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"
)

// Send carries the sources to the receiver at the other end of conn and
// returns when the receiver has given its verdict, or there will be none. It
// does not close conn; after an error conn is of no further use.
//
// The errors are ErrLost, ErrProtocol, *FileError for a file of this side, and
// *PeerError for what went wrong at the receiver.
func Send(ctx context.Context, conn Conn, sources []Source, options Options) (Summary, error) {
	start := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	streaming, stop := context.WithCancelCause(ctx)
	stopStream := func() { stop(errStopped) }
	answers := make(chan answer, 1)
	go func() {
		a := readAnswer(ctx, conn)
		if a.err != nil || a.verdict.Failure != nil {
			stopStream() // there is no use in sending more
		}
		answers <- a
	}()
	answered := false
	defer func() {
		cancel(context.Canceled)
		if !answered {
			<-answers
		}
		stopStream()
	}()

	out := newOutbox(streaming, conn, options, stopStream)
	r := &reader{out: out, options: options, hash: sha256.New()}
	local := r.all(sources)
	failed := time.Now()
	if local != nil && !errors.Is(local, errStopped) {
		// A receiver that does not read cannot hold this side up for long.
		defer time.AfterFunc(grace, stopStream).Stop()
		_ = out.speech(recordAbort, failureOf(local))
	}
	written := out.close()

	wait := options.timeout()
	switch {
	case errors.Is(written, errSilent):
		wait = 0 // it has had its time
	case local != nil:
		wait = min(wait, grace) - time.Since(failed)
	case written != nil:
		wait = min(wait, grace)
	}
	var a answer
	a, answered = awaitAnswer(ctx, answers, wait)

	summary := Summary{Elapsed: time.Since(start)}
	summary.set(r.sent)
	switch {
	case ctx.Err() != nil:
		return summary, context.Cause(ctx)
	case local != nil && !errors.Is(local, errStopped):
		return summary, local
	case a.verdict.Failure != nil:
		return summary, a.verdict.Failure.toError("receiver")
	case written != nil && !errors.Is(written, errStopped):
		return summary, written
	case a.err != nil:
		return summary, a.err
	case a.verdict.Verified != r.sent:
		return summary, protocolError("the receiver has verified %+v, but %+v were sent", a.verdict.Verified, r.sent)
	}
	summary.Verified = true
	return summary, nil
}

// awaitAnswer waits for the receiver's answer, and takes one that is there
// even if there is no time left.
func awaitAnswer(ctx context.Context, answers <-chan answer, wait time.Duration) (a answer, answered bool) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case a = <-answers:
		return a, true
	case <-timer.C:
	}
	select {
	case a = <-answers:
		return a, true
	default:
		return answer{err: connectionError(ctx, context.DeadlineExceeded)}, false
	}
}

// all packs everything from hello to end.
func (r *reader) all(sources []Source) error {
	if err := r.out.speech(recordHello, hello{Protocol: protocolName, Version: protocolVersion}); err != nil {
		return err
	}
	for _, s := range sources {
		if err := r.source(s); err != nil {
			return err
		}
	}
	return r.out.speech(recordEnd, r.sent)
}

// answer is what came from the receiver.
type answer struct {
	verdict verdict
	err     error
}

func readAnswer(ctx context.Context, conn Conn) (a answer) {
	size, err := conn.MessageSize(ctx)
	if err != nil {
		return answer{err: connectionError(ctx, err)}
	}
	if size > recordPrefix+maxSpeech {
		return answer{err: protocolError("the receiver's answer is %d bytes long", size)}
	}
	message := make([]byte, size)
	if _, err := conn.ReadMessage(ctx, message); err != nil {
		return answer{err: connectionError(ctx, err)}
	}
	kind, payload, rest, err := cutRecord(message)
	switch {
	case err != nil:
		return answer{err: err}
	case kind != recordVerdict || len(rest) > 0:
		return answer{err: protocolError("the receiver answered with something else than a verdict")}
	}
	a.err = parseSpeech(payload, &a.verdict)
	return a
}
