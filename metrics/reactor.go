package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-go/weft/efa"
)

// Reactor is what has the counts of a reactor: an *efa.Reactor, an *efa.Listener or a
// *comm.Comm. Those of communicators of one world are the same.
type Reactor interface {
	Stats() efa.Stats
	Provider() string
}

// NewReactorCollector collects the counts of a reactor, and of all its connections
// together, with a name as the label reactor.
func NewReactorCollector(name string, r Reactor) prometheus.Collector {
	return newCollector(reactorMetrics, prometheus.Labels{"reactor": name},
		func() reactorStats { return reactorStats{r.Stats(), r.Provider()} })
}

type reactorStats struct {
	efa.Stats
	provider string
}

// ofRails is a count for each rail; two may have devices of the same name.
func ofRails(name, help string, of func(s *efa.RailStats) uint64) metric[reactorStats] {
	return metric[reactorStats]{
		name, help, prometheus.CounterValue,
		[]string{"rail", "device"},
		func(s *reactorStats, tell func(float64, ...string)) {
			for i, r := range s.Rails {
				tell(float64(of(&r)), strconv.Itoa(i), r.Domain)
			}
		},
	}
}

var reactorMetrics = []metric[reactorStats]{
	{
		"weft_reactor_info", "1, with the libfabric provider that was chosen.", prometheus.GaugeValue,
		[]string{"provider"},
		func(s *reactorStats, tell func(float64, ...string)) { tell(1, s.provider) },
	},

	count("weft_messages_sent_total", "Messages that were begun: they had the reader's credit and were given to the device or queued for it.",
		func(s *reactorStats) uint64 { return s.Sent }),
	count("weft_messages_sent_bytes_total", "Length of the messages that were begun.",
		func(s *reactorStats) uint64 { return s.SentBytes }),
	count("weft_messages_bounced_total", "Messages sent that were copied to a buffer of the reactor's, so that the caller had its own back at once.",
		func(s *reactorStats) uint64 { return s.Bounced }),
	count("weft_messages_zero_copy_total", "Messages sent that went from the caller's memory.",
		func(s *reactorStats) uint64 { return s.ZeroCopy }),
	count("weft_messages_eager_total", "Messages sent that had their payload in the length message.",
		func(s *reactorStats) uint64 { return s.Eager }),
	count("weft_messages_grouped_total", "Messages sent that shared a length message with others.",
		func(s *reactorStats) uint64 { return s.Grouped }),
	count("weft_messages_held_total", "Messages sent that are longer than the peer's whole window: they wait on this side until somebody reads them.",
		func(s *reactorStats) uint64 { return s.Held }),
	count("weft_message_groups_sent_total", "Length messages sent that carried several messages.",
		func(s *reactorStats) uint64 { return s.Groups }),
	count("weft_message_pieces_sent_total", "Payload messages of messages that were too long for one.",
		func(s *reactorStats) uint64 { return s.Pieces }),

	count("weft_messages_received_total", "Messages that are here whole.",
		func(s *reactorStats) uint64 { return s.Received }),
	count("weft_messages_received_bytes_total", "Length of the messages that are here whole.",
		func(s *reactorStats) uint64 { return s.ReceivedBytes }),
	count("weft_messages_direct_total", "Messages received that went to the memory of a reader who waited.",
		func(s *reactorStats) uint64 { return s.Direct }),
	count("weft_messages_parked_total", "Messages received that came before their reader, and were put into memory of the reactor's.",
		func(s *reactorStats) uint64 { return s.Parked }),
	count("weft_messages_read_total", "Messages that were read, or discarded after the end of their connection.",
		func(s *reactorStats) uint64 { return s.Read }),
	count("weft_messages_late_total", "Messages whose length came after that of a later message.",
		func(s *reactorStats) uint64 { return s.LateArrivals }),
	count("weft_messages_dropped_total", "Messages that belonged to no connection, did not come from its peer, or were too long for any.",
		func(s *reactorStats) uint64 { return s.Dropped }),
	count("weft_message_groups_received_total", "Length messages received that carried several messages.",
		func(s *reactorStats) uint64 { return s.GroupsReceived }),
	count("weft_message_pieces_received_total", "Payload messages received of messages that were too long for one.",
		func(s *reactorStats) uint64 { return s.PiecesReceived }),
	count("weft_messages_matched_sent_total", "Messages of communicators that were sent to be matched by the peer's device.",
		func(s *reactorStats) uint64 { return s.MatchedSent }),
	count("weft_messages_matched_received_total", "Messages of communicators that this side's device has matched.",
		func(s *reactorStats) uint64 { return s.MatchedReceived }),

	count("weft_writes_waited_total", "Writes that had to wait for the reader's credit: the reader is slower than the writer.",
		func(s *reactorStats) uint64 { return s.Waited }),
	count("weft_grants_sent_total", "Control messages sent that give the peer credit.",
		func(s *reactorStats) uint64 { return s.GrantsSent }),
	count("weft_grants_received_total", "Control messages received that give credit.",
		func(s *reactorStats) uint64 { return s.GrantsReceived }),
	count("weft_flushes_total", "Flushes that were begun.",
		func(s *reactorStats) uint64 { return s.Flushes }),
	{
		"weft_errors_total", "Calls, callbacks and completions of writes that ended with an error, by its kind.",
		prometheus.CounterValue,
		[]string{"kind"},
		func(s *reactorStats, tell func(float64, ...string)) { tellErrors(&s.Errors, tell) },
	},

	{
		"weft_connections", "Connections that the device serves now, those in the middle of their handshake included.", prometheus.GaugeValue, nil,
		func(s *reactorStats, tell func(float64, ...string)) { tell(float64(s.Connections)) },
	},
	count("weft_connections_opened_total", "Connections that have passed their handshake.",
		func(s *reactorStats) uint64 { return s.Opened }),
	{
		"weft_connections_ended_total", "Connections that had passed their handshake and have ended, by what ended them: in_order is with everything delivered on both sides.",
		prometheus.CounterValue,
		[]string{"cause"},
		func(s *reactorStats, tell func(float64, ...string)) {
			tell(float64(s.InOrder), "in_order")
			tellEnds(&s.Ended, tell)
		},
	},
	{
		"weft_handshakes_total", "Handshakes of accepted and of dialed connections, by what came of them.",
		prometheus.CounterValue,
		[]string{"side", "result"},
		func(s *reactorStats, tell func(float64, ...string)) {
			tellHandshakes(&s.Accepting, "accepting", tell)
			tell(float64(s.Accepting.TooManyHandshakes), "accepting", "too_many_handshakes")
			tellHandshakes(&s.Dialing, "dialing", tell)
		},
	},

	count("weft_remote_reads_total", "Reads of peers' memory that have ended well.",
		func(s *reactorStats) uint64 { return s.Reads }),
	count("weft_remote_read_bytes_total", "What reads of peers' memory have brought.",
		func(s *reactorStats) uint64 { return s.BytesRead }),
	count("weft_remote_writes_total", "Writes to peers' memory that have ended well.",
		func(s *reactorStats) uint64 { return s.Writes }),
	count("weft_remote_written_bytes_total", "What writes have taken to peers' memory.",
		func(s *reactorStats) uint64 { return s.BytesWritten }),
	ofRails("weft_rail_sent_bytes_total", "Payloads that each of several devices was given. A reactor without rails has none.",
		func(s *efa.RailStats) uint64 { return s.SentBytes }),
	ofRails("weft_rail_received_bytes_total", "Payloads that were taken from each of several devices.",
		func(s *efa.RailStats) uint64 { return s.ReceivedBytes }),

	count("weft_messages_beside_total", "Length messages and control messages that went through memory shared with a peer on this host, and not by the device.",
		func(s *reactorStats) uint64 { return s.Beside }),
	count("weft_operations_posted_total", "Operations that the device took or failed.",
		func(s *reactorStats) uint64 { return s.Posts }),
	count("weft_operations_injected_total", "Operations that were over with their post.",
		func(s *reactorStats) uint64 { return s.Injected }),
	count("weft_operations_completed_total", "Operations that the device has reported as ended; an injected one is not among them.",
		func(s *reactorStats) uint64 { return s.Completions }),
	count("weft_operations_refused_total", "How often the device did not take an operation for now, which was then offered again.",
		func(s *reactorStats) uint64 { return s.Refused }),
	count("weft_completions_late_total", "How often the device was done with a part of a message after one of a later message.",
		func(s *reactorStats) uint64 { return s.LateCompletions }),
	count("weft_turns_total", "How often a device was offered operations and asked for completions, in one call.",
		func(s *reactorStats) uint64 { return s.Turns }),
	count("weft_turns_empty_total", "Turns with no operation to offer and no completion.",
		func(s *reactorStats) uint64 { return s.EmptyTurns }),
	count("weft_crossings_total", "Calls of the device while it was driven; with libfabric each is one call from Go into C.",
		func(s *reactorStats) uint64 { return s.Crossings }),
	count("weft_parks_total", "How often a call found nothing to do and parked.",
		func(s *reactorStats) uint64 { return s.Parks }),
	count("weft_parks_following_total", "Parks of calls while another one was driving the device.",
		func(s *reactorStats) uint64 { return s.Follows }),
	count("weft_hand_overs_total", "How often a call that was done woke a parked one to drive the device.",
		func(s *reactorStats) uint64 { return s.HandOvers }),
	count("weft_waits_total", "How often the background goroutine waited for the device.",
		func(s *reactorStats) uint64 { return s.Waits }),
	count("weft_waits_idle_total", "Waits after which there was nothing to do.",
		func(s *reactorStats) uint64 { return s.IdleWakeUps }),
	count("weft_callbacks_total", "Callbacks that have returned.",
		func(s *reactorStats) uint64 { return s.Callbacks }),
}

