package bootstrap

import "errors"

// What the suite of package storetest runs on, which cannot be imported from within.
var (
	OpenTCP      = openTCP(nil)
	OpenKeyedTCP = openTCP([]byte("a key that all of the ranks have"))
	OpenFolders  = openFolders
	KillClient   = killClient
	KillFolder   = killFolder
)

var errKilled = errors.New("killed")
