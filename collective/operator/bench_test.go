package operator_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
)

// Each operator over each type: how many bytes of results in a second, in a cache and
// out of it. Each operand has as many bytes.
func BenchmarkApply(b *testing.B) { measure(b, operator.All()) }

// The same for the loops that kernels would be if they were as simple as can be.
func BenchmarkPlain(b *testing.B) {
	measure(b, slices.Concat(
		plain[int8](), plain[uint8](), plain[int16](), plain[uint16](), plain[int32](), plain[int64](),
		plainArithmetic[float32](), plainArithmetic[float64](),
	))
}

// What Apply costs whatever it is given.
func BenchmarkApplyOne(b *testing.B) {
	one := make([]float64, 1)
	function := operator.Func("first", false, func(dst, left, _ []float64) { copy(dst, left) })
	for name, op := range map[string]operator.Op[float64]{"built in": operator.Sum[float64](), "function": function} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := op.Apply(one, one, one); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func measure(b *testing.B, operators []operator.Erased) {
	for _, e := range operators {
		for _, size := range []int{4 << 10, 16 << 20} {
			b.Run(fmt.Sprintf("%s/%d", e, size), func(b *testing.B) {
				// As floats of any size these are about 1 and its neighbours: a processor may be
				// slow with subnormal ones.
				memory := make([]uint64, 3*size/8)
				for i := range memory {
					memory[i] = 0x3f803c013f803c01 + uint64(i%5)*0x0001000100010001
				}
				all, err := operator.Bytes(memory)
				require.NoError(b, err)
				dst, left, right := all[:size], all[size:2*size], all[2*size:]
				for b.Loop() {
					if err := e.Apply(dst, left, right); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)*float64(size)/1e9/b.Elapsed().Seconds(), "GB/s")
			})
		}
	}
}

func plain[T operator.Integer]() []operator.Erased {
	return append(plainArithmetic[T](), operator.Func("and", true, func(dst, left, right []T) {
		left, right = left[:len(dst)], right[:len(dst)]
		for i := range dst {
			dst[i] = left[i] & right[i]
		}
	}).Erased())
}

func plainArithmetic[T operator.Real]() []operator.Erased {
	return []operator.Erased{
		operator.Func("sum", true, func(dst, left, right []T) {
			left, right = left[:len(dst)], right[:len(dst)]
			for i := range dst {
				dst[i] = left[i] + right[i]
			}
		}).Erased(),
		operator.Func("product", true, func(dst, left, right []T) {
			left, right = left[:len(dst)], right[:len(dst)]
			for i := range dst {
				dst[i] = left[i] * right[i]
			}
		}).Erased(),
		operator.Func("min", true, func(dst, left, right []T) {
			left, right = left[:len(dst)], right[:len(dst)]
			for i := range dst {
				dst[i] = min(left[i], right[i])
			}
		}).Erased(),
	}
}
