package tagged_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/tagged"
)

func TestPutControl(t *testing.T) {
	// What was in the buffer before must not be sent.
	message := bytes.Repeat([]byte{0xff}, tagged.ControlSize+1)
	tagged.PutControl(message, tagged.Control{
		Type: tagged.ControlCredit, Messages: 0x0102030405060708, Bytes: 0x1112131415161718,
	})
	require.Equal(t, []byte{
		1, 0, 0, 0, 0, 0, 0, 0,
		8, 7, 6, 5, 4, 3, 2, 1,
		0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
		0xff,
	}, message)

	c, err := tagged.ParseControl(message[:tagged.ControlSize])
	require.NoError(t, err)
	require.Equal(t, tagged.Control{
		Type: tagged.ControlCredit, Messages: 0x0102030405060708, Bytes: 0x1112131415161718,
	}, c)
}

func TestParseControlError(t *testing.T) {
	with := func(index int, value byte) []byte {
		message := make([]byte, tagged.ControlSize)
		tagged.PutControl(message, tagged.Control{Type: tagged.ControlCredit, Messages: 1, Bytes: 2})
		message[index] = value
		return message
	}
	for _, c := range []struct {
		message []byte
		want    tagged.ControlError
		text    string
	}{
		{
			nil,
			tagged.ControlError{Problem: tagged.ControlBadSize},
			"tagged: control message of 0 bytes, want 24",
		},
		{
			make([]byte, 23),
			tagged.ControlError{Problem: tagged.ControlBadSize, Got: 23},
			"tagged: control message of 23 bytes, want 24",
		},
		{
			make([]byte, 25),
			tagged.ControlError{Problem: tagged.ControlBadSize, Got: 25},
			"tagged: control message of 25 bytes, want 24",
		},
		{
			make([]byte, 24),
			tagged.ControlError{Problem: tagged.ControlUnknownType, Got: 24},
			"tagged: control message of unknown type 0, want 1 to 5",
		},
		{
			with(0, 99),
			tagged.ControlError{Problem: tagged.ControlUnknownType, Type: 99, Got: 24},
			"tagged: control message of unknown type 99, want 1 to 5",
		},
		{
			with(7, 1),
			tagged.ControlError{Problem: tagged.ControlReserved, Type: 1, Got: 24},
			"tagged: reserved bytes of a control message are not zero",
		},
	} {
		_, err := tagged.ParseControl(c.message)
		var controlError *tagged.ControlError
		require.ErrorAs(t, err, &controlError)
		require.Equal(t, c.want, *controlError)
		require.EqualError(t, err, c.text)
	}
}

func TestControlAllocatesNothing(t *testing.T) {
	message := make([]byte, tagged.ControlSize)
	requireNoAllocs(t, func() {
		tagged.PutControl(message, tagged.Control{Type: tagged.ControlCredit, Messages: 3})
		if c, err := tagged.ParseControl(message); err != nil || c.Messages != 3 {
			t.Fatal(c, err)
		}
	})
}

func FuzzParseControl(f *testing.F) {
	message := make([]byte, tagged.ControlSize)
	f.Add([]byte{})
	f.Add(bytes.Clone(message))
	tagged.PutControl(message, tagged.Control{Type: tagged.ControlCredit, Messages: math.MaxUint64, Bytes: 1})
	f.Add(bytes.Clone(message))
	f.Add(message[:tagged.ControlSize-1])
	message[3] = 1
	f.Add(message)
	f.Fuzz(func(t *testing.T, message []byte) {
		c, err := tagged.ParseControl(message)
		if err != nil {
			var controlError *tagged.ControlError
			require.ErrorAs(t, err, &controlError)
			return
		}
		again := make([]byte, tagged.ControlSize)
		tagged.PutControl(again, c)
		require.True(t, bytes.Equal(message, again))
	})
}
