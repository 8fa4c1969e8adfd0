package fabric_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// afterClose are the methods that do not answer net.ErrClosed after Close, and
// what they do instead.
var afterClose = map[string]string{
	"*.Close": "nil: it is closed",

	"AddressSet.Members":             "what they were",
	"AddressVector.Len":              "what it was",
	"AddressVector.Type":             "what it was",
	"Arena.Bytes":                    "none",
	"CompletionQueue.InFlight":       "what it was",
	"CompletionQueue.Size":           "what it was",
	"CompletionQueue.Strays":         "what it was",
	"CompletionQueue.WaitDescriptor": "what it was, but closed",
	"Deferred.Counter":               "what it was",
	"Endpoint.Batching":              "what it was",
	"Endpoint.Info":                  "what it was",
	"EventQueue.Dropped":             "0, as it says",
	"EventQueue.WaitDescriptor":      "what it was, but closed",
	"Group.Address":                  "what it was",
	"Group.Rank":                     "what it was",
	"Group.Size":                     "what it was",
	"MappedRegion.AppendBinary":      "it is of the region's description",
	"MappedRegion.At":                "it is of the region's description",
	"MappedRegion.MarshalBinary":     "it is of the region's description",
	"MappedRegion.UnmarshalBinary":   "it is of the region's description",
	"MulticastGroup.Address":         "void, as it says",
	"Pool.Out":                       "none",
	"Port.Arm":                       "whatever: Wait returns at once",
	"Port.Attributes":                "what they were",
	"Port.InFlight":                  "what it was",
	"Port.LocalAddress":              "what it was",
	"Port.Wait":                      "it returns at once",
	"Port.Wake":                      "nothing",
	"Region.Access":                  "what it was",
	"Region.Descriptor":              "none",
	"Region.Len":                     "what it was",
}

// subject is a handle of which the methods are called after Close.
type subject struct {
	name   string
	handle interface{ Close() error }
}

// subjects are what an estate has of each type, in the order of opening.
type subjects struct {
	*estate
	list []subject
	// arguments are what methods are called with, by type: things that are still
	// open, so that nothing else can be wrong.
	arguments map[reflect.Type]reflect.Value
}

func (s *subjects) have(h interface{ Close() error }) {
	name := reflect.TypeOf(h).Elem().Name()
	s.add(name, h)
	s.list = append(s.list, subject{name, h})
	if _, ok := s.arguments[reflect.TypeOf(h)]; !ok {
		s.argument(h)
	}
}

func (s *subjects) argument(v any) {
	s.arguments[reflect.TypeOf(v)] = reflect.ValueOf(v)
}

// must is for results with an error.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// of opens what a method opens, for a test that closes it.
func of[T interface{ Close() error }](s *subjects) func(v T, err error) T {
	return func(v T, err error) T {
		s.t.Helper()
		require.NoError(s.t, err)
		s.have(v)
		return v
	}
}

// messaging opens all that there is for datagrams.
func messaging(s *subjects) {
	t := s.t
	info := datagramsFor(t, "sockets", deferringHints().Capabilities|fabric.NamedReceiveContexts)
	s.argument(info)
	f := of[*fabric.Fabric](s)(info.OpenFabric())
	d := of[*fabric.Domain](s)(f.OpenDomain(info))
	ev := of[*fabric.EventQueue](s)(f.OpenEventQueue())
	v := of[*fabric.AddressVector](s)(d.OpenAddressVectorConfig(fabric.AddressVectorConfig{ReceiveBits: 1}))
	q := of[*fabric.CompletionQueue](s)(d.OpenCompletionQueue(64))
	counter := of[*fabric.Counter](s)(d.OpenCounter())
	done := of[*fabric.Counter](s)(d.OpenCounter())
	arena := of[*fabric.Arena](s)(fabric.NewArena(1 << 16))
	region := of[*fabric.Region](s)(arena.Register(d, fabric.RegionConfig{Access: fabric.AccessAll}))
	s.argument(arena.Bytes()[:64])
	of[*fabric.Pool](s)(fabric.NewPool(arena, fabric.PoolConfig{Smallest: 64, Region: region}))
	remote := must[fabric.RemoteRegion](t)(region.Remote())
	of[*fabric.MappedRegion](s)(d.MapRemote(remote))

	several := must[*fabric.Info](t)(info.WithContexts(2, 2))
	scalable := of[*fabric.ScalableEndpoint](s)(d.OpenScalableEndpoint(several))
	require.NoError(t, scalable.Enable(v, ev))
	of[*fabric.Context](s)(scalable.OpenReceive(0))
	sharing := must[*fabric.Info](t)(info.WithContexts(1, fabric.SharedContext))
	of[*fabric.SharedReceive](s)(d.OpenSharedReceive(sharing, q))
	t.Cleanup(fabric.TrustSockets())
	of[*fabric.SharedSend](s)(d.OpenSharedSend(info))

	e := of[*fabric.Endpoint](s)(d.OpenEndpoint())
	b := fabric.Bindings{Vector: v, Send: q, Receive: q, Events: ev}
	require.NoError(t, e.EnableWith(b))
	s.argument(b)
	peer := insert(t, v, e)
	s.argument(peer)
	s.argument([]fabric.Address{peer})
	s.argument(fabric.Trigger{Counter: counter, Threshold: 1 << 20})
	of[*fabric.Alias](s)(e.OpenAlias(fabric.Sending, 0))
	of[*fabric.Deferred](s)(counter.DeferAdd(1, fabric.Trigger{Counter: done, Threshold: 0}))
}

