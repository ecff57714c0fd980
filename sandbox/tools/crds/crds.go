// Package crds names the module whose CRD files are used, so that go.mod keeps it.
package crds

import _ "sigs.k8s.io/gateway-api/pkg/consts"
