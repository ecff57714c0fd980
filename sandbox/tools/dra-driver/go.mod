// Pins NVIDIA's DRA driver, of which only the Helm chart is used.
module sandbox/tools/dra-driver

go 1.26

require sigs.k8s.io/dra-driver-nvidia-gpu v0.4.1
