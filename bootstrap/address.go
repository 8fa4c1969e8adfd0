package bootstrap

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weft-go/weft/internal/proof"
)

// address says where a store is.
type address struct {
	text   string // as it was given, for errors and logs
	tcp    string // host:port, or
	folder string // an absolute path, or neither: one in memory
	served bool   // by somebody who is no rank
}

// parseAddress reads an address as WEFT_STORE has it. field is where it is from.
func parseAddress(field, text string) (address, error) {
	wrong := func(detail string) (address, error) {
		return address{}, &ConfigError{Field: field, Detail: fmt.Sprintf("%q %s; it is tcp://HOST:PORT or file:///FOLDER", printable(text), detail)}
	}
	u, err := url.Parse(text)
	if err != nil {
		return wrong("is no address")
	}
	a := address{text: text}
	switch {
	case u.User != nil || u.Fragment != "":
		return wrong("has parts that belong to no store")
	case u.Scheme == "tcp":
		host, port := u.Hostname(), u.Port()
		if n, err := strconv.ParseUint(port, 10, 16); host == "" || err != nil || n == 0 {
			return wrong("has no host, or no port from 1 to 65535")
		}
		if u.Path != "" {
			return wrong("has a path")
		}
		switch u.RawQuery {
		case "":
		case "serve=no":
			a.served = true
		default:
			return wrong("says something else than ?serve=no behind the port")
		}
		a.tcp = net.JoinHostPort(host, port)
	case u.Scheme == "file":
		if u.Host != "" || !filepath.IsAbs(u.Path) || u.RawQuery != "" {
			return wrong("has no absolute path behind file://")
		}
		a.folder = filepath.Clean(u.Path)
	default:
		return wrong("is of another kind")
	}
	return a, nil
}

// storeAddress finds out where the store of a job is. given is Options.Address.
func (e environment) storeAddress(m Member, given string) (address, error) {
	a, err := e.findAddress(m, given)
	if err == nil && m.Size == 1 && a.folder == "" && !a.served {
		// Nobody else is to come.
		return address{text: "memory"}, nil
	}
	return a, err
}

func (e environment) findAddress(m Member, given string) (address, error) {
	if given != "" {
		return parseAddress("Address", given)
	}
	if text := e(envStore); text != "" {
		return parseAddress(envStore, text)
	}
	const hostName, portName = "MASTER_ADDR", "MASTER_PORT"
	host, port := e(hostName), e(portName)
	wrong := func(detail string, names ...string) (address, error) {
		return address{}, &EnvironmentError{Launcher: m.Launcher, Variables: names, Detail: detail}
	}
	switch {
	case host == "" && port == "":
		if m.Size == 1 {
			return address{text: "memory"}, nil
		}
		return wrong(fmt.Sprintf("nothing says where the %d ranks find each other: set %s=tcp://HOST:PORT, with the host of rank 0, or %s=file:///FOLDER, or %s and %s",
			m.Size, envStore, envStore, hostName, portName), envStore, hostName, portName)
	case host == "":
		return wrong(portName+" is set, but "+hostName+" is not", hostName, portName)
	case port == "":
		return wrong(hostName+" is set, but "+portName+" is not", portName, hostName)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return wrong(fmt.Sprintf("%s is %q, where a port from 1 to 65535 is needed", portName, printable(port)), portName)
	}
	if m.Launcher == LauncherTorchrun && strings.EqualFold(e("TORCHELASTIC_USE_AGENT_STORE"), "true") {
		// torchrun itself listens at the port.
		if n++; n > 65535 {
			return wrong(fmt.Sprintf("%s is %s, where torchrun listens, and there is no port behind it for weft; set %s=tcp://HOST:PORT", portName, port, envStore), portName, envStore)
		}
	}
	tcp := net.JoinHostPort(strings.Trim(host, "[]"), strconv.FormatUint(n, 10))
	return address{text: "tcp://" + tcp, tcp: tcp}, nil
}

// listenAt is where rank 0 listens, so that the others can reach it at an address.
// A name may be another address here than elsewhere, so it stands for all; but
// localhost is nobody else's.
func listenAt(tcp string) (string, error) {
	host, port, err := net.SplitHostPort(tcp)
	if err != nil {
		return "", err
	}
	if host == "localhost" {
		return tcp, nil
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return tcp, nil
	}
	return net.JoinHostPort("", port), nil
}

// key finds the secret of a job. given is Options.Key.
func (e environment) key(given []byte) ([]byte, error) {
	field, key := "Key", given
	name := e(envKeyFile)
	switch {
	case given != nil:
	case e(envKey) != "" && name != "":
		return nil, &EnvironmentError{Variables: []string{envKey, envKeyFile}, Detail: envKey + " and " + envKeyFile + " are both set; one of them is enough"}
	case e(envKey) != "":
		field, key = envKey, []byte(e(envKey))
	case name != "":
		field = envKeyFile
		file, err := os.Open(name)
		if err != nil {
			return nil, &EnvironmentError{Variables: []string{envKeyFile}, Detail: "cannot read " + envKeyFile + ": " + err.Error(), Err: err}
		}
		defer file.Close()
		text, err := readAtMost(file, 4096)
		if err != nil {
			return nil, &EnvironmentError{Variables: []string{envKeyFile}, Detail: "cannot read " + envKeyFile + ": " + err.Error(), Err: err}
		}
		key = []byte(strings.TrimRight(string(text), "\r\n"))
	default:
		return nil, nil
	}
	if len(key) < proof.LeastKey {
		return nil, &ConfigError{Field: field, Detail: fmt.Sprintf("a key of %d bytes, at least %d are needed", len(key), proof.LeastKey)}
	}
	return key, nil
}
