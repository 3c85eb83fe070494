//go:build parts

// Package parts names the programs that are built as they are, so that go.mod keeps them.
package parts

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