// listening opens what is for connections.
func listening(s *subjects) {
	t := s.t
	infos := must[[]*fabric.Info](t)(fabric.Discover(fabric.Hints{
		Provider: "sockets", Endpoint: fabric.Connected, Capabilities: fabric.Messages, Source: "127.0.0.1",
	}))
	s.argument(infos[0])
	f := of[*fabric.Fabric](s)(infos[0].OpenFabric())
	d := of[*fabric.Domain](s)(f.OpenDomain(infos[0]))
	ev := of[*fabric.EventQueue](s)(f.OpenEventQueue())
	p := of[*fabric.PassiveEndpoint](s)(f.OpenPassiveEndpoint(infos[0]))
	require.NoError(t, p.Listen(ev))
	name := must[[]byte](t)(p.Name())
	s.argument(name)
	q := of[*fabric.CompletionQueue](s)(d.OpenCompletionQueue(64))
	e := of[*fabric.Endpoint](s)(d.OpenEndpoint())
	require.NoError(t, e.EnableWith(fabric.Bindings{Send: q, Receive: q, Events: ev}))
}

// memberOf opens an endpoint with what it needs, for groups.
func memberOf(s *subjects, info *fabric.Info) *member {
	s.argument(info)
	f := of[*fabric.Fabric](s)(info.OpenFabric())
	m := &member{domain: of[*fabric.Domain](s)(f.OpenDomain(info))}
	m.events = of[*fabric.EventQueue](s)(f.OpenEventQueue())
	m.v = of[*fabric.AddressVector](s)(m.domain.OpenAddressVector())
	m.q = of[*fabric.CompletionQueue](s)(m.domain.OpenCompletionQueue(64))
	m.e = of[*fabric.Endpoint](s)(m.domain.OpenEndpoint())
	require.NoError(s.t, m.e.Enable(m.v, m.q, m.events))
	return m
}

// collecting opens what is for groups.
func collecting(s *subjects) {
	t := s.t
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "tcp;ofi_rxm", Endpoint: fabric.ReliableDatagram, Source: "127.0.0.1", OneThread: true,
		Capabilities: fabric.Messages | fabric.TaggedMessages | fabric.Collectives, MemoryMode: everyMemoryMode,
	})
	testenv.Need(t, "tcp with collectives", err)
	m := memberOf(s, infos[0])
	self := insert(t, m.v, m.e)
	s.argument(self)
	m.set = of[*fabric.AddressSet](s)(m.v.OpenSet(fabric.AddressSetConfig{Members: []fabric.Address{self}}))
	m.group = of[*fabric.Group](s)(m.e.JoinCollective(m.set, 0))
	join(t, []*member{m})
}

// addressing opens a multicast group.
func addressing(s *subjects) {
	t := s.t
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "udp", Endpoint: fabric.Datagram, Capabilities: fabric.Messages | fabric.Multicast,
		Source: "127.0.0.1", MemoryMode: everyMemoryMode,
	})
	testenv.Need(t, "multicast", err)
	m := memberOf(s, infos[0])
	of[*fabric.MulticastGroup](s)(m.e.JoinMulticast(groupAddress(t, m.e), 0))
}

func porting(provider string) func(s *subjects) {
	return func(s *subjects) {
		choice := must[*fabric.Choice](s.t)(fabric.Choose(fabric.Preference{Providers: []string{provider}, Require: true, Source: "127.0.0.1"}))
		p := of[*fabric.Port](s)(fabric.OpenPort(choice.Info, fabric.PortConfig{}))
		s.argument(p.LocalAddress())
	}
}

