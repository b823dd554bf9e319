// The test provider: a resource plugin whose cloud is a directory that the tests can read, edit and obstruct.
package main

import (
	"fmt"
	"math"
	"net"
	"os"
	"time"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
)

// The engine accepts messages of this size too; gRPC's own limit of 4 MiB would refuse large blobs.
const maxMessageBytes = 400 << 20

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go exitWithParent(os.Getppid())

	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessageBytes), grpc.MaxSendMsgSize(math.MaxInt32))
	pulumirpc.RegisterResourceProviderServer(server, newProvider(os.Getenv("HOLDFAST_TEST_CLOUD")))

	// The engine reads the port from the first line of stdout.
	fmt.Printf("%d\n", listener.Addr().(*net.TCPAddr).Port)
	if err := server.Serve(listener); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// exitWithParent ends the plugin when the CLI was killed: tests kill it a lot and must leave no processes behind.
func exitWithParent(parent int) {
	for os.Getppid() == parent {
		time.Sleep(100 * time.Millisecond)
	}
	os.Exit(1)
}
