package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/iotest"
)

// sender is a connection on which text has arrived.
type sender struct {
	net.Conn
	io.Reader
}

func (s sender) Read(buffer []byte) (int, error) { return s.Reader.Read(buffer) }

// passed returns how many bytes of the text reach x/crypto.
func passed(text io.Reader) (int, error) {
	arrived := newGuard(sender{Reader: text})
	arrived.admit = func(string) error { return nil }
	read, err := io.ReadAll(arrived)
	return len(read), err
}

// packet has `length` bytes after its length; its type is an unknown one if none is given.
func packet(length int, kind byte, tag int) []byte {
	made := binary.BigEndian.AppendUint32(nil, uint32(length))
	made = append(made, make([]byte, length+tag)...)
	if tag == 0 {
		made[typeAt] = kind
	}
	return made
}

func TestWhatMayBeSentBeforeALogin(t *testing.T) {
	line := []byte("SSH-2.0-x\r\n")
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	keyed := join(line, packet(12, newKeys, 0))
	filled := beforeLogin - len(line) - lengthSize
	for name, row := range map[string]struct {
		text []byte
		want error
	}{
		"a line":             {line, nil},
		"a packet":           {join(line, packet(1000, 20, 0)), nil},
		"packets":            {join(line, packet(12, 20, 0), packet(2, 30, 0), packet(99, 0, 0)), nil},
		"the largest packet": {join(line, packet(filled, 20, 0)), nil},
		"one byte more":      {join(line, packet(filled+1, 20, 0)[:6]), errTooMuch},
		"one byte more, of which only the length came": {join(line, packet(filled+1, 20, 0)[:4]), errTooMuch},
		"the largest that x/crypto accepts":            {join(line, []byte{0, 4, 0, 0}), errTooMuch},
		"the largest number":                           {join(line, []byte{255, 255, 255, 255}), errTooMuch},
		"many small ones":                              {join(line, bytes.Repeat(packet(12, 2, 0), beforeLogin/16)), errTooMuch},
		"a packet without a type":                      {join(line, []byte{0, 0, 0, 1}), errNotSSH},
		"with keys":                                    {join(keyed, packet(12, 0, tagSize), packet(99, 0, tagSize)), nil},
		"with keys, too large":                         {join(keyed, packet(12, 0, tagSize), []byte{0, 4, 0, 0}), errTooMuch},
		"with keys, many small ones":                   {join(keyed, bytes.Repeat(packet(12, 0, tagSize), beforeLogin/32)), errTooMuch},
		"another protocol":                             {[]byte("GET / HTTP/1.1\r\n\r\n"), errNotSSH},
		"a line before the first":                      {join([]byte("hello\r\n"), line), errNotSSH},
		"a line that does not end":                     {bytes.Repeat([]byte("S"), 1000), errNotSSH},
		"an old version":                               {[]byte("SSH-1.5-x\r\n"), errNotSSH},
	} {
		for way, reader := range map[string]io.Reader{"at once": bytes.NewReader(row.text), "byte by byte": iotest.OneByteReader(bytes.NewReader(row.text))} {
			if _, err := passed(reader); !errors.Is(err, row.want) {
				t.Errorf("%s, %s: got %v", name, way, err)
			}
		}
	}
}

// FuzzGuard checks that no more passes than may, however it is cut into pieces.
func FuzzGuard(f *testing.F) {
	f.Add([]byte("SSH-2.0-x\r\n"), []byte{0, 0, 0, 12, 10, 21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0})
	f.Add([]byte("SSH-2.0-x\n"), append(packet(12, 20, 0), packet(40_000, 0, 0)...))
	f.Fuzz(func(t *testing.T, first, rest []byte) {
		text := append(bytes.Clone(first), rest...)
		_, atOnce := passed(bytes.NewReader(text))
		length, err := passed(iotest.OneByteReader(bytes.NewReader(text)))
		if !errors.Is(err, atOnce) || length > beforeLogin {
			t.Errorf("%d bytes passed, and %v; at once %v", length, err, atOnce)
		}
	})
}
