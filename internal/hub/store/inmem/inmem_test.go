package inmem_test

import (
	"testing"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/inmem"
	"github.com/memsvc/memsvc/internal/hub/store/storetest"
)

func TestPromises(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		New: func(storetest.T) store.Backend { return inmem.New(inmem.Options{}) },
	})
}
