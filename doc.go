// Package weft is the root of a module that carries messages between programs
// over libfabric: over AWS EFA where there is one, over tcp, sockets or shared
// memory where there is none. It holds no code.
//
// Programs start with package efa: listen, dial, ordered messages and byte
// streams. Package fabric is libfabric itself with owned handles and typed
// errors, and package tagged the logic of tagged messages without any I/O.
// The command cmd/weft shows all of it at work.
package weft
