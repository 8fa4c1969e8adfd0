package efa

import (
	"errors"
	"fmt"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/proof"
)

// openDevices opens the reactor's device, bound to a source address if one is given,
// and its rails. What the program has opened is returned as it is.
func (c *Config) openDevices(source string) (device fabric.Device, rails []fabric.Device, err error) {
	if c.Device != nil {
		return c.Device, c.RailDevices, nil
	}
	choice, err := c.choose(source)
	if err != nil {
		return nil, nil, err
	}
	config := fabric.PortConfig{Retries: c.EFARetries, NoSharedMemory: c.EFAOnly}
	if device, err = fabric.OpenPort(choice.Info, config); err != nil {
		return nil, nil, err
	}
	infos := choice.Devices
	if choice.Info.IP() && len(c.Domains) == 0 {
		// Other interfaces may not reach the peers, and traffic bound to one can
		// leave by another.
		infos = infos[:1]
	}
	for i := 1; i < c.Rails; i++ {
		port, err := fabric.OpenPort(infos[i%len(infos)], config)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("rail %d: %w", i, err), device.Close(), closeAll(rails))
		}
		rails = append(rails, port)
	}
	return device, rails, nil
}

func closeAll(devices []fabric.Device) error {
	var all error
	for _, d := range devices {
		all = errors.Join(all, d.Close())
	}
	return all
}

// fit takes the rails, and says what does not fit of them or of the device.
func (r *Reactor) fit(rails []fabric.Device) error {
	unfit := func(provider, detail string) error {
		return &fabric.Error{Op: "reactor", Provider: provider, Errno: 22, Detail: detail}
	}
	tooSmall := func(a fabric.Attributes) bool { return a.MaxMessage < tiniestPiece || a.MaxOperations < 4 }
	if tooSmall(r.attributes) {
		return unfit(r.attributes.Provider, "a device must carry messages of 256 bytes and 4 operations at once")
	}
	for i, device := range rails {
		l := newRail(device)
		l.index = i
		switch {
		case tooSmall(l.attributes):
			return unfit(l.attributes.Provider, "a rail must carry messages of 256 bytes and 4 operations at once")
		case l.attributes.Provider != r.attributes.Provider:
			return unfit(l.attributes.Provider, "a rail must be of the same provider as the first device, "+r.attributes.Provider)
		case !l.attributes.KeepsOrder || !r.attributes.KeepsOrder:
			return unfit(l.attributes.Provider, "rails, and the first device beside them, must keep the order of messages")
		case l.attributes.NeedsRegistration != r.attributes.NeedsRegistration:
			return unfit(l.attributes.Provider, "either all devices of a reactor need registered memory or none")
		}
		r.rails = append(r.rails, l)
	}
	if size := len(r.railTerms().encode()) + proof.Size; size > mostBody {
		return unfit(r.attributes.Provider, fmt.Sprintf("the addresses of %d rails take %d bytes, and %d go into a frame", len(rails), size, mostBody))
	}
	return nil
}
