package fabric

// confusesStrangers says of a provider that what comes from a peer that is in no vector has the
// source of another there, and goes to receives for another: shm of libfabric 1.17, and efa within
// a host, whose endpoints see to it when they are opened (watchWithinHost).
func confusesStrangers(provider string) bool {
	v := LibraryVersion()
	return core(provider) == "shm" && v.Major == 1 && v.Minor == 17
}
