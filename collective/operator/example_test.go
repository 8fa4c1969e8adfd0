package operator_test

import (
	"fmt"

	"github.com/weft-go/weft/collective/operator"
)

func ExampleSum() {
	op := operator.Sum[float64]()
	total := []float64{1, 2, 3}
	if err := op.Apply(total, total, []float64{10, 20, 30}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(op, total)
	// Output: sum/float64 [11 22 33]
}

// The product of matrices depends on who is left and who is right, so it does not
// commute.
func ExampleFunc() {
	type matrix [2][2]int64
	product := operator.Func("matmul", false, func(dst, left, right []matrix) {
		for i := range dst {
			l, r := left[i], right[i] // copies: dst may be one of them
			for row := range l {
				for column := range r[0] {
					dst[i][row][column] = l[row][0]*r[0][column] + l[row][1]*r[1][column]
				}
			}
		}
	})
	shear, turn := []matrix{{{1, 1}, {0, 1}}}, []matrix{{{0, -1}, {1, 0}}}
	result := make([]matrix, 1)
	for _, operands := range [][2][]matrix{{shear, turn}, {turn, shear}} {
		if err := product.Apply(result, operands[0], operands[1]); err != nil {
			fmt.Println(err)
		}
		fmt.Println(result)
	}
	// Output:
	// [[[1 -1] [1 0]]]
	// [[[0 -1] [1 1]]]
}

// Which rank has the least of each value? Of two that have it, the lower one.
func ExampleMinLoc() {
	first := []operator.Located[float32]{{Value: 3, Index: 0}, {Value: 7, Index: 0}}
	second := []operator.Located[float32]{{Value: 2, Index: 1}, {Value: 7, Index: 1}}
	if err := operator.MinLoc[float32]().Apply(first, first, second); err != nil {
		fmt.Println(err)
	}
	fmt.Println(first)
	// Output: [{2 1} {7 0}]
}
