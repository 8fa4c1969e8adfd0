package fabric

// OrderedSizes are how many bytes an operation can have at most to keep the
// order that the endpoint promises for remote memory.
type OrderedSizes struct {
	ReadAfterWrite, WriteAfterRead, WriteAfterWrite uint64
}

// OrderedSizes are those of the endpoint.
func (i *Info) OrderedSizes() OrderedSizes {
	return OrderedSizes{
		ReadAfterWrite: i.a.MaxOrderRAW, WriteAfterRead: i.a.MaxOrderWAR, WriteAfterWrite: i.a.MaxOrderWAW,
	}
}

// SendAttributes are the properties of an endpoint's sending side
// (fi_tx_attr).
type SendAttributes struct {
	// Capabilities and Mode are those of the sending side.
	Capabilities Capabilities
	Mode         Mode
	// Flags apply to every operation that has no flags of its own.
	Flags OpFlags
	// Order is the order of operations, Completions that of completions.
	Order, Completions Order
	InjectSize         uint64 // the most bytes of an injected operation
	Queue              uint64 // how many operations the endpoint holds
	// Vectors is how many buffers an operation has, RemoteVectors how many
	// pieces of remote memory.
	Vectors, RemoteVectors uint64
	// TrafficClass is that of the endpoint.
	TrafficClass TrafficClass
}

// Send describes the endpoint's sending side.
func (i *Info) Send() SendAttributes {
	return SendAttributes{
		Capabilities: Capabilities(i.a.TxCaps), Mode: Mode(i.a.TxMode), Flags: OpFlags(i.a.TxFlags),
		Order: Order(i.a.TxOrder), Completions: Order(i.a.TxCompletionOrder),
		InjectSize: i.a.InjectSize, Queue: i.a.TxSize,
		Vectors: i.a.TxVectors, RemoteVectors: i.a.RMAVectors,
		TrafficClass: TrafficClass(i.a.TxTrafficClass),
	}
}

// ReceiveAttributes are the properties of an endpoint's receiving side
// (fi_rx_attr).
type ReceiveAttributes struct {
	// Capabilities and Mode are those of the receiving side.
	Capabilities Capabilities
	Mode         Mode
	// Flags apply to every receive that has no flags of its own.
	Flags OpFlags
	// Order is the order of operations, Completions that of completions.
	Order, Completions Order
	Queue              uint64 // how many receives the endpoint holds
	// Vectors is how many buffers a receive has at most: of the provider's number,
	// weft needs one itself where messages may come that do not fit.
	Vectors uint64
	// Buffered is how many bytes of messages that nobody waits for the provider
	// holds; 0 where it does not say.
	Buffered uint64
}

// Receive describes the endpoint's receiving side.
func (i *Info) Receive() ReceiveAttributes {
	return ReceiveAttributes{
		Capabilities: Capabilities(i.a.RxCaps), Mode: Mode(i.a.RxMode), Flags: OpFlags(i.a.RxFlags),
		Order: Order(i.a.RxOrder), Completions: Order(i.a.RxCompletionOrder),
		Queue: i.a.RxSize, Vectors: receiveVectors(i), Buffered: i.a.BufferedReceive,
	}
}

// Limits are how much a domain holds (fi_domain_attr). They are the best case:
// other programs use the same device.
type Limits struct {
	// Endpoints, CompletionQueues and Counters are how many of each.
	Endpoints, CompletionQueues, Counters uint64
	// Regions is how many registrations; 0 where the provider does not say.
	Regions uint64
	// RegionVectors is how many buffers one registration has.
	RegionVectors uint64
	// SendContexts and ReceiveContexts are those of all endpoints together.
	SendContexts, ReceiveContexts uint64
	// EndpointSendContexts and EndpointReceiveContexts are those of one
	// scalable endpoint.
	EndpointSendContexts, EndpointReceiveContexts uint64
	// SharedSends and SharedReceives are how many endpoints share a context; 0
	// means that contexts cannot be shared.
	SharedSends, SharedReceives uint64
	// ErrorData is how many bytes the provider adds to an error.
	ErrorData uint64
	// AuthorizationKeys is how many keys an endpoint has; 0 before libfabric 2.0.
	AuthorizationKeys uint64
	// Group is the greatest number of a group of a job (Address.InGroup); 0 where
	// there are none, as before libfabric 2.0.
	Group uint32
	// Capabilities and Mode are those of the domain itself.
	Capabilities Capabilities
	Mode         Mode
}

// Limits are those of the domain.
func (i *Info) Limits() Limits {
	return Limits{
		Endpoints: i.a.MaxEndpoints, CompletionQueues: i.a.MaxQueues, Counters: i.a.MaxCounters,
		Regions: i.a.MaxRegions, RegionVectors: i.a.RegionVectors,
		SendContexts: i.a.MaxTxContexts, ReceiveContexts: i.a.MaxRxContexts,
		EndpointSendContexts: i.a.MaxEndpointTx, EndpointReceiveContexts: i.a.MaxEndpointRx,
		SharedSends: i.a.MaxSharedTx, SharedReceives: i.a.MaxSharedRx, ErrorData: i.a.MaxErrorData,
		AuthorizationKeys: i.a.MaxAuthKeys, Group: i.a.MaxGroup,
		Capabilities: Capabilities(i.a.DomainCaps), Mode: Mode(i.a.DomainMode),
	}
}

// SendContexts is how many send contexts an endpoint has; more than 1 need a
// scalable endpoint.
func (i *Info) SendContexts() uint64 { return i.a.TxContexts }

// ReceiveContexts is how many receive contexts an endpoint has.
func (i *Info) ReceiveContexts() uint64 { return i.a.RxContexts }