// builders open, all together, a handle of every type.
var builders = map[string]func(s *subjects){
	"messages": messaging, "connections": listening, "collectives": collecting, "multicast": addressing,
	"port of sockets": porting("sockets"), "port of tcp": porting("tcp"), "port of shm": porting("shm"),
}

// build opens everything, with arguments that fit most methods.
func build(t *testing.T, builder func(s *subjects)) *subjects {
	s := &subjects{estate: &estate{t: t}, arguments: make(map[reflect.Type]reflect.Value)}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	s.arguments[reflect.TypeFor[context.Context]()] = reflect.ValueOf(ctx)
	op := fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)}
	s.argument(op)
	s.argument(&op)
	s.argument([]fabric.Op{op})
	s.argument(make([]fabric.Completion, 4))
	s.argument("127") // a host, and a service
	s.argument(1)
	s.argument(fabric.Sending)
	s.argument(fabric.OpAtomic)
	s.argument(fabric.OptionMinMultiReceive)
	s.argument(fabric.OptionCUDAPermitted)
	s.argument(fabric.Uint64)
	s.argument(make([]byte, 16))
	s.argument(time.Hour)
	builder(s)
	return s
}

// closeTo closes everything from the last one down to the one with the index.
func (s *subjects) closeTo(index int) {
	for i := len(s.list) - 1; i >= index; i-- {
		require.NoError(s.t, s.list[i].handle.Close(), s.list[i].name)
	}
}

// methods are those of a subject.
func (x subject) methods() []reflect.Method {
	return slices.Collect(reflect.TypeOf(x.handle).Methods())
}

// call calls a method with arguments that fit.
func (s *subjects) call(x subject, m reflect.Method) []reflect.Value {
	v := reflect.ValueOf(x.handle).MethodByName(m.Name)
	var in []reflect.Value
	for i := range v.Type().NumIn() {
		if v.Type().IsVariadic() && i == v.Type().NumIn()-1 {
			break
		}
		a, ok := s.arguments[v.Type().In(i)]
		if !ok {
			a = reflect.Zero(v.Type().In(i))
		}
		in = append(in, a)
	}
	return v.Call(in)
}

// kept are the results of the methods that give after Close what they gave before.
func (s *subjects) kept(x subject) map[string][]any {
	results := make(map[string][]any)
	for _, m := range x.methods() {
		switch afterClose[x.name+"."+m.Name] {
		case "what it was", "what they were":
			results[m.Name] = s.values(s.call(x, m))
		}
	}
	return results
}

// values are results that can be compared.
func (s *subjects) values(results []reflect.Value) (all []any) {
	for _, r := range results {
		all = append(all, r.Interface())
	}
	return all
}

// failure is the error among the results, and whether there can be one.
func failure(results []reflect.Value) (err error, has bool) {
	for _, r := range results {
		if r.Type() == reflect.TypeFor[error]() {
			err, _ = r.Interface().(error)
			return err, true
		}
	}
	return nil, false
}

// Every method of every handle works before Close, and can be called after it, and says so.
func TestEveryMethodAfterClose(t *testing.T) {
	seen, worked := make(map[string]bool), make(map[string]error)
	for _, name := range slices.Sorted(maps.Keys(builders)) {
		t.Run(name, func(t *testing.T) {
			count := len(discarded(t, builders[name]).list)
			for index := range count {
				works(t, builders[name], index, worked)
				s := build(t, builders[name])
				x := s.list[index]
				s.closeTo(index + 1)
				before := s.kept(x)
				s.closeTo(index)
				seen[x.name] = true
				for _, m := range x.methods() {
					what := x.name + "." + m.Name
					results := s.call(x, m)
					err, has := failure(results)
					_, listed := afterClose[what]
					switch {
					case before[m.Name] != nil:
						assert.Equal(t, before[m.Name], s.values(results), what)
					case afterClose[what] == "none":
						assert.True(t, results[0].IsZero(), "%s is %v", what, results[0])
					case m.Name == "Close":
						require.NoError(t, err, what)
					case !listed:
						assert.True(t, has, "%s has no error to return: afterClose should say what it does", what)
						assert.ErrorIs(t, err, net.ErrClosed, what)
					}
				}
				s.closeTo(0)
				nothingOpen(t)
			}
		})
	}
	require.Subset(t, slices.Collect(maps.Keys(seen)), closable(t), "handles of which no method was tried")
	for what, err := range worked {
		known := func(want error) bool { return errors.Is(err, want) && slices.Contains(notWorking[want], what) }
		if err != nil && !slices.ContainsFunc(slices.Collect(maps.Keys(notWorking)), known) {
			t.Errorf("%s does not work before Close: %v", what, err)
		}
	}
}

