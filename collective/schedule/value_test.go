package schedule_test

// A value stands for what a unit holds: the sequence of contributions that were combined
// to it. Each contribution is a unit of a rank. Sequences are told apart by hashes: one
// that depends on the order, and one that does not. The third depends on the brackets as
// well: it is what an operator gives that is not associative, such as a sum that is rounded.
type value struct {
	ordered, mixed, rounded uint64
	count                   int // of contributions; 0 where nothing was written
}

// contribution is the value of a unit of a rank.
func contribution(rank, unit int) value {
	h := scramble(uint64(rank)<<32 ^ uint64(unit) ^ 0x9e3779b97f4a7c15)
	return value{ordered: h, mixed: scramble(h), rounded: h, count: 1}
}

// then is the value of one sequence behind another.
func (v value) then(w value) value {
	return value{
		ordered: v.ordered*power(w.count) + w.ordered,
		mixed:   v.mixed + w.mixed,
		rounded: scramble(3*v.rounded + w.rounded),
		count:   v.count + w.count,
	}
}

// same says whether two values have the same contributions, each as often, and in the same
// order if that counts.
func (v value) same(w value, ordered bool) bool {
	return v.count == w.count && v.mixed == w.mixed && (!ordered || v.ordered == w.ordered)
}

func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

var powers = func() []uint64 {
	all := []uint64{1}
	for len(all) <= 1<<13 {
		all = append(all, all[len(all)-1]*0xd1342543de82ef95)
	}
	return all
}()

func power(n int) uint64 {
	if n < len(powers) {
		return powers[n]
	}
	return power(n/2) * power(n-n/2)
}

// contributions are those of the units of a rank from first on.
func contributions(rank, first, length int) []value {
	all := make([]value, length)
	for i := range all {
		all[i] = contribution(rank, first+i)
	}
	return all
}

// folded are the units that all ranks contribute, combined in the order of the ranks.
func folded(size, first, length int) []value {
	all := contributions(0, first, length)
	for rank := 1; rank < size; rank++ {
		for i := range all {
			all[i] = all[i].then(contribution(rank, first+i))
		}
	}
	return all
}