// tellEnds tells the errors that can end a connection.
func tellEnds(s *efa.ErrorStats, tell func(float64, ...string)) {
	tell(float64(s.Closed), "closed")
	tell(float64(s.PeerLost), "peer_lost")
	tell(float64(s.Protocol), "protocol")
	tell(float64(s.Device), "device")
	tell(float64(s.Transfer), "transfer")
}

func tellErrors(s *efa.ErrorStats, tell func(float64, ...string)) {
	tellEnds(s, tell)
	tell(float64(s.PeerClosed), "peer_closed")
	tell(float64(s.Deadline), "deadline")
	tell(float64(s.Canceled), "canceled")
	tell(float64(s.MessageSize), "message_size")
	tell(float64(s.WouldBlock), "would_block")
	tell(float64(s.Other), "other")
}

func tellHandshakes(s *efa.HandshakeStats, side string, tell func(float64, ...string)) {
	tell(float64(s.Succeeded), side, "succeeded")
	tell(float64(s.Refused), side, "refused")
	tell(float64(s.Unauthorized), side, "unauthorized")
	tell(float64(s.TLS), side, "tls")
	tell(float64(s.TooManyConnections), side, "too_many_connections")
	tell(float64(s.Timeout), side, "timeout")
	tell(float64(s.FrameTooLong), side, "frame_too_long")
	tell(float64(s.NotWeft), side, "not_weft")
	tell(float64(s.Ended), side, "ended")
	tell(float64(s.Canceled), side, "canceled")
	tell(float64(s.Other), side, "other")
}
