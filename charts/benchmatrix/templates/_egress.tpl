{{/* What every pod that uses the store has to reach: DNS, the store, and whatever gives it its identity. List items. */}}
{{- define "benchmatrix.egress" -}}
- ports:
    {{- range .Values.networkPolicy.dnsPorts }}
    - {protocol: UDP, port: {{ . | int64 }}}
    - {protocol: TCP, port: {{ . | int64 }}}
    {{- end }}
  {{- with .Values.networkPolicy.dns }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- if .Values.trialStore.enabled }}
- ports:
    - {protocol: TCP, port: 9000}
  to:
    - podSelector:
        matchLabels:
          {{- include "benchmatrix.store.selector" . | nindent 10 }}
      namespaceSelector:
        matchLabels: {kubernetes.io/metadata.name: {{ .Release.Namespace | quote }}}
{{- else }}
{{- include "benchmatrix.destinations" .Values.networkPolicy.store }}
{{- range .Values.networkPolicy.identity }}
- to:
    - ipBlock: {cidr: {{ .cidr | quote }}}
  ports:
    - {protocol: TCP, port: {{ .port | int64 }}}
{{- end }}
{{- end }}
{{- end -}}

{{/* Addresses and pods at their ports, as a list item: none where there are neither, for an empty `to` would mean anywhere. Argument: cidrs, peers and ports. */}}
{{- define "benchmatrix.destinations" -}}
{{- if or .cidrs .peers }}
- to:
    {{- range .cidrs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
    {{- with .peers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    {{- range .ports }}
    - {protocol: TCP, port: {{ . | int64 }}}
    {{- end }}
{{- end }}
{{- end -}}