// notWorking are the methods that do not succeed before Close either, with the arguments
// and on the providers of this test: it is not net.ErrClosed that they say then, but where
// an argument is closed.
var notWorking = map[error][]string{
	fabric.ErrInvalid: {
		"AddressSet.Insert", "AddressVector.Insert", "AddressVector.Text", "Context.Cancel",
		"Counter.DeferAdd", "Counter.DeferSet", "Domain.RegisterDMABuf", "Domain.RegisterDevice",
		"Domain.RegisterMemory", "Endpoint.Accept", "Endpoint.Enable", "Endpoint.EnableWith",
		"Endpoint.JoinCollective", "Endpoint.JoinMulticast", "Endpoint.Peer",
		"Endpoint.SetName", "Endpoint.Shutdown", "Group.AllGather", "Group.AllReduce",
		"Group.AllToAll", "Group.Broadcast", "Group.Gather", "Group.Reduce",
		"Context.SetSizeOption", "SharedReceive.SetSizeOption",
		"Group.ReduceScatter", "Group.Scatter", "PassiveEndpoint.Listen",
		"PassiveEndpoint.SetBacklog", "PassiveEndpoint.SetName", "Region.BindCounter",
		"ScalableEndpoint.Enable", "SharedReceive.Enable",
	},
	fabric.ErrNotSupported: {
		"AddressVector.InsertKey", "AddressVector.OpenSet", "AddressVector.LookupKey", "AddressVector.SetUserID",
		"Context.BoolOption", "Context.SetBoolOption", "Deferred.Cancel",
		"Domain.FlushDeferred", "Domain.OpenSharedReceive", "Domain.RegisterDMABuf",
		"Endpoint.BoolOption", "Endpoint.Defer", "Endpoint.PeerToPeer", "Endpoint.PostWhen",
		"Endpoint.SetBoolOption", "Endpoint.SetPeerToPeer", "PassiveEndpoint.SizeOption",
		"SharedReceive.BoolOption", "SharedReceive.Cancel", "SharedReceive.SetBoolOption",
	},
	context.DeadlineExceeded: {"EventQueue.ReadWait"},
	net.ErrClosed:            {"Domain.BindEvents", "Region.BindEndpoint"},
}

// works calls every method of a handle that is open, and notes those that succeed.
func works(t *testing.T, builder func(s *subjects), index int, worked map[string]error) {
	t.Helper()
	s := build(t, builder)
	x := s.list[index]
	s.closeTo(index + 1)
	s.argument(time.Millisecond)
	s.argument(func() error { return nil })
	s.argument(fabric.Sum)
	s.argument(fabric.Trigger{})
	s.argument(fabric.CompletionQueueConfig{Size: 16})
	soon, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	s.arguments[reflect.TypeFor[context.Context]()] = reflect.ValueOf(soon)
	open := []interface{ Close() error }{}
	for _, other := range s.list[:index+1] {
		open = append(open, other.handle)
	}
	for _, m := range x.methods() {
		what := x.name + "." + m.Name
		if m.Name == "Close" {
			continue
		}
		results := s.call(x, m)
		err, has := failure(results)
		if !has {
			continue
		}
		if previous, seen := worked[what]; !seen || previous != nil {
			worked[what] = err
		}
		for _, r := range results {
			if forget, ok := r.Interface().(func()); ok && forget != nil {
				forget()
			}
			if b, ok := r.Interface().(fabric.Buffer); ok && err == nil {
				require.NoError(t, b.Put())
			}
			if opened, ok := r.Interface().(interface{ Close() error }); ok && !r.IsZero() && !slices.Contains(open, opened) {
				open = append(open, opened)
			}
		}
	}
	// In whichever order that can be.
	slices.Reverse(open)
	for left := len(open) + 1; len(open) > 0; {
		require.Less(t, len(open), left, "%s: nothing can be closed any more", x.name)
		left = len(open)
		open = slices.DeleteFunc(open, func(h interface{ Close() error }) bool { return h.Close() == nil })
	}
}

// discarded opens everything and closes it.
func discarded(t *testing.T, builder func(s *subjects)) *subjects {
	s := build(t, builder)
	s.closeTo(0)
	return s
}

// closable are the exported types of this package that have a Close.
func closable(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		require.NoError(t, err)
		for _, declaration := range file.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Close" {
				continue
			}
			star, ok := f.Recv.List[0].Type.(*ast.StarExpr)
			if !ok {
				continue
			}
			if name := star.X.(*ast.Ident).Name; ast.IsExported(name) {
				names = append(names, name)
			}
		}
	}
	require.NotEmpty(t, names)
	return names
}
