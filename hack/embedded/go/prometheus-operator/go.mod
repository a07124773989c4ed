// No program: the module has the CRDs PodMonitor, ServiceMonitor and PrometheusRule.
module mpiop/cluster/prometheus-operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.92.0
