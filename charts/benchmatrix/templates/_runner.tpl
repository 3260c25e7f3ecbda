{{/* The pod of the runner, and what that of doctor has in common with it. */}}

{{/* Matrix and profile as annotations of a pod: they are those that it began with, whatever is upgraded while it runs. A mapping. */}}
{{- define "benchmatrix.runner.annotations" -}}
benchmatrix/profile: {{ include "benchmatrix.profile" . | quote }}
{{- if .Values.customMatrix }}
benchmatrix/matrix: {{ include "benchmatrix.matrix" . | quote }}
{{- end }}
{{- with .Values.runner.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A text such that Kubernetes gives it to a process as it is: in arguments and variables it would put the value of a variable for `$(NAME)`. */}}
{{- define "benchmatrix.verbatim" -}}{{ . | replace "$" "$$" }}{{- end -}}

{{/* Words of the command line that a run and doctor have in common. */}}
{{- define "benchmatrix.arguments" -}}
- {{ empty .Values.customMatrix | not | ternary "/etc/benchmatrix/matrix.yaml" .Values.matrix | quote }}
- --on=in-cluster
- --profile=/etc/benchmatrix/profile.yaml
- {{ include "benchmatrix.store.url" . | printf "--store=%s" | include "benchmatrix.verbatim" | quote }}
{{- with .Values.kueue.localQueue }}
- {{ printf "--queue=%s" . | quote }}
{{- end }}
{{- end -}}

{{/* What the pods of runner and doctor have in common besides their container. */}}
{{- define "benchmatrix.runner.pod" -}}
restartPolicy: Never
serviceAccountName: {{ include "benchmatrix.runner.serviceAccount" . | quote }}
automountServiceAccountToken: true
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . | quote }}
{{- end }}
{{- end }}
{{- range $key := list "nodeSelector" "affinity" "tolerations" "topologySpreadConstraints" }}
{{- with index $.Values.runner $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with .Values.runner.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- if not .Values.assignedUser }}
  runAsUser: 65532
  runAsGroup: 65532
  {{- end }}
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
name: runner
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
- {name: {{ $name | quote }}, value: {{ include "benchmatrix.verbatim" $value | quote }}}
{{- end }}
{{- end -}}

{{/* The template of the runner's pod. */}}
{{- define "benchmatrix.runner.template" -}}
metadata:
  labels:
    {{- include "benchmatrix.podLabels" (list . "runner" .Values.runner.podLabels) | nindent 4 }}
  annotations:
    {{- include "benchmatrix.runner.annotations" . | nindent 4 }}
spec:
  {{- include "benchmatrix.runner.pod" . | nindent 2 }}
  containers:
    - {{- include "benchmatrix.runner.container" . | nindent 6 }}
      {{- if .Values.metrics.enabled }}
      ports:
        - {name: metrics, containerPort: {{ .Values.metrics.port | int64 }}}
      {{- end }}
      env:
        # The run is named after the Job: a runner that replaces another goes on with its run.
        - {name: JOB_NAME, valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-name']"}}}
        {{- if not .Values.cells.namespace }}
        - {name: JOB_UID, valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/controller-uid']"}}}
        {{- end }}
        {{- include "benchmatrix.runner.variables" . | nindent 8 }}
        {{- if .Values.watch.enabled }}
        # Optional, so that a Secret that is missing is one message of the runner, not a pod that waits for the deadline.
        {{- range $index, $webhook := .Values.watch.webhooks }}
        - {name: BENCHMATRIX_WEBHOOK_{{ $index }}, valueFrom: {secretKeyRef: {name: {{ $webhook.secret | quote }}, key: {{ $webhook.key | quote }}, optional: true}}}
        {{- end }}
        {{- end }}
      args:
        - run
        {{- include "benchmatrix.arguments" . | nindent 8 }}
        - --run-id=$(JOB_NAME)
        {{- if not .Values.cells.namespace }}
        - --owner=$(JOB_NAME)/$(JOB_UID)
        {{- end }}
        - --deadline={{ .Values.schedule.deadlineSeconds | int64 }}
        - --max-in-flight={{ .Values.runner.maxInFlight | int64 }}
        {{- with .Values.runner.maxCost }}
        - --max-cost={{ . }}
        {{- end }}
        {{- with .Values.runner.giveUpAfterSeconds }}
        - --give-up-after={{ . | int64 }}
        {{- end }}
        {{- if .Values.metrics.enabled }}
        - --metrics-port={{ .Values.metrics.port | int64 }}
        {{- end }}
        {{- if .Values.watch.enabled }}
        - --watch
        {{- range $index, $webhook := .Values.watch.webhooks }}
        - --webhook={{ $webhook.kind }}:BENCHMATRIX_WEBHOOK_{{ $index }}
        {{- end }}
        {{- end }}
        - --output=/tmp/report
        - --publish
{{- end -}}

{{/* The template of doctor's pod. */}}
{{- define "benchmatrix.doctor.template" -}}
metadata:
  labels:
    {{- include "benchmatrix.labels" (list . "runner" .Values.runner.podLabels) | nindent 4 }}
  annotations:
    {{- include "benchmatrix.merge" (list .Values.annotations (include "benchmatrix.runner.annotations" . | fromYaml)) | fromJson | toYaml | nindent 4 }}
spec:
  {{- include "benchmatrix.runner.pod" . | nindent 2 }}
  containers:
    - {{- include "benchmatrix.runner.container" . | nindent 6 }}
      env:
        {{- include "benchmatrix.runner.variables" . | nindent 8 }}
      args:
        - doctor
        {{- include "benchmatrix.arguments" . | nindent 8 }}
{{- end -}}
