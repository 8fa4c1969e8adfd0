package efa

import (
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// stageExact is for a device whose receives with a mask miss what came before
// them (Attributes.MasksMissWaiting), which is what length and control messages
// are that find all shared receives in use. There these messages have the tag of
// their kind alone, which shared receives ask for without a mask, and their own
// tag goes along as immediate data. Payloads are asked for by their own tags
// everywhere. The devices of both sides are of the same kind, on the same host.
func stageExact(op *operation, post *fabric.Op) {
	kind := op.tag & tagged.KControl
	switch {
	case kind == tagged.KPayload || op.purpose == remoteAccess:
	case op.kind == fabric.OpTaggedReceive:
		post.Ignore = 0
	case kind == tagged.KLength:
		post.Tag, post.Flags, post.Immediate = tagged.SharedLength, fabric.Immediate, op.tag
	default:
		post.Tag, post.Flags, post.Immediate = kind, fabric.Immediate, op.tag
	}
}
