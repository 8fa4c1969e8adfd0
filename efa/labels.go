package efa

import (
	"context"
	"runtime/pprof"
)

// Every goroutine that is the engine's own has labels for profiles: weft says what
// it does, and provider for what device. A goroutine of the program's keeps its
// own, also while it drives the device. Without this, a goroutine would have the
// labels of whoever happened to start it.

// labels are those of a reactor's goroutines; a context is how runtime/pprof has
// them.
type labels struct{ reactor, callbacks, control, handshake context.Context }

func newLabels(provider string) labels {
	of := func(what string) context.Context {
		return pprof.WithLabels(context.Background(), pprof.Labels("weft", what, "provider", provider))
	}
	return labels{reactor: of("reactor"), callbacks: of("callbacks"), control: of("control"), handshake: of("handshake")}
}

// wear gives the goroutine these labels.
func wear(labels context.Context) {
	if labels != nil {
		pprof.SetGoroutineLabels(labels)
	}
}
