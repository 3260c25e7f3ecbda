{{/* What the runner is given: image, store, profile and matrix. */}}

{{- define "benchmatrix.image" -}}
{{- $image := .Values.image -}}
{{- $repository := required "image.repository: is empty; name where `make push ARGS=control` put the image of runner and collector" $image.repository -}}
{{- if $image.digest -}}
{{ $repository }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ required "image.tag: is empty, and image.digest as well; give one, as `make push ARGS=control` printed it" $image.tag }}
{{- end -}}
{{- end -}}

{{- define "benchmatrix.store.url" -}}
{{- if .Values.trialStore.enabled -}}
s3://benchmatrix/runs
{{- else -}}
{{ required "store.url: is empty; name the bucket and a prefix of this release's own, s3://BUCKET/PREFIX" .Values.store.url }}
{{- end -}}
{{- end -}}

{{/* Variables that lead to the store and are no secret, as a YAML mapping. */}}
{{- define "benchmatrix.store.environment" -}}
{{- $endpoint := .Values.trialStore.enabled | ternary (printf "http://%s:9000" (include "benchmatrix.store.name" .)) .Values.store.endpointUrl -}}
{{- if and .Values.trialStore.enabled .Values.cells.namespace -}}
{{- $endpoint = printf "http://%s.%s:9000" (include "benchmatrix.store.name" .) .Release.Namespace -}}
{{- end -}}
{{- with $endpoint }}
AWS_ENDPOINT_URL: {{ . | quote }}
{{- end }}
{{- with .Values.store.region | default (.Values.trialStore.enabled | ternary "us-east-1" "") }}
AWS_DEFAULT_REGION: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* The profile that the cells are placed by, as JSON: the user's, with what the chart makes named in it. */}}
{{- define "benchmatrix.profile" -}}
{{- if not .Values.profile -}}
{{- fail "profile: is empty; say what the cluster is like: `extends: gke`, and what differs" -}}
{{- end -}}
{{- include "benchmatrix.refuseSecrets" . -}}
{{- if include "benchmatrix.dropsNulls" .Capabilities.HelmVersion.Version -}}
{{- fail (printf "Helm %s drops the nulls with which a profile removes what it extends; take 4.1.3 or newer, or 3.20.1 or newer" .Capabilities.HelmVersion.Version) -}}
{{- end -}}
{{- $environment := include "benchmatrix.merge" (list (include "benchmatrix.store.environment" . | fromYaml) .Values.profile.environment) | fromJson -}}
{{- $labels := include "benchmatrix.merge" (list .Values.labels .Values.profile.labels (dict "benchmatrix/release" .Release.Name)) | fromJson -}}
{{- $secret := include "benchmatrix.store.secret" . -}}
{{- $longest := add .Values.schedule.deadlineSeconds .Values.schedule.reportSeconds -}}
{{- $own := dict
  "name" (include "benchmatrix.fullname" .)
  "namespace" (include "benchmatrix.cells.namespace" .)
  "service_account" (include "benchmatrix.cells.serviceAccount" .)
  "image_pull_secrets" .Values.imagePullSecrets
  "environment" $environment
  "labels" $labels
  "active_deadline_seconds" (min $longest (.Values.profile.active_deadline_seconds | default $longest))
  "store_secret" (empty $secret | ternary nil $secret) -}}
{{- if .Values.claims.enabled -}}
{{- $_ := set $own "gpu" (include "benchmatrix.gpu" . | fromJson) -}}
{{- end -}}
{{- include "benchmatrix.merge" (list .Values.profile $own) -}}
{{- end -}}

{{/* The profile's GPUs where they are claimed, as JSON. */}}
{{- define "benchmatrix.gpu" -}}
{{- $gpu := .Values.profile.gpu -}}
{{- if kindIs "string" $gpu -}}
{{- $gpu = dict "name" $gpu -}}
{{- end -}}
{{- if and (not $gpu) (or (hasKey .Values.profile "gpu") (eq (.Values.profile.extends | default "kind") "kind")) -}}
{{- fail "claims.enabled: is true, but the profile has no GPUs; say in profile.gpu which, or set claims.enabled to false" -}}
{{- end -}}
{{- $claim := dict "request" "claim" "device_class" .Values.claims.deviceClass "claim_prefix" (include "benchmatrix.claims.prefix" .) -}}
{{- include "benchmatrix.merge" (list $gpu $claim) -}}
{{- end -}}

{{/* Not empty where a version of Helm drops nulls of values that the chart has no default for. Programs with Helm in them give no third number, and pass. */}}
{{- define "benchmatrix.dropsNulls" -}}
{{- if regexMatch "^v[0-9]+[.][0-9]+[.][0-9]" . -}}
{{- semverCompare "=3.19.5 || =3.20.0 || >=4.0.0-0 <4.1.3-0" . | ternary "true" "" -}}
{{- end -}}
{{- end -}}

{{/* The matrix of the values, as JSON. Helm sorts keys, but the last axis varies fastest: what is compared has to come last, whatever order the axes were written in. */}}
{{- define "benchmatrix.matrix" -}}
{{- $axes := list -}}
{{- range list "model" "num_classes" "data_dir" "input_size" "batch_size" "num_gpus" "seed" "num_warmup_steps" "max_warmup_seconds" "num_steps" "min_seconds" "sampling_seconds" "num_profiled_steps" "pipelined_seconds" "sustain_seconds" "neighbour" "sharing" "tenants" "device" "phase" "precision" "mode" "framework" -}}
{{- if hasKey $.Values.customMatrix.axes . -}}
{{- $axes = append $axes (printf "%s:%s" (toJson .) (index $.Values.customMatrix.axes . | toJson)) -}}
{{- end -}}
{{- end -}}
{{- $parts := list (printf "\"axes\":{%s}" (join "," $axes)) -}}
{{- range $key, $value := omit .Values.customMatrix "axes" -}}
{{- $parts = append $parts (printf "%s:%s" (toJson $key) (toJson $value)) -}}
{{- end -}}
{ {{- join "," $parts -}} }
{{- end -}}
