package fabric_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// member is an endpoint of a group with what it needs.
type member struct {
	e      *fabric.Endpoint
	q      *fabric.CompletionQueue
	v      *fabric.AddressVector
	events *fabric.EventQueue
	set    *fabric.AddressSet
	group  *fabric.Group
	domain *fabric.Domain
	got    []fabric.Completion
}

// membersOf opens endpoints that all know each other in the same order, with
// sets of all.
func membersOf(t *testing.T, count int) []*member {
	t.Helper()
	f, d := domainOf(t, "tcp;ofi_rxm", fabric.Messages|fabric.TaggedMessages|fabric.Collectives)
	members := make([]*member, count)
	names := make([][]byte, count)
	for i := range members {
		m := &member{domain: d, v: vectorOf(t, d)}
		members[i] = m
		m.events, m.q, m.e = eventsOf(t, f), queueOf(t, d, 64), endpointOf(t, d)
		require.NoError(t, m.e.Enable(m.v, m.q, m.events))
		name, err := m.e.Name()
		require.NoError(t, err)
		names[i] = name
	}
	for _, m := range members {
		results, err := m.v.InsertAll(names)
		require.NoError(t, err)
		addresses := make([]fabric.Address, count)
		for i, r := range results {
			require.NoError(t, r.Err)
			addresses[i] = r.Address
		}
		m.set, err = m.v.OpenSet(fabric.AddressSetConfig{Members: addresses})
		require.NoError(t, err)
		// Groups end with their endpoint, and only then the set.
		t.Cleanup(func() {
			require.NoError(t, m.e.Close())
			require.NoError(t, m.set.Close())
		})
	}
	return members
}

// turn reads what a member has, and says whether its group was joined.
func (m *member) turn(t *testing.T) (joined bool) {
	t.Helper()
	var completions [8]fabric.Completion
	n, err := m.e.Turn(nil, completions[:], 0)
	require.NoError(t, err)
	m.got = append(m.got, completions[:n]...)
	event, ok, err := m.events.Read()
	require.NoError(t, err)
	if !ok {
		return false
	}
	require.Equal(t, fabric.JoinCompleteEvent{Group: m.group}, event)
	return true
}

func groupsOf(t *testing.T, count int) []*member {
	t.Helper()
	members := membersOf(t, count)
	for i, m := range members {
		var err error
		m.group, err = m.e.JoinCollective(m.set, 0)
		require.NoError(t, err)
		require.Equal(t, i, m.group.Rank())
		require.Equal(t, count, m.group.Size())
	}
	join(t, members)
	return members
}

// join waits until all have joined.
func join(t *testing.T, members []*member) {
	t.Helper()
	joined := 0
	for deadline := time.Now().Add(30 * time.Second); joined < len(members); {
		require.True(t, time.Now().Before(deadline), "%d of %d joined", joined, len(members))
		for _, m := range members {
			if m.turn(t) {
				joined++
			}
		}
	}
}

// together has every member post a collective, and waits for all completions.
func together(t *testing.T, members []*member, post func(i int, g *fabric.Group) (fabric.Token, error)) {
	t.Helper()
	for i, m := range members {
		_, err := post(i, m.group)
		require.NoError(t, err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for done := 0; done < len(members); {
		require.True(t, time.Now().Before(deadline), "%d of %d complete", done, len(members))
		done = 0
		for _, m := range members {
			require.False(t, m.turn(t))
			done += len(m.got)
		}
	}
	for i, m := range members {
		require.Len(t, m.got, 1)
		require.NoError(t, m.got[0].Err)
		require.Equal(t, fabric.OpCollective, m.got[0].Kind)
		require.EqualValues(t, 100+i, m.got[0].Context)
		require.Zero(t, m.q.InFlight())
		m.got = nil
	}
}
