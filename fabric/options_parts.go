package fabric

import "github.com/weft-go/weft/cgo"

// Options of what is not a whole endpoint. Providers have few of them there:
// OptionMinMultiReceive where messages are received, OptionConnectionData where
// somebody listens.

// SizeOption is that of an [Endpoint].
//
// Implements: int fi_getopt(...)
func (c *Context) SizeOption(o SizeOption) (value uint64, err error) {
	return c.part().SizeOption(o)
}

// SetSizeOption is that of an [Endpoint].
//
// Implements: int fi_setopt(...)
func (c *Context) SetSizeOption(o SizeOption, value uint64) error {
	return c.part().SetSizeOption(o, value)
}

// BoolOption is that of an [Endpoint].
//
// Implements: int fi_getopt(...)
func (c *Context) BoolOption(o BoolOption) (value bool, err error) { return c.part().BoolOption(o) }

// SetBoolOption is that of an [Endpoint].
//
// Implements: int fi_setopt(...)
func (c *Context) SetBoolOption(o BoolOption, value bool) error {
	return c.part().SetBoolOption(o, value)
}

// SizeOption reads an option, with the errors of that of an [Endpoint]. No provider
// here lets a passive endpoint's be set.
//
// Implements: int fi_getopt(...)
func (p *PassiveEndpoint) SizeOption(o SizeOption) (value uint64, err error) {
	op := "fi_getopt of " + o.String()
	if err := p.enter(); err != nil {
		return 0, err
	}
	defer p.leave()
	if wrong := wrongOption[uint64](cgo.Option(o)); wrong != "" {
		return 0, p.invalid(op, wrong)
	}
	value, code := p.raw.SizeOption(cgo.Option(o))
	return value, optionError(op, p.provider, code)
}
