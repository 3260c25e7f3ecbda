{{/* Names and labels of everything that the chart makes: nothing is named elsewhere. */}}

{{/* Prefix of all names: the release's, with the chart's where that is not in it. At most 40 characters: a CronJob may have 52, a Job made of it 63. */}}
{{- define "benchmatrix.fullname" -}}
{{- $name := contains "benchmatrix" .Release.Name | ternary .Release.Name (printf "%s-benchmatrix" .Release.Name) -}}
{{- if gt (len $name) 40 -}}
{{- $name = printf "%s-%s" ($name | trunc 33 | trimSuffix "-") ($name | sha256sum | trunc 6) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- define "benchmatrix.runner.name" -}}{{ include "benchmatrix.fullname" . }}-runner{{- end -}}
{{- define "benchmatrix.cells.name" -}}{{ include "benchmatrix.fullname" . }}-cells{{- end -}}
{{- define "benchmatrix.store.name" -}}{{ include "benchmatrix.fullname" . }}-store{{- end -}}
{{- define "benchmatrix.doctor.name" -}}{{ include "benchmatrix.fullname" . }}-doctor{{- end -}}

{{/* Where the cells are. */}}
{{- define "benchmatrix.cells.namespace" -}}{{ .Values.cells.namespace | default .Release.Namespace }}{{- end -}}

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
{{- if .Values.trialStore.enabled -}}{{ include "benchmatrix.store.name" . }}{{- else -}}{{ .Values.store.secret }}{{- end -}}
{{- end -}}

{{/* What pods of a component are found by. Argument: list of the root and the component. */}}
{{- define "benchmatrix.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: benchmatrix
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* All labels of an object. Argument: list of the root and the component. */}}
{{- define "benchmatrix.labels" -}}
{{- $root := index . 0 -}}
{{ include "benchmatrix.selector" . }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with $root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}
