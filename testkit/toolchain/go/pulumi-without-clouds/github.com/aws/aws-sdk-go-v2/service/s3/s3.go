// Package s3 stands in for the client of S3: it has the one type that the CLI names.
package s3

// CopyObjectInput names the object that is copied.
type CopyObjectInput struct {
	CopySource *string
}
