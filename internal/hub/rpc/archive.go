package rpc

import (
	"bufio"
	"errors"
	"io"

	"google.golang.org/grpc"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
)

// chunkBytes is the size of a streamed piece of an archive or backup.
const chunkBytes = 1 << 20

// chunkWriter sends what is written in pieces of chunkBytes.
type chunkWriter func([]byte) error

func (w chunkWriter) Write(p []byte) (int, error) {
	for done := 0; done < len(p); {
		n := min(chunkBytes, len(p)-done)
		if err := w(p[done : done+n]); err != nil {
			return done, err
		}
		done += n
	}
	return len(p), nil
}

// ExportArchive streams an archive.
func (s *adminServer) ExportArchive(req *memsvcv1.ExportArchiveRequest, out grpc.ServerStreamingServer[memsvcv1.ExportArchiveResponse]) error {
	ctx := out.Context()
	w := bufio.NewWriterSize(chunkWriter(func(p []byte) error {
		return out.Send(&memsvcv1.ExportArchiveResponse{Chunk: p})
	}), chunkBytes)
	if err := s.svc.Export(ctx, call(ctx), req.GetScope(), w); err != nil {
		return err
	}
	return w.Flush()
}

// Backup streams a copy of the running store.
func (s *adminServer) Backup(_ *memsvcv1.BackupRequest, out grpc.ServerStreamingServer[memsvcv1.BackupResponse]) error {
	ctx := out.Context()
	w := bufio.NewWriterSize(chunkWriter(func(p []byte) error {
		return out.Send(&memsvcv1.BackupResponse{Chunk: p})
	}), chunkBytes)
	if err := s.svc.Backup(ctx, call(ctx), w); err != nil {
		return err
	}
	return w.Flush()
}

// chunkReader reads the pieces of an import.
type chunkReader struct {
	in   grpc.ClientStreamingServer[memsvcv1.ImportArchiveRequest, memsvcv1.ImportArchiveResponse]
	rest []byte
}

func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		m, err := r.in.Recv()
		if errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		r.rest = m.GetChunk()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// ImportArchive takes an archive in.
func (s *adminServer) ImportArchive(in grpc.ClientStreamingServer[memsvcv1.ImportArchiveRequest, memsvcv1.ImportArchiveResponse]) error {
	ctx := in.Context()
	res, err := s.svc.Import(ctx, call(ctx), &chunkReader{in: in})
	if err != nil {
		return err
	}
	return in.SendAndClose(&memsvcv1.ImportArchiveResponse{Projects: res.Projects, Commits: res.Commits, SkippedCommits: res.Skipped, Tokens: res.Tokens})
}
