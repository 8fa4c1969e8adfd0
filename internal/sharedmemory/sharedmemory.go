// Package sharedmemory finds and removes what a killed process has left in /dev/shm.
package sharedmemory

import (
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const folder = "/dev/shm"

var (
	// ofShm are the process, the domain and the endpoint. The fourth part is weft's, where
	// there was such a name already.
	ofShm = regexp.MustCompile(`^(\d+):\d+:\d+(:[0-9a-f]{16})?$`)
	// ofEFA is the endpoint's address, by which its peers of the host find it: GID, queue
	// pair and key, then the user. efa opens an endpoint of shm for each of its own.
	ofEFA = regexp.MustCompile(`^[0-9a-f.]*:[0-9a-f:.]*_[0-9a-f]{4,}_[0-9a-f]{8}_[0-9a-f]{4,}$`)
)

// Of returns the files of a process that shm and efa have for its endpoints, by what it has
// mapped.
func Of(pid int) (files []string) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil
	}
	root := os.DirFS("/")
	for line := range strings.Lines(string(maps)) {
		_, name, found := strings.Cut(line, folder+"/")
		name = strings.TrimSpace(name)
		file := path.Join(folder, name)
		// What was removed has a word behind its name. The peers' are mapped, too.
		if !found || strings.ContainsAny(name, " /") || slices.Contains(files, file) {
			continue
		}
		if owner, known := Owner(root, file[1:]); known && owner == pid {
			files = append(files, file)
		}
	}
	return files
}

// Remove removes what shm and efa have for the endpoints of a process that could not do it
// itself. Left there, what is named after the process is in the way of the next one with its
// id: libfabric does not enable an endpoint whose name there is.
func Remove(pid int) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	root := os.DirFS("/")
	for _, e := range entries {
		file := path.Join(folder, e.Name())
		if owner, known := Owner(root, file[1:]); known && owner == pid {
			_ = os.Remove(file)
		}
	}
}

// Owner returns the process that has made a file of /dev/shm for an endpoint of shm or efa.
// It is not known of files that others have made, and of efa's if they cannot be read or are
// of a libfabric whose layout is not known here.
func Owner(root fs.FS, file string) (pid int, known bool) {
	name := path.Base(file)
	if ofEFA.MatchString(name) {
		return ownerInside(root, file)
	}
	parts := ofShm.FindStringSubmatch(name)
	if parts == nil {
		return 0, false
	}
	pid, err := strconv.Atoi(parts[1])
	return pid, err == nil
}

// lastVersion is that of libfabric 2.1's shared memory; 1.17 has 4. Both have a byte with the
// version, three others and the process (struct smr_region of its prov/shm); it has been
// elsewhere since.
const lastVersion = 8

// ownerInside reads the owner from what the memory begins with.
func ownerInside(root fs.FS, file string) (pid int, known bool) {
	// To open anything else, such as a pipe, could wait.
	if info, err := fs.Stat(root, file); err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	f, err := root.Open(file)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	var header [8]byte
	if _, err := io.ReadFull(f, header[:]); err != nil || header[0] == 0 || header[0] > lastVersion {
		return 0, false
	}
	pid = int(int32(binary.NativeEndian.Uint32(header[4:])))
	return pid, pid > 0
}
