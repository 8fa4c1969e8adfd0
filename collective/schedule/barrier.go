package schedule

// Barrier is the plan of a call that ends at no rank before all have begun it, by
// [Dissemination]. It has no data: nothing but signals.
//
// Every error of this function is an *[ArgumentError] or an *[AlgorithmError], as of all
// others.
func Barrier(rank, size int, o Options) (Plan, error) {
	s, err := CollectiveBarrier.begin(rank, size, 0, 0, o)
	if err != nil {
		return Plan{}, err
	}
	// Behind round k a rank has heard of the 2^(k+1) - 1 ranks before it. Distances
	// differ, and so do the peers: each pair has one signal.
	for distance := 1; distance < size; distance *= 2 {
		s.add(Step{Action: Signal, Peer: (rank + distance) % size})
		s.awaitNumber((rank-distance+size)%size, 0, Span{})
	}
	return s.plan, nil
}
