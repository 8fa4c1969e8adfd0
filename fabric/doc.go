// Package fabric is libfabric for Go: providers, domains, endpoints, address
// vectors, queues and memory, with owners, typed errors and a fixed order of
// closing, and without allocation where messages pass.
//
// A program that wants one endpoint with everything around it calls [Choose]
// and [OpenPort], and then [Port.Turn] for each round of posting and reading.
// The parts of a Port can be opened one by one as well: [Info.OpenFabric],
// [Fabric.OpenDomain], [Domain.OpenEndpoint] and so on.
//
// Every handle knows its children. Close is idempotent and refuses, with
// [ErrBusy], while a child is open or the handle is in use; after Close every
// call returns an error that is net.ErrClosed.
package fabric
