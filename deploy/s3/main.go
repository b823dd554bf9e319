// The S3 server of the compose file: versitygw on files, which answers a write only when the disk has it.
//
// versitygw itself never calls fsync: after a power cut an object that it had accepted may be empty, torn or gone, while
// the database still points at it. Here the same server is embedded, with a backend that syncs.
//
//	ROOT_ACCESS_KEY=… ROOT_SECRET_KEY=… versitygw-synced [flags] <folder>
//	versitygw-synced --healthz <host:port>
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// The limits that versitygw's own command has.
const maxConnections, maxRequests, maxParts = 250_000, 100_000, 10_000

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	listen := flag.String("listen", ":9000", "address of the S3 API")
	webui := flag.String("webui", "", "address of the web interface; empty for none")
	gateway := flag.String("webui-gateway", "", "URL by which the web interface, in a browser, reaches the S3 API")
	origin := flag.String("cors-allow-origin", "", "origin of the web interface")
	region := flag.String("region", "us-east-1", "region that clients must name")
	quiet := flag.Bool("quiet", false, "print no line for each request")
	healthz := flag.String("healthz", "", "address of a running server: only check that it answers")
	flag.Parse()
	if *healthz != "" {
		return checkHealth(*healthz)
	}
	if flag.NArg() != 1 {
		return fmt.Errorf("usage: versitygw-synced [flags] <folder>")
	}
	folder := flag.Arg(0)

	if err := (meta.XattrMeta{}).Test(folder); err != nil {
		return fmt.Errorf("%s must be on a file system with extended attributes: %w", folder, err)
	}
	// What an earlier server, killed or of a kind that does not sync, left in the caches of the kernel.
	if err := syncFileSystem(folder); err != nil {
		return err
	}
	files, err := posix.New(folder, meta.XattrMeta{}, posix.PosixOpts{})
	if err != nil {
		return err
	}
	if err := releaseUploads(); err != nil {
		return err
	}
	config := embedgw.Config{
		RootUserAccess:    os.Getenv("ROOT_ACCESS_KEY"),
		RootUserSecret:    os.Getenv("ROOT_SECRET_KEY"),
		Region:            *region,
		Ports:             []string{*listen},
		CORSAllowOrigin:   *origin,
		Quiet:             *quiet,
		MaxConnections:    maxConnections,
		MaxRequests:       maxRequests,
		MultipartMaxParts: maxParts,
	}
	if *webui != "" {
		config.WebuiPorts = []string{*webui}
		config.WebuiGateways = []string{*gateway}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return embedgw.RunVersityGW(ctx, &syncedFiles{Posix: files}, &config)
}

// The image has no other program that could ask. Without credentials the answer is a refusal, which shows that the server works.
func checkHealth(address string) error {
	client := http.Client{Timeout: 2 * time.Second}
	response, err := client.Get("http://" + address + "/")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("%s answers %s", address, response.Status)
	}
	return nil
}
