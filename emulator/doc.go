// Package emulator holds an EFA device in user space, written in C: preloaded
// into any program, it lets libfabric's own efa provider run on a machine
// without the hardware. There is no Go in it but its tests.
//
// scripts/with-efa builds it and runs a command on it; README.md says what it
// does, how it is told to reorder, refuse and lose packets, and what it leaves
// out. The device is in device/, tests that call it as the provider does are in
// tests/.
package emulator
