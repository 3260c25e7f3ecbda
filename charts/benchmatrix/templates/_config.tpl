{{/* What the runner is given: image, store, profile and matrix, and the pod that it is. */}}

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
{{- include "benchmatrix.refuseOldKeys" . -}}
{{- if include "benchmatrix.dropsNulls" .Capabilities.HelmVersion.Version -}}
{{- fail (printf "Helm %s drops the nulls with which a profile removes what it extends; take 4.1.3 or newer, or 3.20.1 or newer" .Capabilities.HelmVersion.Version) -}}
{{- end -}}
{{- $environment := include "benchmatrix.merge" (list (include "benchmatrix.store.environment" . | fromYaml) .Values.profile.environment) | fromJson -}}
{{- $labels := include "benchmatrix.merge" (list .Values.labels .Values.profile.labels (dict "app.kubernetes.io/instance" .Release.Name)) | fromJson -}}
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
{{- range list "model" "num_classes" "data_dir" "input_size" "batch_size" "num_gpus" "seed" "num_warmup_steps" "max_warmup_seconds" "num_steps" "min_seconds" "sampling_seconds" "num_profiled_steps" "device" "phase" "precision" "mode" "framework" -}}
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

{{/* Matrix and profile as annotations of a pod: they are those that it began with, whatever is upgraded while it runs. */}}
{{- define "benchmatrix.annotations" -}}
benchmatrix/profile: {{ include "benchmatrix.profile" . | quote }}
{{- if .Values.customMatrix }}
benchmatrix/matrix: {{ include "benchmatrix.matrix" . | quote }}
{{- end }}
{{- with .Values.runner.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Words of the command line that a run and doctor have in common. */}}
{{- define "benchmatrix.arguments" -}}
- {{ empty .Values.customMatrix | not | ternary "/etc/benchmatrix/matrix.yaml" .Values.matrix | quote }}
- --on=in-cluster
- --profile=/etc/benchmatrix/profile.yaml
- {{ printf "--store=%s" (include "benchmatrix.store.url" .) | quote }}
{{- with .Values.kueue.localQueue }}
- {{ printf "--queue=%s" . | quote }}
{{- end }}
{{- end -}}

{{/* What the pods of runner and doctor have in common besides their container. */}}
{{- define "benchmatrix.runner.pod" -}}
serviceAccountName: {{ include "benchmatrix.runner.serviceAccount" . | quote }}
automountServiceAccountToken: true
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . | quote }}
{{- end }}
{{- end }}
{{- with .Values.runner.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.runner.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.runner.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: 2Gi}
  - name: config
    downwardAPI:
      items:
        - path: profile.yaml
          fieldRef: {fieldPath: "metadata.annotations['benchmatrix/profile']"}
{{- if .Values.customMatrix }}
        - path: matrix.yaml
          fieldRef: {fieldPath: "metadata.annotations['benchmatrix/matrix']"}
{{- end }}
{{- end -}}

{{/* What their containers have in common. */}}
{{- define "benchmatrix.runner.container" -}}
image: {{ include "benchmatrix.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- with include "benchmatrix.store.secret" . }}
envFrom:
  - secretRef: {name: {{ . | quote }}}
{{- end }}
resources:
  {{- toYaml .Values.runner.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
terminationMessagePolicy: FallbackToLogsOnError
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: config, mountPath: /etc/benchmatrix, readOnly: true}
{{- end -}}

{{/* Their variables, as list items; HOME is where they may write. */}}
{{- define "benchmatrix.runner.variables" -}}
- {name: HOME, value: /tmp}
{{- range $name, $value := include "benchmatrix.merge" (list (include "benchmatrix.store.environment" . | fromYaml) .Values.runner.environment) | fromJson }}
- {name: {{ $name | quote }}, value: {{ $value | quote }}}
{{- end }}
{{- end -}}
