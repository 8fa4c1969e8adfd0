package tagged_test

import (
	"fmt"

	"github.com/weft-go/weft/tagged"
)

func ExampleMatcher() {
	const world = 1 // the context of a communicator
	var m tagged.Matcher[string, string]

	// Receives wait for messages: the earliest that matches takes each.
	m.Post(tagged.Pattern{Context: world, Source: tagged.AnySource, Tag: 7}, "from anyone")
	ticket, _, _ := m.Post(tagged.Pattern{Context: world, Source: 2, Tag: 7}, "from rank 2")
	receive, matched := m.Arrive(tagged.Envelope{Context: world, Source: 2, Tag: 7}, "first")
	fmt.Println(receive, matched)

	// One that was not matched can be cancelled.
	receive, cancelled := m.Cancel(ticket)
	fmt.Println(receive, cancelled)

	// Messages wait for receives: each takes the one that came first.
	m.Arrive(tagged.Envelope{Context: world, Source: 3, Tag: 8}, "second")
	m.Arrive(tagged.Envelope{Context: world, Source: 1, Tag: 9}, "third")
	_, message, matched := m.Post(tagged.Pattern{Context: world, Source: tagged.AnySource, Ignore: tagged.AnyTag}, "anything")
	fmt.Println(message.Value, "from", message.Source, "with tag", message.Tag, matched)
	fmt.Println(m.Posted(), "posted,", m.Unexpected(), "unexpected")
	// Output:
	// from anyone true
	// from rank 2 true
	// second from 3 with tag 8 true
	// 0 posted, 1 unexpected
}
