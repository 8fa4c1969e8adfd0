package bootstrap

// links is how many names a file has, as far as is known here: its own.
func links(string) (uint64, error) { return 1, nil }
