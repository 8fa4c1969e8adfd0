// Package cacheline sees to it that cache lines are with the core that needs them next.
package cacheline
