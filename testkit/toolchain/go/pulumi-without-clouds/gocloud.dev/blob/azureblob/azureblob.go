// Package azureblob stands in for the driver of azblob://.
package azureblob
