{{/* Name of the objects: that of the release. A release `mpi-operator` has the names of deploy/v2beta1/mpi-operator.yaml. */}}
{{- define "mpiop.fullname" -}}
{{ .Values.fullnameOverride | default .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "mpiop.serviceAccountName" -}}
{{ .Values.serviceAccount.name | default (ternary (include "mpiop.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "mpiop.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default (printf "v%s" $.Chart.AppVersion) }}{{ end }}
{{- end }}
{{- end }}

{{/* A selector is immutable. It is the YAML's, so that a release `mpi-operator` can take over the Deployment of an install by YAML. */}}
{{- define "mpiop.selectorLabels" -}}
app: {{ include "mpiop.fullname" . }}
app.kubernetes.io/component: mpijob
app.kubernetes.io/name: mpi-operator
kustomize.component: mpi-operator
{{- end }}

{{/* Labels and annotations of an object: "root", and optionally its own "labels" and "annotations". */}}
{{- define "mpiop.metadata" -}}
{{- $release := dict "app.kubernetes.io/instance" .root.Release.Name "app.kubernetes.io/managed-by" .root.Release.Service "app.kubernetes.io/version" .root.Chart.AppVersion "helm.sh/chart" (printf "%s-%s" .root.Chart.Name (.root.Chart.Version | replace "+" "_")) }}
{{- $labels := merge (include "mpiop.selectorLabels" .root | fromYaml) $release (.labels | default dict) .root.Values.labels }}
{{- $annotations := merge (dict) (.annotations | default dict) .root.Values.annotations -}}
labels:
  {{- toYaml $labels | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* "true" if a value that is true, false or auto switches on something cluster-wide. */}}
{{- define "mpiop.isOn" -}}
{{- if eq (toString .value) "auto" }}{{ if not .root.Values.watchNamespace }}true{{ end }}{{ else if .value }}true{{ end }}
{{- end }}

{{/* authenticated, open or none. */}}
{{- define "mpiop.metricsAccess" -}}
{{- if ne .Values.metrics.access "auto" }}{{ .Values.metrics.access }}{{ else }}{{ ternary "none" "authenticated" (ne .Values.watchNamespace "") }}{{ end }}
{{- end }}

{{/* A Role in "namespace", or a ClusterRole if that is "", called "name", with "rules", bound to the operator's ServiceAccount. */}}
{{- define "mpiop.right" -}}
{{- $subject := dict "kind" "ServiceAccount" "name" (include "mpiop.serviceAccountName" .root) "namespace" .root.Release.Namespace -}}
{{ include "mpiop.role" . }}
---
{{ include "mpiop.binding" (dict "root" .root "name" .name "namespace" .namespace "role" .name "subjects" (list $subject)) }}
{{- end }}

{{- define "mpiop.role" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "Role" "ClusterRole" (ne .namespace "") }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  {{- include "mpiop.metadata" . | nindent 2 }}
rules:
  {{- toYaml .rules | nindent 2 }}
{{- end }}

{{- define "mpiop.binding" -}}
{{- $kind := ternary "Role" "ClusterRole" (ne .namespace "") -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  {{- include "mpiop.metadata" . | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .role }}
subjects:
  {{- toYaml .subjects | nindent 2 }}
{{- end }}

{{/* Values that contradict each other. */}}
{{- define "mpiop.check" -}}
{{- $access := include "mpiop.metricsAccess" . }}
{{- if and .Values.podMonitor.enabled .Values.serviceMonitor.enabled }}
{{- fail "podMonitor.enabled and serviceMonitor.enabled: Prometheus would scrape each replica twice; switch one of them off" }}
{{- end }}
{{- if and (or .Values.podMonitor.enabled .Values.serviceMonitor.enabled .Values.prometheusRule.enabled) (eq $access "none") }}
{{- fail "podMonitor, serviceMonitor and prometheusRule need metrics: set metrics.access to authenticated or open" }}
{{- end }}
{{- if and (or .Values.metrics.readers .Values.metrics.certificateSecret) (ne $access "authenticated") }}
{{- fail "metrics.readers and metrics.certificateSecret are for authenticated metrics: set metrics.access to authenticated, or leave them out" }}
{{- end }}
{{- if and .Values.podMonitor.enabled (eq $access "authenticated") (not .Values.podMonitor.tokenSecret) }}
{{- fail "podMonitor.tokenSecret is missing: name the Secret with the token for authenticated metrics, or use a ServiceMonitor, which needs none" }}
{{- end }}
{{- end }}
