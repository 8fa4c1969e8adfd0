//go:build linux

package hosts_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
)

// soon is within what a lost peer is to be noticed: far beyond peerTimeout, since machines
// may be busy, and far below what it would take without one.
const soon = 30 * time.Second

// wants wants that a call has ended with one of these kinds of errors, and soon.
func (s *site) wants(w *watched, call string, anyOf ...string) event {
	s.t.Helper()
	return s.wanted(w, w.ended(call), anyOf...)
}

// wanted wants that of the end of a call.
func (s *site) wanted(w *watched, e event, anyOf ...string) event {
	s.t.Helper()
	require.True(s.t, slices.ContainsFunc(anyOf, e.is), "%s: %s has ended with %q, which is %v, and none of %v", w.Name, e.Call, e.Error, e.Kinds, anyOf)
	require.Less(s.t, time.Duration(e.At-s.begin), soon, "%s: %s", w.Name, e.Call)
	return e
}

// broken wants that everything with the host ends, and nothing else does; and if the
// fault ends, that a new beginning is possible.
func (s *site) broken(results *table) {
	var efa, comm, collective, bootstrap []event
	for _, call := range []string{"read", "echo", "write", "stream"} {
		efa = append(efa, s.wants(s.dialer, call, "ErrPeerLost"))
	}
	for i, call := range []string{listens, echoes, writes} {
		switch l := s.listeners[0]; {
		case s.fault.gone:
		case s.carries():
			efa = append(efa, s.wants(l, call+atListener, "ErrPeerLost"))
		default:
			// It may have ended before it could say what it is for.
			efa = append(efa, s.wanted(l, l.endedWith(atListener, i), "ErrPeerLost"))
		}
	}
	results.add(s, "efa", "", efa)
	s.dialer.order("exchange %s", s.at(2, portListener))
	require.Empty(s.t, s.dialer.done("exchange").Error)

	for i, r := range s.ranks {
		if i == 1 && s.fault.gone {
			continue
		}
		for peer := range s.ranks {
			if peer == i || peer != 1 && i != 1 {
				continue
			}
			for _, call := range []string{"receive from %d", "send to %d", "exchange with %d"} {
				comm = append(comm, s.wants(r, fmt.Sprintf(call, peer), fmt.Sprint("RankError ", peer)))
			}
		}
		comm = append(comm, s.wants(r, "receive from any", "RankError 0", "RankError 1", "RankError 2"))
		collective = append(collective, s.wants(r, "allreduce", "RankError 0", "RankError 1", "RankError 2", "AbortError"))
		if s.fault.breaks {
			bootstrap = append(bootstrap, s.wants(r, "job", "LostError 0", "LostError 1"))
		}
	}
	results.add(s, "comm", "", comm)
	results.add(s, "collective", "", collective)
	if s.fault.breaks {
		results.add(s, "bootstrap", "", bootstrap)
	}
	if s.fault.mend != nil {
		s.mend(results)
	}
	s.leave()
	if s.fault.mend != nil {
		s.again(results)
		s.finish()
		return
	}
	s.finishEngines()
	for _, r := range s.ranks {
		if r != nil {
			r.finish()
		}
	}
}

// leave has the ranks leave their job. Those that can reach each other have gone on.
func (s *site) leave() {
	s.t.Helper()
	for i, r := range s.ranks {
		if i != 1 || !s.fault.gone {
			r.order("stop")
		}
	}
	for i, r := range s.ranks {
		if i == 1 && s.fault.gone {
			continue
		}
		if i != 1 {
			e := r.ended(fmt.Sprint("exchange with ", 2-i))
			require.Empty(s.t, e.Error, r.Name)
			require.Positive(s.t, e.Count)
		}
		require.Empty(s.t, r.done("messages").Error, r.Name)
		// That a rank is lost may be said once more.
		r.done("close")
		r.done("close")
	}
}

// mend ends the fault, and connects to the host again.
func (s *site) mend(results *table) {
	s.t.Helper()
	require.NoError(s.t, s.fault.mend(s))
	if s.fault.gone {
		s.listeners[0] = s.startListener(1)
		s.listeners[0].ready()
	}
	s.begin = time.Now().UnixNano()
	s.dialer.order("redial %s", s.at(1, portListener))
	e := s.dialer.done("redial with a new reactor")
	require.Empty(s.t, e.Error)
	results.add(s, "efa", "a new reactor connects again", []event{e})
	s.begin = e.At
	e = s.dialer.done("redial")
	if e.Error == "" {
		results.add(s, "efa", "the same one connects again", []event{e})
		return
	}
	// What follows a message that was lost is kept back there, and the error says so.
	require.Equal(s.t, "efa", s.provider, e.Error)
	require.True(s.t, e.is("ErrHandshake"), e.Error)
	results.add(s, "efa", "the same one is refused", []event{e})
}

// again has the ranks meet in another job.
func (s *site) again(results *table) {
	s.t.Helper()
	if s.fault.gone {
		s.ranks[1] = s.startRank(1)
	}
	for _, r := range s.ranks {
		r.seen = nil
	}
	s.begin = time.Now().UnixNano()
	s.join(portAgain)
	var sums []event
	for _, r := range s.ranks {
		r.order("stop")
	}
	for _, r := range s.ranks {
		e := r.ended("allreduce")
		require.Empty(s.t, e.Error)
		sums = append(sums, e)
		s.closes(r)
	}
	results.add(s, "collective", "the sums of the next job are right", sums)
}
