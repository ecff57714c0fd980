// Pins modules of which only data is used: custom resource definitions.
module sandbox/tools/crds

go 1.26

require sigs.k8s.io/gateway-api v1.5.0
