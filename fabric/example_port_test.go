package fabric_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/weft-go/weft/fabric"
)

// A program that has nothing to do waits until something arrives, and is woken
// by another goroutine that has work for it.
func ExamplePort() {
	choice, err := fabric.Choose(fabric.Preference{Providers: []string{"tcp"}, Source: "127.0.0.1"})
	check(err)
	port, err := fabric.OpenPort(choice.Info, fabric.PortConfig{Operations: 256})
	check(err)
	defer port.Close()

	work := make(chan string, 1)
	go func() {
		work <- "news from another goroutine"
		port.Wake()
	}()
	done := make([]fabric.Completion, 64)
	for {
		n, err := port.Turn(nil, done, 0)
		check(err)
		select {
		case w := <-work:
			fmt.Println(n, w)
			check(port.Errors())
			return
		default:
		}
		// Arm says false if there is something to read already.
		if n == 0 && port.Arm() {
			port.Wait(time.Second)
		}
	}
	// Output: 0 news from another goroutine
}

// The choice says which providers were passed over, and why.
func ExampleChoose() {
	choice, err := fabric.Choose(fabric.Preference{
		Providers: []string{"no-such-provider", "tcp"},
		Source:    "127.0.0.1",
		Logger:    slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	check(err)
	fmt.Println("chosen:", choice.Info.Provider())
	for _, r := range choice.Passed {
		fmt.Println("passed over:", r.Provider, errors.Is(r.Reason, fabric.ErrNotFound))
	}
	_, err = fabric.Choose(fabric.Preference{Providers: []string{"no-such-provider", "tcp"}, Require: true})
	var none *fabric.ChoiceError
	fmt.Println("required:", errors.As(err, &none), len(none.Rejections))
	// Output:
	// chosen: tcp;ofi_rxm
	// passed over: no-such-provider true
	// required: true 1
}
