// Package cacheline moves cache lines between cores before they are needed.
package cacheline
