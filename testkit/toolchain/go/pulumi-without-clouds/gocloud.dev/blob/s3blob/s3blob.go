// Package s3blob stands in for the driver of s3://.
package s3blob
