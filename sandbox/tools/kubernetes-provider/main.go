// Command pulumi-resource-kubernetes serves Pulumi's real Kubernetes provider.
package main

import (
	_ "embed"
	"encoding/json"
	"log"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

// The build copies both files here from the provider's own module.
//
//go:embed schema.json
var schema []byte

//go:embed terraform-mapping.json
var mapping []byte

func main() {
	var spec map[string]json.RawMessage
	if err := json.Unmarshal(schema, &spec); err != nil {
		log.Fatal(err)
	}
	spec["version"], _ = json.Marshal(version.Version)
	withVersion, err := json.Marshal(spec)
	if err != nil {
		log.Fatal(err)
	}
	provider.Serve("kubernetes", version.Version, withVersion, mapping)
}
