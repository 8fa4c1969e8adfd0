package comm

import "context"

// Persistent is a send or a receive that is made again and again, with the same
// arguments. Its methods are called by one goroutine at a time.
type Persistent struct {
	begin   func() (Request, error)
	request Request
}

// SendInit prepares an Isend of buf.
func (c *Comm) SendInit(buf []byte, dest, tag int) (*Persistent, error) {
	return c.persistent(func() (*operation, error) { return c.newSend(buf, dest, tag, false) })
}

// SsendInit prepares an Issend of buf.
func (c *Comm) SsendInit(buf []byte, dest, tag int) (*Persistent, error) {
	return c.persistent(func() (*operation, error) { return c.newSend(buf, dest, tag, true) })
}

// RecvInit prepares an Irecv into buf.
func (c *Comm) RecvInit(buf []byte, source, tag int) (*Persistent, error) {
	return c.persistent(func() (*operation, error) { return c.newReceive(buf, source, tag) })
}

// persistent looks at the arguments once, before anything begins.
func (c *Comm) persistent(prepare func() (*operation, error)) (*Persistent, error) {
	op, err := prepare()
	if err != nil {
		return nil, err
	}
	op.release()
	return &Persistent{begin: func() (Request, error) {
		op, err := prepare()
		return op.start(), err
	}}, nil
}

// Start begins it. It must not be under way already: that is an *ArgumentError. Its
// buffer is the request's until it is done.
func (p *Persistent) Start() error {
	if p.request != (Request{}) {
		return &ArgumentError{"times that a persistent request is under way", 2, "1"}
	}
	q, err := p.begin()
	p.request = q
	return err
}

// Wait waits for what Start has begun, as Request.Wait does. If nothing is under way,
// the status is empty.
func (p *Persistent) Wait(ctx context.Context) (Status, error) {
	if p.request == (Request{}) {
		return Status{}, nil
	}
	op := p.request.op
	if err := op.wait(ctx); err != nil {
		return Status{}, context.Cause(ctx)
	}
	p.request = Request{}
	return op.result()
}

// Test is Request.Test of what Start has begun. If nothing is under way, it is done.
func (p *Persistent) Test() (status Status, done bool, err error) {
	if p.request == (Request{}) {
		return Status{}, true, nil
	}
	status, done, err = p.request.Test()
	if done {
		p.request = Request{}
	}
	return status, done, err
}

// Cancel is Request.Cancel of what Start has begun.
func (p *Persistent) Cancel() {
	if p.request != (Request{}) {
		p.request.Cancel()
	}
}
