{{/* Names and labels of everything that the chart makes: nothing is named elsewhere. */}}

{{/* Prefix of all names: the release's, with the chart's where that is not in it. A label of DNS that begins with a letter, as a Service's name must, of at most
40 characters: a CronJob may have 52, a Job made of it 63. Where the release's name is no such thing, a hash keeps it apart from others. */}}
{{- define "benchmatrix.fullname" -}}
{{- $name := contains "benchmatrix" .Release.Name | ternary .Release.Name (printf "%s-benchmatrix" .Release.Name) -}}
{{- if or (gt (len $name) 40) (not (regexMatch "^[a-z][a-z0-9-]*$" $name)) -}}
{{- $name = printf "%s-%s" (regexReplaceAll "^([0-9])" ($name | replace "." "-") "r${1}" | trunc 33 | trimSuffix "-") ($name | sha256sum | trunc 6) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- define "benchmatrix.runner.name" -}}{{ include "benchmatrix.fullname" . }}-runner{{- end -}}
{{- define "benchmatrix.cells.name" -}}{{ include "benchmatrix.fullname" . }}-cells{{- end -}}
{{- define "benchmatrix.store.name" -}}{{ include "benchmatrix.fullname" . }}-store{{- end -}}
{{- define "benchmatrix.doctor.name" -}}{{ include "benchmatrix.fullname" . }}-doctor{{- end -}}

{{/* Where the cells are. */}}
{{- define "benchmatrix.cells.namespace" -}}
{{- if eq .Values.cells.namespace .Release.Namespace -}}
{{- fail (printf "cells.namespace: is `%s`, the release's own; leave it empty for that, or name one that is to be made" .Release.Namespace) -}}
{{- end -}}
{{- .Values.cells.namespace | default .Release.Namespace -}}
{{- end -}}

{{/* What the names of the ResourceClaimTemplates begin with. Their spec cannot be changed, so another class gets others. */}}
{{- define "benchmatrix.claims.prefix" -}}
{{ include "benchmatrix.fullname" . }}-{{ .Values.claims.deviceClass | sha256sum | trunc 6 }}
{{- end -}}

{{- define "benchmatrix.runner.serviceAccount" -}}
{{- $name := .Values.runner.serviceAccount.name -}}
{{- if not (or $name .Values.runner.serviceAccount.create) -}}
{{- fail "runner.serviceAccount.name: is empty; name the ServiceAccount that is there, or leave runner.serviceAccount.create true" -}}
{{- end -}}
{{- $name | default (include "benchmatrix.runner.name" .) -}}
{{- end -}}

{{- define "benchmatrix.cells.serviceAccount" -}}
{{- $name := .Values.cells.serviceAccount.name -}}
{{- if not (or $name .Values.cells.serviceAccount.create) -}}
{{- fail "cells.serviceAccount.name: is empty; name the ServiceAccount that is there, or leave cells.serviceAccount.create true" -}}
{{- end -}}
{{- $name | default (include "benchmatrix.cells.name" .) -}}
{{- end -}}

{{/* Secret with the store's keys, empty where identities are used. */}}
{{- define "benchmatrix.store.secret" -}}
{{- if and .Values.trialStore.enabled (not .Values.store.secret) -}}
{{- fail "store.secret: is empty; trialStore takes its keys from that Secret, and makes none: kubectl create secret generic trial-keys --from-literal=AWS_ACCESS_KEY_ID=trial --from-literal=AWS_SECRET_ACCESS_KEY=$(openssl rand -hex 20)" -}}
{{- end -}}
{{ .Values.store.secret }}
{{- end -}}

{{/* What pods of a component are found by. Argument: list of the root and the component. Not app.kubernetes.io/instance: Argo CD takes what carries it for its
own and prunes what is not in Git (decision 0023). Jobs and pods that come to be later are not. */}}
{{- define "benchmatrix.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: benchmatrix
benchmatrix/release: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 | quote }}
{{- end -}}

{{/* What the pods of the store for trying are found by. A Deployment's selector cannot be changed, so it is the one of the first version; its pods have an owner. */}}
{{- define "benchmatrix.store.selector" -}}
app.kubernetes.io/name: benchmatrix
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: store
{{- end -}}

{{/* Labels of what the chart's objects make later: Jobs and pods. Argument: list of the root, the component and, where there are, mappings of more labels. */}}
{{- define "benchmatrix.podLabels" -}}
{{- $root := index . 0 -}}
{{ include "benchmatrix.selector" . }}
app.kubernetes.io/managed-by: {{ $root.Release.Service | quote }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | quote }}
{{- with include "benchmatrix.merge" (prepend (slice . 2) $root.Values.labels) | fromJson }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels of an object of the chart. Argument: as above. */}}
{{- define "benchmatrix.labels" -}}
{{ include "benchmatrix.podLabels" . }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name | quote }}
{{- end -}}

{{/* Annotations of an object of the chart, with their key; empty where there are none. Argument: list of the root and, where there are, mappings of more. */}}
{{- define "benchmatrix.annotations" -}}
{{- with include "benchmatrix.merge" (prepend (slice . 1) (index . 0).Values.annotations) | fromJson -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* Mappings in one, as JSON: a later one goes before. Unlike `merge` it keeps nulls and empty texts. */}}
{{- define "benchmatrix.merge" -}}
{{- $merged := dict -}}
{{- range . -}}
{{- range $key, $value := . -}}{{- $_ := set $merged $key $value -}}{{- end -}}
{{- end -}}
{{- $merged | toJson -}}
{{- end -}}

{{/* An amount as Kubernetes reads it, quoted: a whole number without an exponent. */}}
{{- define "benchmatrix.amount" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) -}}{{ . | int64 | toString | quote }}{{- else -}}{{ . | toString | quote }}{{- end -}}
{{- end -}}

{{/* The API version of Kueue to use: v1beta1 goes away in Kueue 0.20. Empty: the cluster has none of them. */}}
{{- define "benchmatrix.kueue.version" -}}
{{- if .Capabilities.APIVersions.Has "kueue.x-k8s.io/v1beta2" -}}kueue.x-k8s.io/v1beta2
{{- else if .Capabilities.APIVersions.Has "kueue.x-k8s.io/v1beta1" -}}kueue.x-k8s.io/v1beta1
{{- end -}}
{{- end -}}
