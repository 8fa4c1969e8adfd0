package cost

// event is something that happens: a rank goes on, or a put comes to a node.
type event struct {
	at    float64
	order uint64 // of those at the same time
	rank  int32
	from  int32 // of a put: the rank that puts it
	key   uint64
	bytes float64
	put   bool
	core  bool // it is a core that goes on, and rank its number
	local bool
	loud  bool // a notice follows it
	fetch bool // its peer moves it
}

// queue has events, the earliest first.
type queue struct{ events []event }

func (e *event) before(f *event) bool {
	return e.at < f.at || e.at == f.at && e.order < f.order
}

// earlier says whether the queue has something that comes before an event.
func (q *queue) earlier(e *event) bool { return len(q.events) > 0 && q.events[0].before(e) }

func (q *queue) push(e event) {
	q.events = append(q.events, e)
	i := len(q.events) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&q.events[parent]) {
			break
		}
		q.events[i] = q.events[parent]
		i = parent
	}
	q.events[i] = e
}

func (q *queue) pop() event {
	first := q.events[0]
	last := len(q.events) - 1
	e := q.events[last]
	q.events = q.events[:last]
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && q.events[child+1].before(&q.events[child]) {
			child++
		}
		if !q.events[child].before(&e) {
			break
		}
		q.events[i] = q.events[child]
		i = child
	}
	if last > 0 {
		q.events[i] = e
	}
	return first
}
