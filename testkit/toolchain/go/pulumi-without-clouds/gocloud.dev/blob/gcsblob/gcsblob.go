// Package gcsblob stands in for the driver of gs://.
package gcsblob

// Scheme is that of addresses of the driver.
const Scheme = "gs"
