//go:build !linux

package main

// peek is not tried: what it asks about is of Linux.
var peek func() error
