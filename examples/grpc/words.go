package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Words is a service with a call of each of gRPC's four kinds. A real one has a
// .proto file, and the rest of this file generated from it; its messages here
// are protobuf's own, of one field each.
type Words interface {
	// Upper answers with the text in capitals.
	Upper(ctx context.Context, text *wrapperspb.StringValue) (*wrapperspb.StringValue, error)
	// Join answers with all that was sent, when that has ended.
	Join(calls grpc.ClientStreamingServer[wrapperspb.StringValue, wrapperspb.StringValue]) error
	// Split answers with the words of the text, one by one.
	Split(text *wrapperspb.StringValue, answers grpc.ServerStreamingServer[wrapperspb.StringValue]) error
	// Echo answers each message with itself.
	Echo(messages grpc.BidiStreamingServer[wrapperspb.BytesValue, wrapperspb.BytesValue]) error
}

// words does what Words says.
type words struct{}

func (words) Upper(_ context.Context, text *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	return wrapperspb.String(strings.ToUpper(text.GetValue())), nil
}

func (words) Join(calls grpc.ClientStreamingServer[wrapperspb.StringValue, wrapperspb.StringValue]) error {
	var all []string
	for {
		text, err := calls.Recv()
		if errors.Is(err, io.EOF) {
			return calls.SendAndClose(wrapperspb.String(strings.Join(all, " ")))
		}
		if err != nil {
			return err
		}
		all = append(all, text.GetValue())
	}
}

func (words) Split(text *wrapperspb.StringValue, answers grpc.ServerStreamingServer[wrapperspb.StringValue]) error {
	for word := range strings.FieldsSeq(text.GetValue()) {
		if err := answers.Send(wrapperspb.String(word)); err != nil {
			return err
		}
	}
	return nil
}

func (words) Echo(messages grpc.BidiStreamingServer[wrapperspb.BytesValue, wrapperspb.BytesValue]) error {
	for {
		m, err := messages.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := messages.Send(m); err != nil {
			return err
		}
	}
}

const service = "weft.example.Words"

// description is what gRPC knows of the service.
var description = grpc.ServiceDesc{
	ServiceName: service,
	HandlerType: (*Words)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Upper",
		Handler: func(server any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			text := new(wrapperspb.StringValue)
			if err := decode(text); err != nil {
				return nil, err
			}
			if intercept == nil {
				return server.(Words).Upper(ctx, text)
			}
			info := &grpc.UnaryServerInfo{Server: server, FullMethod: "/" + service + "/Upper"}
			return intercept(ctx, text, info, func(ctx context.Context, text any) (any, error) {
				return server.(Words).Upper(ctx, text.(*wrapperspb.StringValue))
			})
		},
	}},
	Streams: []grpc.StreamDesc{
		{
			StreamName: "Join", ClientStreams: true,
			Handler: func(server any, s grpc.ServerStream) error {
				return server.(Words).Join(&grpc.GenericServerStream[wrapperspb.StringValue, wrapperspb.StringValue]{ServerStream: s})
			},
		},
		{
			StreamName: "Split", ServerStreams: true,
			Handler: func(server any, s grpc.ServerStream) error {
				text := new(wrapperspb.StringValue)
				if err := s.RecvMsg(text); err != nil {
					return err
				}
				return server.(Words).Split(text, &grpc.GenericServerStream[wrapperspb.StringValue, wrapperspb.StringValue]{ServerStream: s})
			},
		},
		{
			StreamName: "Echo", ClientStreams: true, ServerStreams: true,
			Handler: func(server any, s grpc.ServerStream) error {
				return server.(Words).Echo(&grpc.GenericServerStream[wrapperspb.BytesValue, wrapperspb.BytesValue]{ServerStream: s})
			},
		},
	},
}

// client calls the service.
type client struct{ grpc.ClientConnInterface }

func (c client) Upper(ctx context.Context, text string) (string, error) {
	answer := new(wrapperspb.StringValue)
	err := c.Invoke(ctx, "/"+service+"/Upper", wrapperspb.String(text), answer)
	return answer.GetValue(), err
}

func (c client) Join(ctx context.Context) (grpc.ClientStreamingClient[wrapperspb.StringValue, wrapperspb.StringValue], error) {
	s, err := c.NewStream(ctx, &description.Streams[0], "/"+service+"/Join")
	return &grpc.GenericClientStream[wrapperspb.StringValue, wrapperspb.StringValue]{ClientStream: s}, err
}

func (c client) Split(ctx context.Context, text string) (grpc.ServerStreamingClient[wrapperspb.StringValue], error) {
	s, err := c.NewStream(ctx, &description.Streams[1], "/"+service+"/Split")
	if err != nil {
		return nil, err
	}
	if err := s.SendMsg(wrapperspb.String(text)); err != nil {
		return nil, err
	}
	return &grpc.GenericClientStream[wrapperspb.StringValue, wrapperspb.StringValue]{ClientStream: s}, s.CloseSend()
}

func (c client) Echo(ctx context.Context) (grpc.BidiStreamingClient[wrapperspb.BytesValue, wrapperspb.BytesValue], error) {
	s, err := c.NewStream(ctx, &description.Streams[2], "/"+service+"/Echo")
	return &grpc.GenericClientStream[wrapperspb.BytesValue, wrapperspb.BytesValue]{ClientStream: s}, err
}
