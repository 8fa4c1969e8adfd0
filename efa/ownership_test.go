package efa

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
)

// Whatever goes wrong, the device that a config brings along is closed.
func TestDeviceIsClosedWhenNothingComesOfIt(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gone := taken.Addr().String()
	require.NoError(t, taken.Close())
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, try := range map[string]func(config *Config) error{
		"Open with a bad config": func(config *Config) error {
			config.MaxMessage = -1
			_, err := Open(config)
			return err
		},
		"Listen with a bad config": func(config *Config) error {
			config.MaxMessage = -1
			_, err := Listen(t.Context(), "127.0.0.1:0", config)
			return err
		},
		"Listen at a bad address": func(config *Config) error {
			_, err := Listen(t.Context(), "not an address", config)
			return err
		},
		"Dial with a bad config": func(config *Config) error {
			config.MaxMessage = -1
			_, err := Dial(t.Context(), gone, config)
			return err
		},
		"Dial where nothing is": func(config *Config) error {
			_, err := Dial(t.Context(), gone, config)
			return err
		},
		"Dial with a context that has ended": func(config *Config) error {
			_, err := Dial(cancelled, gone, config)
			return err
		},
		"Dial to somebody who hangs up": func(config *Config) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			go func() {
				if tcp, err := l.Accept(); err == nil {
					tcp.Close()
				}
			}()
			_, err = Dial(t.Context(), l.Addr().String(), config)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			network := fabrictest.NewNetwork(fabrictest.Faults{})
			device, err := network.Open(fabrictest.DeviceConfig{})
			require.NoError(t, err)
			require.Error(t, try(&Config{Device: device, Logger: quiet}))
			require.Zero(t, network.Stats().OpenDevices)
		})
	}
}
