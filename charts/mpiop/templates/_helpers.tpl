{{/* Name of the objects: that of the release. A release `mpi-operator` has the names of deploy/v2beta1/mpi-operator.yaml. */}}
{{- define "mpiop.fullname" -}}
{{- $name := .Release.Name }}
{{- with .Values.nameOverride }}
{{- $name = ternary $name (printf "%s-%s" $name .) (contains . $name) }}
{{- end }}
{{- .Values.fullnameOverride | default $name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "mpiop.serviceAccountName" -}}
{{ .Values.serviceAccount.name | default (ternary (include "mpiop.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{/* Reference of "image", which has repository, tag and digest. A registry replaces the one in the repository. */}}
{{- define "mpiop.reference" -}}
{{- $repository := .image.repository }}
{{- with include "mpiop.registry" .root }}
{{- $repository = printf "%s/%s" . (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $repository "") }}
{{- end }}
{{- $repository }}{{ if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default (printf "v%s" .root.Chart.AppVersion) }}{{ end }}
{{- end }}

{{/* Registry of both images; "" leaves the ones in their repositories. */}}
{{- define "mpiop.registry" -}}
{{ (.Values.global | default dict).imageRegistry | default .Values.image.registry | default "" | trimSuffix "/" }}
{{- end }}

{{/* Reference of the agent's image, or "" if no value names one: the operator then has its default. */}}
{{- define "mpiop.agentImage" -}}
{{- $agent := (.Values.agent).image | default dict }}
{{- if or (include "mpiop.registry" .) $agent.repository $agent.tag $agent.digest }}
{{- $repository := $agent.repository | default (printf "%s-agent" .Values.image.repository) }}
{{- include "mpiop.reference" (dict "root" . "image" (merge (dict "repository" $repository) $agent)) }}
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
{{- if eq (toString .value) "auto" }}{{ if not .root.Values.watchNamespaces }}true{{ end }}{{ else if .value }}true{{ end }}
{{- end }}

{{/* authenticated, open or none. */}}
{{- define "mpiop.metricsAccess" -}}
{{- if ne .Values.metrics.access "auto" }}{{ .Values.metrics.access }}{{ else }}{{ ternary "authenticated" "none" (empty .Values.watchNamespaces) }}{{ end }}
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

{{/* "true" if there is to be an object of "kind" of the Prometheus Operator. With auto, the cluster must have its CRD. */}}
{{- define "mpiop.isMonitored" -}}
{{- if ne (toString .enabled) "auto" }}{{ if .enabled }}true{{ end }}
{{- else if .root.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" .kind) }}true{{ end }}
{{- end }}

{{/* How Prometheus verifies the certificate: as "tls" of a monitor defines, by default for the Service's name; else not at all. */}}
{{- define "mpiop.scrapeTLS" -}}
{{- $server := dict "serverName" (printf "%s.%s.svc" (include "mpiop.fullname" .root) .root.Release.Namespace) }}
{{- if .tls }}{{ merge (dict) .tls $server | toYaml }}{{ else }}insecureSkipVerify: true{{ end }}
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
{{- range $name := list "podMonitor" "serviceMonitor" }}
{{- $tls := (get $.Values $name).tlsConfig }}
{{- if and $tls (ne $access "authenticated") }}
{{- fail (printf "%s.tlsConfig is for authenticated metrics: set metrics.access to authenticated, or leave it out" $name) }}
{{- end }}
{{- if and $tls (not $tls.insecureSkipVerify) (not $.Values.metrics.certificateSecret) }}
{{- fail (printf "%s.tlsConfig: a self-signed certificate cannot be verified; name a Secret in metrics.certificateSecret" $name) }}
{{- end }}
{{- end }}
{{- if and .Values.podMonitor.enabled (eq $access "authenticated") (not .Values.podMonitor.tokenSecret) }}
{{- fail "podMonitor.tokenSecret is missing: name the Secret with the token for authenticated metrics, or use a ServiceMonitor, which needs none" }}
{{- end }}
{{- end }}
